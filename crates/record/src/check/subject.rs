//! The subject of a check: a run or an experiment, in one common form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pubmark_model::experiment::axis_title;

use crate::comparison::{Load, settings_of};
use crate::custom::CustomMetric;
use crate::experiment::{Cell, CellFailure, CellFigure, CellMetric, CellRun, ExperimentRecord, LimitedValue};
use crate::figures::Figure;
use crate::record::{Record, Status, VerdictStatus};
use crate::store::{self, StoreError};
use crate::threshold::metrics::{METRICS, Metric, is_held_up};
use crate::threshold::{Interval, Limited, MeasuredFigure, Objectives, ThresholdError};
use crate::unit;

/// A run, or an experiment.
pub struct Subject {
    /// Name of the run or experiment.
    pub name: String,
    /// The run or experiment was stopped before its end.
    pub is_interrupted: bool,
    /// The record has the limits that its runs were made with; an experiment of an older version does not.
    pub has_own_limits: bool,
    /// Cells; a run is one cell without a label.
    pub cells: Vec<CellFacts>,
}

/// Runs of one combination of settings.
pub struct CellFacts {
    /// Stable id.
    pub id: String,
    /// Label for people; empty for a run.
    pub label: String,
    /// Hash of the schedule.
    pub schedule_hash: Option<String>,
    /// Value on every axis of the experiment, by which cells are matched; empty for a run.
    pub(super) axes: BTreeMap<String, String>,
    /// What determines the load where the schedule is not fixed before the run.
    pub(super) load: Load,
    /// Settings besides the load and the system, by name.
    pub(super) settings: Vec<(String, String)>,
    /// Limits that its runs were made with, or why they cannot be read; `None` without limits.
    pub(super) own_limits: Option<Result<Objectives, ThresholdError>>,
    /// Verdict of each run, with its worst reason if it was read.
    pub verdicts: Vec<(VerdictStatus, Option<String>)>,
    /// Repetitions without figures.
    pub failures: Vec<CellFailure>,
    /// Number of repetitions that were planned.
    pub(super) repetitions: u32,
    /// Values of each metric, by run.
    measured: BTreeMap<&'static str, Vec<Option<MeasuredFigure>>>,
    /// User-defined metrics.
    custom: Vec<OwnFacts>,
}

/// A user-defined metric.
struct OwnFacts {
    /// Name without `custom.`.
    name: String,
    /// Symbol of the declared unit.
    symbol: String,
    /// Values in each run, in the unit of figures.
    runs: Vec<Option<MeasuredFigure>>,
}

impl CellFacts {
    /// Values of a metric in each run.
    pub fn measured(&self, metric: &Limited) -> Vec<Option<MeasuredFigure>> {
        let found = match metric {
            Limited::Known(metric) => self.measured.get(metric.name).cloned(),
            Limited::Custom { symbol, .. } => {
                let own = self.custom.iter().find(|own| Some(&*own.name) == metric.custom_name());
                own.and_then(|own| own.measured(symbol))
            }
        };
        found.unwrap_or_else(|| vec![None; self.verdicts.len()])
    }

    /// The same as [`CellFacts::measured`] for a comparison with `other`: a user-defined metric in the unit that it has there.
    pub(super) fn measured_as_in(&self, other: &CellFacts, metric: &Limited) -> Vec<Option<MeasuredFigure>> {
        let of = |cell: &CellFacts| cell.custom.iter().position(|own| Some(&*own.name) == metric.custom_name());
        let pair = of(self).zip(of(other)).map(|(mine, theirs)| (&self.custom[mine], &other.custom[theirs]));
        match pair.filter(|(mine, theirs)| mine.symbol != theirs.symbol) {
            None => self.measured(metric),
            Some((mine, theirs)) => mine.in_unit_of(theirs).unwrap_or_else(|| vec![None; self.verdicts.len()]),
        }
    }
}

impl OwnFacts {
    /// Values in the unit of a limit; `None` if the units are incompatible.
    fn measured(&self, wanted: &str) -> Option<Vec<Option<MeasuredFigure>>> {
        let in_own = unit::worth(&self.symbol, &self.symbol)?;
        Some(self.times(unit::worth(&self.symbol, wanted)? / in_own))
    }

    /// Values in the unit that the metric has elsewhere; `None` if that is one of another kind.
    fn in_unit_of(&self, other: &OwnFacts) -> Option<Vec<Option<MeasuredFigure>>> {
        // An empty symbol is a plain number here and not "any unit".
        unit::worth(&self.symbol, &other.symbol).filter(|_| !other.symbol.is_empty())?;
        Some(self.times(1.0 / unit::worth(&other.symbol, &other.symbol)?))
    }

