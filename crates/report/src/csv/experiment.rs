//! Tables of an experiment and of a capacity search: figures in base units (µs, bytes, shares of 1), an empty field for
//! values that were not measured.

use pubmark_record::capacity::{CapacityRecord, TrialOutcome};
use pubmark_record::comparison::{FIGURES, Figure, Unit};
use pubmark_record::custom::PREFIX;
use pubmark_record::experiment::{Cell, CellFigure, CellMetric, ExperimentRecord, LowerBounds};

use super::{Table, optional, text};
use crate::words::verdict_word;

/// One row per cell and figure: mean, median, quartiles, interval.
pub fn cells(record: &ExperimentRecord) -> String {
    let axes = axes(record);
    let mut names: Vec<String> = vec!["cell".to_string()];
    names.extend(axes.iter().map(|axis| text(axis)));
    names.extend(
        [
            "version",
            "offered_per_s",
            "runs",
            "failures",
            "failure",
            "figure",
            "unit",
            "mean",
            "median",
            "quartile_1",
            "quartile_3",
            "interval_low",
            "interval_high",
            "interval_method",
            "wins",
            "shown_only",
            "lower_mean",
            "lower_median",
            "lower_quartile_1",
            "lower_quartile_3",
            "lower_interval_low",
            "lower_interval_high",
        ]
        .map(String::from),
    );
    let mut table = Table::new(&names);
    for cell in &record.cells {
        let start = start(record, cell);
        if cell.figures.is_empty() {
            let mut fields = start;
            fields.extend(vec![String::new(); 17]);
            table.row(&fields);
            continue;
        }
        let own = cell.custom.iter().map(|metric| (metric.as_figure(), &metric.figure));
        let known = cell.figures.iter().filter_map(|figure| Some((*find(&figure.figure)?, figure)));
        for (figure_of, figure) in known.chain(own) {
            let interval = figure.interval.as_ref();
            let wins = !figure_of.is_custom()
                && (record.contests.iter())
                    .any(|contest| contest.figure == figure.figure && contest.winner.as_deref() == Some(&cell.id));
            let mut fields = start.clone();
            fields.extend([
                text(&figure_of.label()),
                unit(figure_of.unit).to_string(),
                optional(figure.mean),
                optional(figure.median),
                optional(figure.quartiles.map(|(low, _)| low)),
                optional(figure.quartiles.map(|(_, high)| high)),
                optional(interval.map(|interval| interval.low)),
                optional(interval.map(|interval| interval.high)),
                text(interval.map_or("", |interval| &interval.method)),
                wins.to_string(),
                figure.shown_only.to_string(),
            ]);
            fields.extend(lower(figure.lower.as_ref()));
            table.row(&fields);
        }
    }
    table.text
}

/// Mean, median, quartiles and interval of the lower bounds; empty if a figure has none.
fn lower(bounds: Option<&LowerBounds>) -> [String; 6] {
    let of = |get: fn(&LowerBounds) -> Option<f64>| optional(bounds.and_then(get));
    [
        of(|lower| lower.mean),
        of(|lower| lower.median),
        of(|lower| lower.quartiles.map(|(low, _)| low)),
        of(|lower| lower.quartiles.map(|(_, high)| high)),
        of(|lower| lower.interval.as_ref().map(|interval| interval.low)),
        of(|lower| lower.interval.as_ref().map(|interval| interval.high)),
    ]
}

/// The first fields of a cell's rows: its settings and its runs.
fn start(record: &ExperimentRecord, cell: &Cell) -> Vec<String> {
    let version = cell.system.as_ref().and_then(|system| system.version.as_deref());
    let mut fields = vec![text(&cell.id)];
    fields.extend(axes(record).iter().map(|axis| text(cell.settings.get(*axis).map_or("", String::as_str))));
    fields.extend([
        text(version.unwrap_or("")),
        optional(cell.offered_per_s),
        cell.runs.len().to_string(),
        cell.failures.len().to_string(),
        text(cell.failures.first().map_or("", |failure| failure.kind.words())),
    ]);
    fields
}

