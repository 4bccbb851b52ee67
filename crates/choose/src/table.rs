//! A choice as a tidy table: a row for each figure of each run, for the headroom of each candidate and for each of its costs, with the
//! interval in which the figure lies. Figures are in base units (µs, bytes, shares of 1).

use std::collections::BTreeMap;

use pubmark_record::figures::FIGURES;
use pubmark_record::record::Record;
use pubmark_record::statistics::Scale;
use pubmark_record::statistics::interval::interval;
use pubmark_record::threshold::metrics;
use pubmark_report::csv::unit;
use pubmark_report::table::{Format, render};
use pubmark_report::words::verdict_word;
use serde_json::Value;

use crate::cost::{Basis, Cost, CostAt};
use crate::record::{CandidateResult, Choice, ChoiceRun};

/// Its file in the folder of a choice, without the figures that only the records of runs have.
pub const FILE: &str = "csv/candidates.csv";

/// The columns.
const COLUMNS: [&str; 18] = [
    "choice",
    "candidate",
    "state",
    "system",
    "version",
    "protocol",
    "stage",
    "run",
    "verdict",
    "times",
    "figure",
    "unit",
    "lower",
    "value",
    "upper",
    "limit",
    "outcome",
    "note",
];

/// A row without the columns that say of which candidate it is.
#[derive(Default)]
struct Row {
    stage: &'static str,
    run: Option<u32>,
    verdict: Option<&'static str>,
    times: f64,
    figure: String,
    unit: &'static str,
    lower: Option<f64>,
    value: Option<f64>,
    upper: Option<f64>,
    limit: Option<String>,
    outcome: Option<&'static str>,
    note: Option<String>,
}

/// Records of runs, by the names of their folders in that of the choice.
pub type Records = BTreeMap<String, Record>;

/// The table that stands in the folder of a choice, as CSV.
pub fn table(choice: &Choice) -> String {
    tables([(choice, &Records::new())].into_iter(), Format::Csv)
}

/// The table of these choices, each with the records of its runs: one that is not among them has no figures but those that objectives
/// judged.
pub fn tables<'a>(choices: impl Iterator<Item = (&'a Choice, &'a Records)>, format: Format) -> String {
    let rows = choices.flat_map(|(choice, records)| {
        let candidates = choice.candidates.iter();
        candidates.flat_map(move |candidate| {
            rows(candidate, records).into_iter().map(move |row| fields(choice, candidate, row))
        })
    });
    render(&COLUMNS.map(str::to_owned), rows, format)
}

fn fields(choice: &Choice, candidate: &CandidateResult, row: Row) -> Vec<Value> {
    let system = candidate.system.as_ref();
    vec![
        choice.name.clone().into(),
        candidate.label.clone().into(),
        candidate.state.word().into(),
        system.map(|system| system.name.clone()).into(),
        system.and_then(|system| system.version.clone()).into(),
        candidate.protocol.clone().into(),
        row.stage.into(),
        row.run.into(),
        row.verdict.into(),
        number(Some(row.times)),
        row.figure.into(),
        row.unit.into(),
        number(row.lower),
        number(row.value),
        number(row.upper),
        row.limit.into(),
        row.outcome.into(),
        row.note.into(),
    ]
}

/// Whole numbers without `.0`.
fn number(value: Option<f64>) -> Value {
    match value {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 9e15 => (whole as i64).into(),
        value => value.into(),
    }
}

fn rows(candidate: &CandidateResult, records: &Records) -> Vec<Row> {
    let mut rows = vec![];
    for run in &candidate.runs {
        let record = run.folder.as_ref().and_then(|folder| records.get(folder));
        rows.extend(objectives(run));
        rows.extend(record.into_iter().flat_map(|record| figures(run, record)));
    }
    if !candidate.runs.is_empty() {
        rows.push(Row {
            stage: "headroom",
            times: 1.0,
            figure: "headroom".to_owned(),
            unit: "times",
            lower: candidate.headroom.holds_factor,
            upper: candidate.headroom.system_fails_factor,
            outcome: candidate.growth.map(|coverage| coverage.word()),
            note: Some(candidate.headroom.text.clone()),
            ..Row::default()
        });
    }
    rows.extend(candidate.cost.iter().flat_map(costs));
    // One that was excluded has a row, too, with the reason.
    if rows.is_empty() {
        let note = Some(candidate.state.reason().to_owned());
        rows.push(Row { stage: "exclusion", times: 1.0, note, ..Row::default() });
    }
    rows
}

fn of_run(run: &ChoiceRun) -> Row {
    Row {
        stage: run.phase.word(),
        run: Some(run.number),
        verdict: run.verdict.map(verdict_word),
        times: 1.0,
        ..Row::default()
    }
}

/// What objectives judged.
fn objectives(run: &ChoiceRun) -> impl Iterator<Item = Row> {
    run.objectives.iter().map(|one| Row {
        figure: one.metric.clone(),
        unit: match one.metric.as_str() {
            "recovery" => "s",
            metric => metrics::find(metric).map_or("", |metric| unit(metric.unit())),
        },
        lower: one.lower,
        value: one.upper,
        upper: one.upper,
        limit: Some(one.limit.clone()),
        outcome: Some(one.outcome.word()),
        note: run.failure.clone(),
        ..of_run(run)
    })
}

