//! What is judged: a run or an experiment, brought to one shape.

use std::collections::BTreeMap;
use std::path::Path;

use crate::experiment::{CellFailure, CellFigure, ExperimentRecord};
use crate::record::{Record, Status, VerdictStatus};
use crate::store::{self, StoreError};
use crate::threshold::Measured;
use crate::threshold::metrics::{METRICS, Metric};

/// A run, or an experiment.
pub struct Subject {
    /// Its name.
    pub name: String,
    /// It was stopped before its end.
    pub is_interrupted: bool,
    /// Its cells; a run is one without a label.
    pub cells: Vec<CellFacts>,
}

/// Runs of one combination of settings.
pub struct CellFacts {
    /// Stable id.
    pub id: String,
    /// For people; empty for a run.
    pub label: String,
    /// Hash of its schedule.
    pub schedule_hash: Option<String>,
    /// Verdict of each run, with its worst reason where it was read.
    pub verdicts: Vec<(VerdictStatus, Option<String>)>,
    /// Repetitions that gave no figures.
    pub failures: Vec<CellFailure>,
    /// What was measured in each run, by metric.
    measured: BTreeMap<&'static str, Vec<Option<Measured>>>,
}

impl CellFacts {
    /// A metric in each run.
    pub fn measured(&self, metric: &Metric) -> Vec<Option<Measured>> {
        let found = self.measured.get(metric.name).cloned();
        found.unwrap_or_else(|| vec![None; self.verdicts.len()])
    }
}

impl Subject {
    /// Loads a run or an experiment from its folder or file.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn load(path: &Path) -> Result<Subject, StoreError> {
        if store::is_a::<ExperimentRecord>(path) {
            return store::load_as(path).map(of_experiment);
        }
        store::load(path).map(|record| of_run(&record))
    }
}

fn of_run(record: &Record) -> Subject {
    let reason = record.verdict.reasons.first().map(|reason| format!("{} {}", reason.code, reason.text));
    let cell = CellFacts {
        id: String::new(),
        label: String::new(),
        schedule_hash: Some(record.workload.schedule_hash.clone()),
        verdicts: vec![(record.verdict.status, reason)],
        failures: Vec::new(),
        measured: METRICS.iter().map(|metric| (metric.name, vec![metric.measured(record)])).collect(),
    };
    Subject {
        name: record.run.name.clone(),
        is_interrupted: record.run.status == Status::Interrupted,
        cells: vec![cell],
    }
}

fn of_experiment(record: ExperimentRecord) -> Subject {
    let cells = record.cells.into_iter().map(|cell| CellFacts {
        id: cell.id,
        label: cell.label,
        schedule_hash: cell.schedule_hash,
        verdicts: cell.runs.iter().map(|run| (run.verdict, None)).collect(),
        failures: cell.failures,
        measured: METRICS.iter().filter_map(|metric| Some((metric.name, of_cell(metric, &cell.figures)?))).collect(),
    });
    Subject { name: record.name, is_interrupted: record.status == Status::Interrupted, cells: cells.collect() }
}

/// A metric in each run of a cell; `None` where the cell has no such figure.
fn of_cell(metric: &Metric, figures: &[CellFigure]) -> Option<Vec<Option<Measured>>> {
    let figure = figures.iter().find(|figure| figure.figure == metric.figure)?;
    let measured = |(run, value): (usize, &Option<f64>)| {
        let lower = figure.lower.as_ref().and_then(|lower| lower.values.get(run).copied().flatten());
        let upper = (*value)?;
        let interval = metric.from_bounds([lower.map_or(upper, |lower| lower.min(upper)), upper]);
        Some(Measured { interval, few_samples: false, held_up: false })
    };
    Some(figure.values.iter().enumerate().map(measured).collect())
}