/// One row per run, with all figures; one row per failure, without figures.
pub fn runs(record: &ExperimentRecord) -> String {
    let axes = axes(record);
    let has = |name: &str, is_bounded: bool| {
        let mut figures = record.cells.iter().flat_map(|cell| &cell.figures);
        figures.any(|figure| figure.figure == name && (!is_bounded || figure.lower.is_some()))
    };
    // Each figure, followed by its lower bound if it has one.
    let shown: Vec<(&str, bool)> = FIGURES
        .iter()
        .flat_map(|figure| [(figure.name, false), (figure.name, true)])
        .filter(|(name, is_lower)| has(name, *is_lower))
        .collect();
    let mut names = vec!["cell".to_string()];
    names.extend(axes.iter().map(|axis| text(axis)));
    names.extend(["repetition", "order", "verdict", "failure", "waited_ms", "busy", "folder"].map(String::from));
    names.extend(shown.iter().map(|(name, is_lower)| column_name(name, *is_lower)));
    let own = own_metrics(record);
    for metric in &own {
        names.extend([false, true].map(|is_lower| text(&own_column(&metric.as_figure(), is_lower))));
    }
    names.push("excluded".to_owned());
    let mut table = Table::new(&names);
    for cell in &record.cells {
        let mut start = vec![text(&cell.id)];
        start.extend(axes.iter().map(|axis| text(cell.settings.get(*axis).map_or("", String::as_str))));
        for (position, run) in cell.runs.iter().enumerate() {
            let mut fields = start.clone();
            fields.extend([
                run.repetition.to_string(),
                run.order.to_string(),
                verdict_word(run.verdict).to_string(),
                String::new(),
                run.waited_ms.to_string(),
                run.busy.to_string(),
                text(&run.folder),
            ]);
            fields.extend(shown.iter().map(|(name, is_lower)| {
                let figure = cell.figures.iter().find(|figure| figure.figure == *name);
                optional(figure.and_then(|figure| value(figure, *is_lower, position)))
            }));
            for metric in &own {
                let found = cell.custom.iter().find(|other| other.figure.figure == metric.figure.figure);
                let of = |is_lower| optional(found.and_then(|found| value(&found.figure, is_lower, position)));
                fields.extend([of(false), of(true)]);
            }
            fields.push(text(&excluded(cell, position)));
            table.row(&fields);
        }
        for failure in &cell.failures {
            let mut fields = start.clone();
            let repetition = if failure.repetition == 0 { String::new() } else { failure.repetition.to_string() };
            fields.extend([
                repetition,
                String::new(),
                String::new(),
                text(&format!("{}: {}", failure.kind.words(), failure.text)),
                String::new(),
                String::new(),
                text(failure.folder.as_deref().unwrap_or("")),
            ]);
            fields.extend(vec![String::new(); shown.len() + 2 * own.len() + 1]);
            table.row(&fields);
        }
    }
    table.text
}

/// Labels of the figures that the verdict of the run at this position excludes, separated by semicolons.
fn excluded(cell: &Cell, position: usize) -> String {
    let known = cell.figures.iter().filter_map(|found| Some((found, *find(&found.figure)?)));
    let own = cell.custom.iter().map(|metric| (&metric.figure, metric.as_figure()));
    let excluded = known.chain(own).filter(|(found, figure)| found.is_excluded(figure, &cell.runs, position));
    excluded.map(|(_, figure)| figure.label()).collect::<Vec<String>>().join(";")
}

/// A figure, or its lower bound, of the run at this position.
fn value(figure: &CellFigure, is_lower: bool, position: usize) -> Option<f64> {
    let values = if is_lower { &figure.lower.as_ref()?.values } else { &figure.values };
    values.get(position).copied().flatten()
}

fn axes(record: &ExperimentRecord) -> Vec<&str> {
    record.axes.iter().map(|axis| axis.name.as_str()).collect()
}

/// User-defined metrics of the cells, each once.
fn own_metrics(record: &ExperimentRecord) -> Vec<&CellMetric> {
    let mut found: Vec<&CellMetric> = vec![];
    for metric in record.cells.iter().flat_map(|cell| &cell.custom) {
        if found.iter().all(|known| known.figure.figure != metric.figure.figure) {
            found.push(metric);
        }
    }
    found
}

/// Column of a user-defined metric: `custom_jitter_us`, `custom_jitter_lower_us`.
fn own_column(figure: &Figure, is_lower: bool) -> String {
    column_of(&format!("{PREFIX}{}", figure.name).replace('.', "_"), unit(figure.unit), is_lower)
}

fn find(name: &str) -> Option<&'static Figure<'static>> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// How a unit is written in tables.
pub fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "messages",
        Unit::Share => "share",
        Unit::Microseconds => "us",
        Unit::PerSecond => "1/s",
        Unit::Cores => "cores",
        Unit::CpuSecondsPerMillion => "s",
        Unit::Bytes => "bytes",
        Unit::Number => "",
    }
}

/// Name of a figure with its unit, as a column: `latency_p99_us`, `latency_p99_lower_us`.
fn column_name(name: &str, is_lower: bool) -> String {
    column_of(&name.replace('.', ""), find(name).map_or("", |figure| unit(figure.unit)), is_lower)
}