/// Every figure that was measured in a run.
fn figures(run: &ChoiceRun, record: &Record) -> impl Iterator<Item = Row> {
    FIGURES.iter().filter_map(move |figure| {
        let value = figure.value(record)?;
        Some(Row {
            figure: figure.label(),
            unit: unit(figure.unit),
            lower: figure.lower(record).or(Some(value)),
            value: Some(value),
            upper: Some(value),
            ..of_run(run)
        })
    })
}

/// What this fleet costs, with the 95 % interval of the mean over the runs of the race, and what larger loads cost.
fn costs(cost: &Cost) -> Vec<Row> {
    let today = |figure: &str, unit, value: Option<f64>, of_runs: &[f64]| {
        let interval = interval(of_runs, Scale::Logarithm, 1);
        value.map(|value| Row {
            stage: "cost",
            times: 1.0,
            figure: figure.to_owned(),
            unit,
            lower: interval.as_ref().map(|interval| interval.low),
            value: Some(value),
            upper: interval.as_ref().map(|interval| interval.high),
            outcome: Some(Basis::Measured.word()),
            ..Row::default()
        })
    };
    let cores = today("cores", "cores", cost.cores, &cost.cores_of_runs);
    let memory = today("memory", "bytes", cost.memory_bytes, &cost.memory_bytes_of_runs);
    let larger = cost.grown.iter().chain([&cost.ten_times]).flat_map(larger);
    cores.into_iter().chain(memory).chain(larger).collect()
}

fn larger(at: &CostAt) -> [Row; 2] {
    let row = |figure: &str, unit, value, basis: Option<Basis>, from: &str| Row {
        stage: "cost",
        times: at.times,
        figure: figure.to_owned(),
        unit,
        value,
        outcome: basis.map(Basis::word),
        note: Some(from.to_owned()),
        ..Row::default()
    };
    [
        row("cores", "cores", at.cores, at.cores_basis, &at.cores_from),
        row("memory", "bytes", at.memory_bytes, at.memory_basis, &at.memory_from),
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::objectives::Objective;
    use pubmark_record::threshold::Objectives;

    use super::*;
    use crate::sample;

    fn lines(choice: &Choice, records: &Records) -> Vec<Value> {
        tables([(choice, records)].into_iter(), Format::Ndjson)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn of<'a>(rows: &'a [Value], candidate: &str, stage: &str) -> Vec<&'a Value> {
        rows.iter().filter(|row| row["candidate"] == candidate && row["stage"] == stage).collect()
    }

    #[test]
    fn each_candidate_has_rows_and_each_line_every_column() {
        let choice = sample::choice(1);
        let csv = table(&choice);
        let mut lines = csv.lines();
        assert_eq!(lines.next().unwrap().split(',').count(), COLUMNS.len());
        for candidate in &choice.candidates {
            assert!(csv.contains(&format!(",{},{},", candidate.label, candidate.state.word())), "{csv}");
        }
        let rows = self::lines(&choice, &Records::new());
        assert!(rows.iter().all(|row| row.as_object().unwrap().len() == COLUMNS.len()));
        let excluded = of(&rows, "plain", "exclusion");
        assert!(excluded[0]["note"].as_str().unwrap().contains("has no retained messages"), "{excluded:?}");
    }

    #[test]
    fn figures_of_runs_have_both_bounds_and_costs_their_load() {
        let record = pubmark_record::sample::record();
        let mut choice = sample::choice(1);
        let objectives = Objectives::parse("p50<1s").unwrap();
        choice.candidates[0].runs[0].objectives = objectives.judge(&record).iter().map(Objective::from).collect();
        let records = Records::from([("runs/1-small-race-1".to_owned(), record.clone())]);
        let rows = lines(&choice, &records);
        let race = of(&rows, "small", "race");
        let judged = race.iter().find(|row| row["limit"] == "p50<1s").unwrap();
        assert_eq!(
            (&judged["figure"], &judged["unit"], &judged["outcome"]),
            (&"p50".into(), &"us".into(), &"passed".into())
        );
        let latency = race.iter().find(|row| row["figure"] == "latency p50").unwrap();
        let bounds = record.latency.total.as_ref().unwrap();
        assert_eq!(latency["upper"].as_f64(), bounds.upper.p50);
        assert_eq!(latency["lower"].as_f64(), bounds.lower.as_ref().unwrap().p50);
        let headroom = of(&rows, "small", "headroom");
        assert_eq!((headroom[0]["lower"].as_f64(), headroom[0]["upper"].as_f64()), (Some(4.2), Some(4.5)));
        let costs = of(&rows, "small", "cost");
        let times: Vec<i64> = costs.iter().map(|row| row["times"].as_i64().unwrap()).collect();
        assert_eq!(times, [1, 1, 10, 10]);
        assert_eq!((&costs[0]["outcome"], &costs[2]["outcome"]), (&"measured".into(), &"extrapolated".into()));
    }
}