    fn times(&self, factor: f64) -> Vec<Option<MeasuredFigure>> {
        let measured = |run: &Option<MeasuredFigure>| {
            let found = (*run)?;
            Some(MeasuredFigure { interval: found.interval.map(|value| value * factor), ..found })
        };
        self.runs.iter().map(measured).collect()
    }

    fn of_run(metric: &CustomMetric, record: &Record) -> OwnFacts {
        let figure = Figure::custom(&metric.name, &metric.unit);
        let excluded = !figure.is_usable(record);
        let held_up = figure.is_of_times() && is_held_up(record);
        let measured =
            |bounds| MeasuredFigure { partial: metric.partial, excluded, held_up, ..MeasuredFigure::within(bounds) };
        let runs = vec![metric.bounds(&metric.unit).map(measured)];
        OwnFacts { name: metric.name.clone(), symbol: metric.unit.clone(), runs }
    }

    fn of_cell(metric: &CellMetric, cell: &[CellRun]) -> OwnFacts {
        let (name, symbol) = (metric.figure.figure.clone(), metric.unit.clone());
        let runs = runs_of(&metric.figure, &Figure::custom(&name, &symbol), cell, MeasuredFigure::within);
        OwnFacts { name, symbol, runs }
    }
}

impl Subject {
    /// Loads a run or an experiment from its folder or file.
    ///
    /// # Errors
    /// It does not exist, or cannot be read.
    pub fn load(path: &Path) -> Result<Subject, StoreError> {
        if store::is_a::<ExperimentRecord>(path) {
            return store::load_as(path).map(of_experiment);
        }
        store::load(path).map(|record| of_run(&record))
    }

    /// Loads the repetitions of one run as runs of one cell; a single folder is loaded as it is. `None` without
    /// folders.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn load_all(paths: &[PathBuf]) -> Result<Option<Subject>, StoreError> {
        let mut all = paths.iter().map(|path| Subject::load(path));
        let Some(mut subject) = all.next().transpose()? else { return Ok(None) };
        for other in all {
            subject.add(other?);
        }
        Ok(Some(subject))
    }

    /// Adds another repetition.
    fn add(&mut self, other: Subject) {
        self.is_interrupted |= other.is_interrupted;
        for (mine, theirs) in self.cells.iter_mut().zip(other.cells) {
            mine.add(theirs);
        }
    }
}

impl CellFacts {
    fn add(&mut self, other: CellFacts) {
        let (before, more) = (self.verdicts.len(), other.verdicts.len());
        self.verdicts.extend(other.verdicts);
        self.failures.extend(other.failures);
        self.repetitions = self.repetitions.saturating_add(other.repetitions);
        for (name, runs) in other.measured {
            self.measured.entry(name).or_insert_with(|| vec![None; before]).extend(runs);
        }
        for theirs in other.custom {
            match self.custom.iter_mut().find(|mine| (&mine.name, &mine.symbol) == (&theirs.name, &theirs.symbol)) {
                Some(mine) => mine.runs.extend(theirs.runs),
                None => self.custom.push(OwnFacts { runs: [vec![None; before], theirs.runs].concat(), ..theirs }),
            }
        }
        // A metric that a record lacks was not measured in its run.
        self.measured.values_mut().for_each(|runs| runs.resize(before + more, None));
        self.custom.iter_mut().for_each(|own| own.runs.resize(before + more, None));
    }
}

/// A run as one cell.
pub(super) fn of_run(record: &Record) -> Subject {
    let reason = record.verdict.reasons.first().map(|reason| format!("{} {}", reason.code, reason.text));
    let cell = CellFacts {
        id: String::new(),
        label: String::new(),
        schedule_hash: Some(record.workload.schedule_hash.clone()),
        axes: BTreeMap::new(),
        load: Load::of_run(record),
        settings: settings_of(record).map(|(name, value)| (name.to_owned(), value)).collect(),
        own_limits: own_limits(record.objectives.iter().map(|objective| objective.limit.as_str())),
        verdicts: vec![(record.verdict.status, reason)],
        failures: Vec::new(),
        repetitions: 1,
        measured: METRICS.iter().map(|metric| (metric.name, vec![of_record(metric, record)])).collect(),
        custom: record.custom.iter().map(|metric| OwnFacts::of_run(metric, record)).collect(),
    };
    Subject {
        name: record.run.name.clone(),
        is_interrupted: record.run.status == Status::Interrupted,
        has_own_limits: true,
        cells: vec![cell],
    }
}