fn column_of(name: &str, unit: &str, is_lower: bool) -> String {
    let stem = name.replace(['-', ' '], "_") + if is_lower { "_lower" } else { "" };
    match unit {
        "messages" | "share" | "" => stem,
        "1/s" => format!("{stem}_per_s"),
        unit => format!("{stem}_{unit}"),
    }
}

/// One row per trial of a search.
pub fn trials(record: &CapacityRecord) -> String {
    let mut table = Table::new(&[
        "trial",
        "factor",
        "offered_per_s",
        "devices",
        "duration_s",
        "attempt",
        "outcome",
        "delivered_per_s",
        "loss",
        "p50_us",
        "p99_us",
        "max_us",
        "p50_lower_us",
        "p99_lower_us",
        "max_lower_us",
        "latency_growth_us_per_s",
        "system_cores",
        "generator_cores",
        "system_rss_bytes",
        "verdict",
        "reason",
        "not_measured",
        "folder",
    ]);
    for (position, trial) in record.trials.iter().enumerate() {
        table.row(&[
            (position + 1).to_string(),
            trial.factor.to_string(),
            trial.offered_per_s.to_string(),
            trial.devices.to_string(),
            trial.duration_s.to_string(),
            trial.attempt.to_string(),
            outcome(trial.outcome).to_string(),
            optional(trial.delivered_per_s),
            optional(trial.loss),
            optional(trial.latency.upper.p50_us),
            optional(trial.latency.upper.p99_us),
            optional(trial.latency.upper.max_us),
            optional(trial.latency.bounds(|it| it.p50_us)[0]),
            optional(trial.latency.bounds(|it| it.p99_us)[0]),
            optional(trial.latency.bounds(|it| it.max_us)[0]),
            optional(trial.latency_growth_us_per_s),
            optional(trial.system_cores),
            optional(trial.generator_cores),
            optional(trial.system_rss_bytes),
            trial.verdict.map_or("", verdict_word).to_string(),
            text(trial.reason.as_deref().unwrap_or("")),
            text(trial.not_measured.as_deref().unwrap_or("")),
            text(trial.folder.as_deref().unwrap_or("")),
        ]);
    }
    table.text
}

/// The word of an outcome in `capacity.json`. Tables for people call some by another one.
fn outcome(outcome: TrialOutcome) -> &'static str {
    match outcome {
        TrialOutcome::Held => "held",
        TrialOutcome::Missed => "missed",
        TrialOutcome::GeneratorLimited => "generator-limited",
        TrialOutcome::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pubmark_model::experiment::{AXES, AxisRow};
    use pubmark_record::experiment::Axis;
    use pubmark_record::sample_experiment;

    #[test]
    fn a_failed_cell_has_a_row_and_no_number() {
        let record = sample_experiment::all_failed();
        let text = cells(&record);
        let row = text.lines().find(|line| line.starts_with("betamq")).unwrap();
        assert!(row.ends_with(&format!("not installed{}", ",".repeat(17))), "{row}");
        assert_eq!(runs(&record).lines().count(), 3);
    }

    #[test]
    fn every_axis_is_a_column() {
        let mut record = sample_experiment::experiment();
        let axis = |row: &AxisRow| Axis { name: row.name.to_owned(), values: vec![row.example.to_owned()] };
        record.axes = AXES.iter().map(axis).collect();
        let names: Vec<&str> = AXES.iter().map(|row| row.name).collect();
        for text in [cells(&record), runs(&record)] {
            assert!(text.lines().next().unwrap().contains(&names.join(",")), "{text}");
        }
    }

    #[test]
    fn a_run_names_the_figures_that_its_verdict_excludes() {
        let mut record = sample_experiment::experiment();
        let repetition = record.cells[0].runs[0].repetition;
        for figure in record.cells[0].figures.iter_mut().filter(|it| it.figure.starts_with("latency p9")).take(2) {
            figure.excluded = vec![repetition];
        }
        let text = runs(&record);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(",excluded") && lines[1].ends_with(",latency p99;latency p99.9"), "{text}");
        assert!(lines[2].ends_with(','), "{text}");
    }

    #[test]
    fn runs_have_the_figures_of_their_repetition() {
        let record = sample_experiment::experiment();
        let text = runs(&record);
        let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let column = header.iter().position(|name| *name == "latency_p99_us").unwrap();
        let first: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
        let expected = record.cells[0].figures.iter().find(|figure| figure.figure == "latency p99").unwrap().values[0];
        // One earlier field has a comma: the limit.
        assert_eq!(first[column + 1].parse::<f64>().ok(), expected);
    }
}
