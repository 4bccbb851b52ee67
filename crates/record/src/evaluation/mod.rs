//! Evaluates an experiment: from the records of its runs to cells with figures, contests with winners, and cautions.
//!
//! Start with [`evaluate`]. It does no I/O and starts no process: the same runs always give the same result.

mod cautions;
pub mod contests;
#[cfg(test)]
mod honesty;
mod merging;
pub mod pair;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use pubmark_metrics::distribution::NotAHistogram;
use pubmark_model::experiment::same_schedule_axes;

use crate::custom;
use crate::experiment::{
    Axis, Cell, CellFailure, CellFigure, CellMetric, CellRun, Contest, LimitedValue, LowerBounds, system_failures,
};
use crate::figures::{FIGURES, Figure, Judged, Unit, custom_figures, delivered_share};
use crate::latency::{lower, upper};
use crate::record::{Curve, LatencyBounds, Record, Summary, VerdictStatus};
use crate::statistics::Scale;
use crate::statistics::description::{mean_on, median, quartiles};
use crate::statistics::interval::interval;
use crate::threshold::{Limited, MeasuredFigure};
use contests::{Entrant, Match};

pub use cautions::{MACHINE_CHANGED, NODES_CHANGED};

/// The preferred axis of contests.
const SYSTEM: &str = "system";

/// One combination of settings with the results of its runs.
#[derive(Clone, Debug)]
pub struct CellInput {
    /// Stable id, as [`Cell::id`].
    pub id: String,
    /// Label for people, as [`Cell::label`].
    pub label: String,
    /// Value of the cell on every axis.
    pub settings: BTreeMap<String, String>,
    /// Usable runs, in order of repetition.
    pub runs: Vec<RunInput>,
    /// Repetitions without figures, including invalid runs.
    pub failures: Vec<CellFailure>,
}

/// A run that is usable, fully or except for its times.
#[derive(Clone, Debug)]
pub struct RunInput {
    /// Entry of the run in the experiment's record.
    pub run: CellRun,
    /// Record of the run.
    pub record: Record,
    /// Latency histogram in HdrHistogram's V2 format, ns: the file `latency.hdr` of the run's folder. `None` if it does
    /// not exist.
    pub latency: Option<Vec<u8>>,
    /// The same for the lower bounds: the file `latency_lower.hdr`.
    pub latency_lower: Option<Vec<u8>>,
}

impl RunInput {
    /// Whether the times of the run may be used. All other figures of a usable invalid run may be.
    fn has_times(&self) -> bool {
        self.record.verdict.status != VerdictStatus::Invalid
    }
}

/// Result of the evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The cells, in the order given.
    pub cells: Vec<Cell>,
    /// Contests by every judged figure.
    pub contests: Vec<Contest>,
    /// What a reader should know before quoting the results, one sentence each.
    pub cautions: Vec<String>,
}

/// Why an experiment cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// Runs that must have the same schedule have different ones.
    #[error("`{first}` and `{other}` had different schedules ({first_hash} and {other_hash}): they cannot be compared")]
    DifferentSchedules {
        /// Folder of a run.
        first: String,
        /// Hash of its schedule.
        first_hash: String,
        /// Folder of the first run that differs from it.
        other: String,
        /// Hash of its schedule.
        other_hash: String,
    },
    /// A histogram cannot be read.
    #[error("failed to read a latency histogram of `{cell}`")]
    Histogram {
        /// Id of the cell.
        cell: String,
        /// What is wrong with it.
        #[source]
        source: NotAHistogram,
    },
}

/// Evaluates an experiment. `seed` determines the draws of bootstrap intervals.
pub fn evaluate(axes: &[Axis], seed: u64, cells: &[CellInput]) -> Result<Evaluation, EvaluationError> {
    same_schedules(cells)?;
    let judged: Vec<Cell> = cells.iter().map(|cell| cell_of(cell, seed)).collect::<Result<_, _>>()?;
    let contests = contests::decide(&matches(axes, cells));
    let cautions = cautions::all(cells, &contests);
    Ok(Evaluation { cells: judged, contests, cautions })
}

/// Id of a cell: its values on all axes joined by `_`, in order; characters that are not suitable for a file name
/// become `-`.
pub fn cell_id(axes: &[Axis], settings: &BTreeMap<String, String>) -> String {
    let kept =
        |letter: char| if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '=') { letter } else { '-' };
    let values = axes.iter().filter_map(|axis| settings.get(&axis.name));
    values.map(|value| value.chars().map(kept).collect::<String>()).collect::<Vec<_>>().join("_")
}