/// An experiment.
pub(super) fn of_experiment(record: ExperimentRecord) -> Subject {
    let loads: Vec<Load> = record.cells.iter().map(|cell| Load::of_cell(&record, cell)).collect();
    let of_all = [
        ("pubmark", record.pubmark_version.clone()),
        ("processor", record.environment.cpu.clone()),
        ("cores", record.environment.cores.to_string()),
        ("kernel", record.environment.kernel.clone()),
    ];
    let of_all = of_all.map(|(name, value)| (name.to_owned(), value)).to_vec();
    // A cell that was refused before any run has no limits in any version.
    let has_own_limits = record.cells.iter().all(|cell| cell.objectives.is_some() || cell.runs.is_empty());
    let cells = record.cells.into_iter().zip(loads).map(|(cell, load)| CellFacts {
        load,
        settings: [settings_of_cell(&cell), of_all.clone()].concat(),
        axes: cell.settings,
        id: cell.id,
        label: cell.label,
        schedule_hash: cell.schedule_hash,
        own_limits: own_limits(cell.objectives.iter().flatten().map(String::as_str)),
        verdicts: cell.runs.iter().map(|run| (run.verdict, None)).collect(),
        failures: cell.failures,
        repetitions: record.repetitions,
        measured: METRICS
            .iter()
            .filter_map(|metric| Some((metric.name, of_cell(metric, &cell.figures, &cell.runs)?)))
            .collect(),
        custom: cell.custom.iter().map(|metric| OwnFacts::of_cell(metric, &cell.runs)).collect(),
    });
    Subject {
        name: record.name,
        is_interrupted: record.status == Status::Interrupted,
        has_own_limits,
        cells: cells.collect(),
    }
}

/// The axes of a cell besides the system.
fn settings_of_cell(cell: &Cell) -> Vec<(String, String)> {
    let settings = cell.settings.iter().filter(|(axis, _)| *axis != "system");
    settings.map(|(axis, value)| (axis_title(axis).to_owned(), value.clone())).collect()
}

/// The limits in a record.
fn own_limits<'a>(limits: impl Iterator<Item = &'a str>) -> Option<Result<Objectives, ThresholdError>> {
    let limits: Vec<&str> = limits.collect();
    (!limits.is_empty()).then(|| Objectives::recorded(&limits.join(",")))
}

/// Value of a metric in a run.
fn of_record(metric: &Metric, record: &Record) -> Option<MeasuredFigure> {
    let excluded = !metric.of_figure().is_usable(record);
    metric.measured(record).map(|measured| MeasuredFigure { excluded, ..measured })
}

/// Values of a metric in each run of a cell; `None` if the cell lacks the figure.
fn of_cell(metric: &Metric, figures: &[CellFigure], runs: &[CellRun]) -> Option<Vec<Option<MeasuredFigure>>> {
    let found = figures.iter().find(|figure| figure.figure == metric.figure)?;
    let measured = |bounds| MeasuredFigure::within(metric.from_bounds(bounds));
    Some(runs_of(found, metric.of_figure(), runs, measured))
}

/// What limits and changes of a figure are judged by in each run of a cell. Values that the verdict of their run excludes are marked.
fn runs_of(
    found: &CellFigure,
    figure: &Figure<'_>,
    runs: &[CellRun],
    measured: impl Fn(Interval) -> MeasuredFigure,
) -> Vec<Option<MeasuredFigure>> {
    let of_run = |run: usize| {
        let excluded = found.shown_only || found.is_excluded_from_limits(figure, runs, run);
        let figure = match found.limited.get(run).copied().flatten() {
            Some(LimitedValue { lower, upper, few_samples, held_up, partial }) => {
                MeasuredFigure { few_samples, held_up, partial, ..measured([lower, upper]) }
            }
            None => measured(found.bounds(run)?),
        };
        Some(MeasuredFigure { excluded, ..figure })
    };
    (0..found.values.len()).map(of_run).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::check::{Demands, Kind, Outcome, judge};
    use crate::evaluation::{CellInput, RunInput, evaluate};
    use crate::record::Reason;
    use crate::requests::{RequestBooks, RequestFigures};
    use crate::threshold::Bound;
    use crate::{objectives, sample, sample_experiment};

    #[test]
    fn of_several_repetitions_the_worst_counts() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str, lost: u64| {
            let mut record = sample::record();
            record.delivery.messages.lost = lost;
            record.delivery.messages.delivered = record.delivery.messages.expected - lost;
            record.custom = if lost > 0 { vec![] } else { vec![sample::custom("jitter", "ms", [0.5, 1.5])] };
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
            folder
        };
        let (bad, good) = (folder("a", 5_000), folder("b", 0));
        let failed = |paths: &[PathBuf]| {
            let subject = Subject::load_all(paths).unwrap().unwrap();
            assert_eq!(subject.cells[0].verdicts.len(), paths.len());
            let require = Some(Objectives::parse("loss<1%").unwrap());
            judge(&subject, &Demands { require, ..Demands::default() }, None).unwrap().failed()
        };
        assert_eq!(failed(std::slice::from_ref(&good)), 0);
        assert_eq!(failed(std::slice::from_ref(&bad)), 1);
        assert_eq!(failed(&[bad.clone(), good.clone()]), 1, "the last one is not the only one");
        let both = Subject::load_all(&[bad, good]).unwrap().unwrap();
        assert_eq!(both.cells[0].custom[0].runs.len(), 2, "not measured in the first");
        assert!(both.cells[0].custom[0].runs[0].is_none() && both.cells[0].custom[0].runs[1].is_some());
        assert!(Subject::load_all(&[]).unwrap().is_none());
    }

    /// An experiment of one run.
    fn experiment_of(record: &Record) -> ExperimentRecord {
        experiment_of_runs(std::slice::from_ref(record))
    }

    /// An experiment of one cell with these runs.
    fn experiment_of_runs(records: &[Record]) -> ExperimentRecord {
        let run = |(record, number): (&Record, u32)| RunInput {
            run: CellRun {
                repetition: number,
                order: number,
                folder: format!("run-{number}"),
                verdict: record.verdict.status,
                waited_ms: 0,
                busy: false,
            },
            record: record.clone(),
            latency: None,
            latency_lower: None,
        };
        let settings = BTreeMap::from([("system".to_owned(), "one".to_owned())]);
        let (id, label, failures) = ("one".to_owned(), "one".to_owned(), vec![]);
        let cells = [CellInput { id, label, settings, runs: records.iter().zip(1..).map(run).collect(), failures }];
        let cells = evaluate(&[], 1, &cells).unwrap().cells;
        let written = serde_json::to_string(&ExperimentRecord { cells, ..sample_experiment::experiment() }).unwrap();
        serde_json::from_str(&written).unwrap()
    }

    /// A run of 985 requests that were answered and 15 that pubmark made late.
    fn with_requests() -> Record {
        let mut record = sample::record();
        let outcomes =
            RequestBooks { sent: 1_000, answered: 985, late: 15, late_by_generator: 15, ..RequestBooks::default() };
        let round_trip = record.latency.total.clone();
        record.requests = Some(RequestFigures { outcomes, round_trip, ..RequestFigures::default() });
        record
    }

    /// Removes the percentiles of distributions that are limited, as in a run with few messages.
    fn short(mut record: Record) -> Record {
        let latency = &mut record.latency;
        let bounds = [&mut latency.total, &mut latency.service, &mut record.requests.as_mut().unwrap().round_trip];
        let pairs = bounds.into_iter().flatten().flat_map(|found| [Some(&mut found.upper), found.lower.as_mut()]);
        let waits = [latency.backpressure.as_mut(), latency.backpressure_lower.as_mut()];
        for summary in pairs.chain(waits).flatten() {
            (summary.p50, summary.p90, summary.p95, summary.p99, summary.p999) = (None, None, None, None, None);
        }
        record
    }

    fn with_reason(mut record: Record, code: &str, status: VerdictStatus) -> Record {
        record.verdict.status = status;
        let (text, hint) = (String::new(), String::new());
        record.verdict.reasons = vec![Reason { code: code.to_owned(), status, text, hint }];
        record
    }

    #[test]
    fn an_experiment_of_one_run_is_judged_as_the_run() {
        let with_own = |partial: bool| {
            let jitter = CustomMetric { partial, ..sample::custom("jitter", "ms", [0.5, 1.5]) };
            Record { custom: vec![jitter, sample::custom("energy", "mJ", [20.0, 20.0])], ..with_requests() }
        };
        let records = [
            ("as usual", with_own(false)),
            ("of a partial log", with_own(true)),
            ("short", short(with_own(false))),
            ("held up", with_reason(with_own(false), "V28", VerdictStatus::Suspect)),
            ("short and held up", with_reason(short(with_own(false)), "V01", VerdictStatus::Suspect)),
            ("without usable times", with_reason(with_own(false), "V22", VerdictStatus::Invalid)),
        ];
        let own = ["custom.jitter", "custom.energy"]
            .map(|name| Limited::Custom { name: name.to_owned(), symbol: String::new() });
        for (what, record) in &records {
            let (run, experiment) = (of_run(record), of_experiment(experiment_of(record)));
            for metric in METRICS.iter().map(Limited::Known).chain(own.iter().cloned()) {
                let of = |subject: &Subject| subject.cells[0].measured(&metric);
                assert_eq!(of(&experiment), of(&run), "{} of a run {what}", metric.name());
            }
        }
    }

    #[test]
    fn what_the_verdict_of_one_of_two_runs_excludes_is_excluded_in_the_experiment() {
        let invalid =
            |record: Record| ["V22", "V01"].map(|code| with_reason(record.clone(), code, VerdictStatus::Invalid));
        // A short run has no value of a percentile, and nevertheless a limit is compared with it.
        for record in [invalid(sample::record()), invalid(short(with_requests()))].concat() {
            let subject = of_experiment(experiment_of_runs(&[sample::record(), record.clone()]));
            let alone = of_run(&record);
            for metric in METRICS.iter().map(Limited::Known) {
                let both = subject.cells[0].measured(&metric);
                let expected = alone.cells[0].measured(&metric)[0].map(|measured| measured.excluded);
                assert_eq!(both[1].map(|measured| measured.excluded), expected, "{}", metric.name());
                assert!(!both[0].is_some_and(|measured| measured.excluded), "{}", metric.name());
            }
        }
    }

    #[test]
    fn a_limit_of_a_short_run_has_the_same_outcome_in_an_experiment() {
        let outcomes = |subject: &Subject, limits: &str| -> Vec<Outcome> {
            let require = Some(Objectives::parse(limits).unwrap());
            let rows = judge(subject, &Demands { require, ..Demands::default() }, None).unwrap().rows;
            rows.iter().filter(|row| row.kind == Kind::Required).map(|row| row.outcome).collect()
        };
        let record = short(with_requests());
        for subject in [of_run(&record), of_experiment(experiment_of(&record))] {
            assert_eq!(outcomes(&subject, "p99<1h,p50<1h"), [Outcome::Passed; 2]);
            assert_eq!(outcomes(&subject, "answered>=99%,answered>=98%"), [Outcome::Undecided, Outcome::Passed]);
        }
    }

    #[test]
    fn the_limits_that_runs_were_made_with_are_checked_in_an_experiment() {
        let mut record = sample::record();
        objectives::assess(&mut record, &Objectives::parse("p50<1us,loss=0").unwrap());
        let mut experiment = experiment_of(&record);
        let checked = |experiment: &ExperimentRecord| {
            judge(&of_experiment(experiment.clone()), &Demands::default(), None).unwrap()
        };
        let found = checked(&experiment);
        let of_limits = found.rows.iter().filter(|row| row.kind == Kind::Required);
        let outcomes: Vec<(&str, Outcome)> = of_limits.map(|row| (row.name.as_str(), row.outcome)).collect();
        assert_eq!(outcomes, [("p50<1us", Outcome::Failed), ("loss=0", Outcome::Passed)]);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        // A record of an older version.
        experiment.cells[0].objectives = None;
        let found = checked(&experiment);
        assert!(found.rows.iter().all(|row| row.kind != Kind::Required));
        assert!(found.notes[0].contains("limits of its runs are not checked"), "{:?}", found.notes);
    }

    #[test]
    fn limits_of_older_records_are_read_as_their_version_read_them() {
        let mut record = sample::record();
        let (all, bytes) = ("delivered>=1", "memory<50000000");
        objectives::assess(&mut record, &Objectives::parse("delivered>=100%,memory<50MB").unwrap());
        record.objectives[0].limit = all.to_owned();
        record.objectives[1].limit = bytes.to_owned();
        let written = serde_json::to_string(&record).unwrap();
        let record: Record = serde_json::from_str(&written).unwrap();
        for subject in [of_run(&record), of_experiment(experiment_of(&record))] {
            let own = subject.cells[0].own_limits.as_ref().unwrap().as_ref().unwrap();
            let bounds: Vec<_> = own.clauses().iter().map(|clause| (clause.text.as_str(), clause.bound)).collect();
            assert_eq!(bounds, [(all, Bound::Value(1.0)), (bytes, Bound::Value(50e6))]);
        }
        assert!(Objectives::parse(all).is_err() && Objectives::parse(bytes).is_err(), "new limits are refused");
    }
}