/// Label of a cell: its values on the axes that have more than one value, or on the first axis if none has.
pub fn cell_label(axes: &[Axis], settings: &BTreeMap<String, String>) -> String {
    let value = |axis: &Axis| {
        let value = settings.get(&axis.name)?;
        // A bare number is not understandable without its axis.
        Some(if value.starts_with(|letter: char| letter.is_ascii_digit()) {
            format!("{} {value}", axis.name)
        } else {
            value.clone()
        })
    };
    let varied: Vec<String> = axes.iter().filter(|axis| axis.values.len() > 1).filter_map(value).collect();
    if varied.is_empty() {
        return axes.first().and_then(value).unwrap_or_default();
    }
    varied.join(", ")
}

/// Returns an error for runs with different schedules in cells that differ only in [`same_schedule_axes`].
fn same_schedules(cells: &[CellInput]) -> Result<(), EvaluationError> {
    let same = same_schedule_axes();
    let mut first_of: BTreeMap<Vec<(&str, &str)>, (&str, &str)> = BTreeMap::new();
    for cell in cells {
        let load: Vec<(&str, &str)> = cell
            .settings
            .iter()
            .filter(|(axis, _)| !same.contains(&axis.as_str()))
            .map(|(axis, value)| (axis.as_str(), value.as_str()))
            .collect();
        for run in &cell.runs {
            let (folder, hash) = (run.run.folder.as_str(), run.record.workload.schedule_hash.as_str());
            let (first, first_hash) = *first_of.entry(load.clone()).or_insert((folder, hash));
            if hash != first_hash {
                return Err(EvaluationError::DifferentSchedules {
                    first: first.to_owned(),
                    first_hash: first_hash.to_owned(),
                    other: folder.to_owned(),
                    other_hash: hash.to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn cell_of(cell: &CellInput, seed: u64) -> Result<Cell, EvaluationError> {
    let first = cell.runs.first().map(|run| &run.record);
    let upper = merged(cell, |run| Some((run.latency.as_deref()?, upper(&run.record.latency.total)?)))?;
    let lower = merged(cell, |run| Some((run.latency_lower.as_deref()?, lower(&run.record.latency.total)?)))?;
    let (lower, latency_curve_lower) = lower.map(|(summary, curve)| (Some(summary), Some(curve))).unwrap_or_default();
    let (latency, latency_curve) = match upper {
        Some((upper, curve)) => (Some(LatencyBounds { upper, lower }), Some(curve)),
        None => (None, None),
    };
    Ok(Cell {
        id: cell.id.clone(),
        label: cell.label.clone(),
        settings: cell.settings.clone(),
        system: first.map(|record| record.system.clone()),
        schedule_hash: first.map(|record| record.workload.schedule_hash.clone()),
        offered_per_s: first.map(|record| record.throughput.offered_per_s),
        runs: cell.runs.iter().map(|run| run.run.clone()).collect(),
        failures: cell.failures.clone(),
        objectives: Some(objectives(cell)),
        figures: if cell.runs.is_empty() {
            Vec::new()
        } else {
            let concerns = |figure: &&Figure| cell.runs.iter().any(|run| figure.concerns(&run.record));
            FIGURES.iter().filter(concerns).map(|figure| cell_figure(figure, "", cell, seed)).collect()
        },
        custom: custom_metrics(cell, seed),
        latency_curve_lower: latency_curve_lower.filter(|_| latency.is_some()),
        latency,
        latency_curve,
    })
}

/// Limits that the runs of a cell were made with, as written, each once.
fn objectives(cell: &CellInput) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for objective in cell.runs.iter().flat_map(|run| &run.record.objectives) {
        if !found.contains(&objective.limit) {
            found.push(objective.limit.clone());
        }
    }
    found
}

/// User-defined metrics over the runs of a cell.
fn custom_metrics(cell: &CellInput, seed: u64) -> Vec<CellMetric> {
    let figures = custom_figures(cell.runs.iter().map(|run| &run.record));
    let of_cell = |figure: Figure| {
        let unit =
            cell.runs.iter().find_map(|run| custom::find(&run.record.custom, figure.name)).map(|found| &found.unit);
        let unit = unit.cloned().unwrap_or_default();
        CellMetric { figure: cell_figure(&figure, &unit, cell, seed), unit }
    };
    figures.into_iter().map(of_cell).collect()
}

/// Runs whose times are used for a cell: those whose times are usable; if there are none, all runs, for information
/// only.
fn runs_with_times(cell: &CellInput) -> Vec<&RunInput> {
    let usable: Vec<&RunInput> = cell.runs.iter().filter(|run| run.has_times()).collect();
    if usable.is_empty() { cell.runs.iter().collect() } else { usable }
}

/// One bound of the latency over all runs of a cell; `None` if the histogram of a run is missing, because the other
/// runs would not represent the cell.
fn merged<'a>(
    cell: &'a CellInput,
    part: impl Fn(&'a RunInput) -> Option<(&'a [u8], &'a Summary)>,
) -> Result<Option<(Summary, Curve)>, EvaluationError> {
    let runs = runs_with_times(cell).into_iter().filter(|run| run.record.latency.total.is_some());
    let parts: Option<Vec<_>> = runs.map(part).collect();
    let Some(parts) = parts else { return Ok(None) };
    merging::merge(&parts).map_err(|source| EvaluationError::Histogram { cell: cell.id.clone(), source })
}

/// A figure over the runs of a cell; `symbol` is the unit of a user-defined metric.
fn cell_figure(figure: &Figure, symbol: &str, cell: &CellInput, seed: u64) -> CellFigure {
    let limited_by = Limited::of_figure(figure, symbol);
    let shown_only = cell.runs.iter().all(|run| !figure.is_usable(&run.record));
    let counts = |run: &RunInput| shown_only || figure.is_usable(&run.record);
    let counted = |values: &[Option<f64>]| -> Vec<f64> {
        cell.runs.iter().zip(values).filter(|(run, _)| counts(run)).filter_map(|(_, value)| *value).collect()
    };
    let records = || cell.runs.iter().map(|run| &run.record);
    let values: Vec<Option<f64>> = records().map(|record| figure.value(record)).collect();
    let lower: Vec<Option<f64>> = records().map(|record| figure.lower(record)).collect();
    let is_bounded = values.iter().zip(&lower).all(|(value, lower)| value.is_some() == lower.is_some());
    let lower: Vec<Option<f64>> =
        lower.into_iter().zip(&values).map(|(lower, value)| Some(lower?.min((*value)?))).collect();
    // Means of both bounds on different scales could be in reverse order.
    let both = [counted(&values), if is_bounded { counted(&lower) } else { vec![] }];
    let scale = figure.scale.for_values(both.iter().flatten());
    let over = |values: Vec<Option<f64>>| {
        let counted = counted(&values);
        LowerBounds {
            values,
            mean: mean_on(scale, &counted),
            median: median(&counted),
            quartiles: quartiles(&counted),
            interval: interval(&counted, scale, seed),
        }
    };
    let LowerBounds { values, mean, median, quartiles, interval } = over(values);
    let lower = (is_bounded && mean.is_some()).then(|| over(lower));
    let excluded =
        cell.runs.iter().zip(&values).filter(|(run, value)| value.is_some() && !figure.is_usable(&run.record));
    let excluded = excluded.map(|(run, _)| run.run.repetition).collect();
    let figure = figure.name.to_owned();
    let found =
        CellFigure { figure, values, mean, median, quartiles, interval, lower, shown_only, excluded, limited: vec![] };
    CellFigure { limited: limited_values(&found, limited_by, cell), ..found }
}

/// What a limit is compared with in each run; empty if it is the value with its lower bound in all of them.
fn limited_values(figure: &CellFigure, limited: Option<Limited>, cell: &CellInput) -> Vec<Option<LimitedValue>> {
    let Some(limited) = limited else { return vec![] };
    let of_run = |(position, run): (usize, &RunInput)| {
        let measured = limited.measured(&run.record)?;
        let [lower, upper] = measured.interval;
        let is_plain =
            MeasuredFigure::within([lower, upper]) == measured && figure.bounds(position) == Some([lower, upper]);
        let MeasuredFigure { few_samples, held_up, partial, .. } = measured;
        let is_known = lower.is_finite() && upper.is_finite();
        (is_known && !is_plain).then_some(LimitedValue { lower, upper, few_samples, held_up, partial })
    };
    let found: Vec<Option<LimitedValue>> = cell.runs.iter().enumerate().map(of_run).collect();
    if found.iter().all(Option::is_none) { vec![] } else { found }
}

/// All matches: for every axis of contests and every combination of the other axes, each figure that applies.
fn matches(axes: &[Axis], cells: &[CellInput]) -> Vec<Match> {
    contest_axes(cells).into_iter().flat_map(|axis| matches_along(axis, axes, cells)).collect()
}

/// Axes of contests: systems if there are several, otherwise each axis that was varied at the same load.
fn contest_axes(cells: &[CellInput]) -> Vec<&'static str> {
    let is_varied =
        |axis: &&str| cells.iter().filter_map(|cell| cell.settings.get(*axis)).collect::<BTreeSet<_>>().len() > 1;
    if is_varied(&SYSTEM) {
        return vec![SYSTEM];
    }
    same_schedule_axes().into_iter().filter(is_varied).collect()
}

fn matches_along(axis: &str, axes: &[Axis], cells: &[CellInput]) -> Vec<Match> {
    let mut groups: Vec<(BTreeMap<&str, &str>, Vec<&CellInput>)> = Vec::new();
    for cell in cells {
        let others: BTreeMap<&str, &str> = cell
            .settings
            .iter()
            .filter(|(name, _)| *name != axis)
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        match groups.iter_mut().find(|(known, _)| *known == others) {
            Some((_, members)) => members.push(cell),
            None => groups.push((others, vec![cell])),
        }
    }
    let is_varied = |name: &str| axes.iter().any(|axis| axis.name == name && axis.values.len() > 1);
    groups
        .into_iter()
        .flat_map(|(others, members)| {
            let among: BTreeMap<String, String> = others
                .into_iter()
                .filter(|(name, _)| is_varied(name))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            FIGURES.iter().filter_map(move |figure| match_of(figure, axis, &among, &members))
        })
        .collect()
}

fn match_of(
    figure: &'static Figure<'static>,
    axis: &str,
    among: &BTreeMap<String, String>,
    cells: &[&CellInput],
) -> Option<Match> {
    let entrants: Vec<Entrant> = cells
        .iter()
        .filter(|cell| why_left_out(cell).is_none())
        .filter(|cell| cell.runs.iter().all(|run| figure.judged.applies(run.record.settings.flood)))
        .filter_map(|cell| {
            let (lower, values) = bounds_of_all(figure, cell)?.into_iter().map(|[lower, upper]| (lower, upper)).unzip();
            let started_at = usable_runs(figure, cell).map(|run| run.record.run.started_at.clone()).collect();
            let (delivered, may_be_higher) = (delivered_in_mean(figure, cell), may_be_higher(figure, cell));
            Some(Entrant { cell: cell.id.clone(), values, lower, started_at, delivered, may_be_higher })
        })
        .collect();
    (entrants.len() >= 2).then(|| Match { axis: axis.to_owned(), among: among.clone(), figure, entrants })
}

/// Runs of a cell whose verdict permits the use of a figure. The others are spoilt by the measurement, and were repeated.
fn usable_runs<'a>(figure: &Figure, cell: &'a CellInput) -> impl Iterator<Item = &'a RunInput> {
    cell.runs.iter().filter(move |run| figure.is_usable(&run.record))
}

/// Mean share delivered in the runs whose latencies are compared; `None` for other figures, and if it is unknown for a run.
fn delivered_in_mean(figure: &Figure, cell: &CellInput) -> Option<f64> {
    if figure.judged != Judged::OpenLoop {
        return None;
    }
    let shares: Option<Vec<f64>> = usable_runs(figure, cell).map(|run| delivered_share(&run.record)).collect();
    mean_on(Scale::Plain, &shares?)
}

/// Whether the rate or the share delivered of a flood may be higher than what was measured by any amount, because pubmark or the machine
/// was the limit of a run that was left out. The verdict of a run that counts may say the same of its rate; its share has bounds.
fn may_be_higher(figure: &Figure, cell: &CellInput) -> bool {
    let limited = Limited::of_figure(figure, "").filter(Limited::is_worse_in_a_limited_flood);
    limited.is_some_and(|limited| {
        let is_flood = cell.runs.iter().any(|run| run.record.settings.flood);
        let is_held_up = |run: &RunInput| limited.measured(&run.record).is_some_and(|measured| measured.held_up);
        figure.unit == Unit::PerSecond && usable_runs(figure, cell).any(is_held_up)
            || is_flood && cell.failures.iter().any(CellFailure::is_limited_run)
    })
}

/// Both bounds of a figure in each usable run of a cell; `None` if there is none, or if one lacks the figure: those that
/// have it do not represent it. A run that loses messages may have too few samples for a percentile. What is missing of a share may
/// not be the system's loss, so its bounds are those that limits are compared with.
fn bounds_of_all(figure: &Figure, cell: &CellInput) -> Option<Vec<[f64; 2]>> {
    let limited = Limited::of_figure(figure, "").filter(|_| figure.unit == Unit::Share);
    let of_run = |run: &RunInput| match &limited {
        Some(limited) => Some(limited.measured(&run.record)?.interval),
        None => figure.bounds(&run.record),
    };
    let bounds: Option<Vec<[f64; 2]>> = usable_runs(figure, cell).map(of_run).collect();
    bounds.filter(|bounds| !bounds.is_empty())
}

/// Why a cell is left out of contests; `None` if it is not.
fn why_left_out(cell: &CellInput) -> Option<String> {
    if cell.runs.is_empty() {
        let why = cell.failures.first().map_or("nothing was run", |failure| failure.kind.words());
        return Some(format!("no figures ({why})"));
    }
    // The repetitions that the system completed do not represent those in which it failed.
    if let Some((failed, _)) = system_failures(cell.runs.len(), &cell.failures) {
        return Some(failed);
    }
    let is_ranked = cell.runs.iter().all(|run| run.record.system.ranked);
    (!is_ranked).then(|| "the built-in broker is a demonstration, never ranked".to_owned())
}
