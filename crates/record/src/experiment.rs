//! The record of an experiment: many runs over a grid of settings, what they came to, and what may be concluded.
//!
//! A [`Cell`] is one combination of settings. Its runs keep records of their own in folders beside this one; here stand
//! the figures with their intervals, and the [`Contest`]s: who is better, by which figure, and how sure that is. A cell
//! that failed says why and has no figures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::Figure;
use crate::record::{Curve, Environment, LatencyBounds, Status, SystemInfo, VerdictStatus};

/// Version of this schema: changes only when a field changes its meaning or goes away.
pub const EXPERIMENT_SCHEMA_VERSION: u32 = 2;
/// Name of the file in an experiment's folder.
pub const EXPERIMENT_FILE: &str = "experiment.json";

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentRecord {
    /// [`EXPERIMENT_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of pubmark that wrote it.
    pub pubmark_version: String,
    /// Name of its folder.
    pub name: String,
    /// One line for the head of the report.
    pub title: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Time it took, seconds; the sum over all sittings if it was resumed.
    pub took_s: f64,
    /// Whether all runs that were planned were made.
    pub status: Status,
    /// The workload's name.
    pub workload: String,
    /// Its variant.
    pub variant: String,
    /// Has the workload, or one of several, two variants? Where it has one, people need not be told which.
    #[serde(default)]
    pub has_readings: bool,
    /// Seed of the schedules.
    pub seed: u64,
    /// Seed of the order of the runs.
    pub order_seed: u64,
    /// Repetitions planned for each cell.
    pub repetitions: u32,
    /// Cut from the front of each run, seconds.
    pub warmup_s: f64,
    /// Measured window of each run, seconds.
    pub duration_s: f64,
    /// What was varied, in order; an axis with a single value is named too.
    pub axes: Vec<Axis>,
    /// Every combination, in order of the axes.
    pub cells: Vec<Cell>,
    /// Who is better.
    pub contests: Vec<Contest>,
    /// What publications print of the same cells.
    #[serde(default)]
    pub papers: Vec<PaperFigures>,
    /// What a reader should know before quoting: few repetitions, a busy machine, cells left out. One sentence each.
    pub cautions: Vec<String>,
    /// The machine.
    pub environment: Environment,
    /// Whole definition of the experiment as YAML, so that it can be run again.
    pub definition: String,
}

impl ExperimentRecord {
    /// Folders of its runs, those that failed included, relative to its own: cell by cell, by repetition.
    pub fn run_folders(&self) -> Vec<String> {
        let of_cell = |cell: &Cell| {
            let failed = cell.failures.iter().filter_map(|failure| Some((failure.repetition, failure.folder.clone()?)));
            let mut all: Vec<(u32, String)> =
                cell.runs.iter().map(|run| (run.repetition, run.folder.clone())).chain(failed).collect();
            all.sort();
            all.dedup();
            all.into_iter().map(|(_, folder)| folder)
        };
        self.cells.iter().flat_map(of_cell).collect()
    }

    /// The workload, with its variant where there is more than one, or it is not the default.
    pub fn workload_words(&self) -> String {
        match self.has_readings || self.variant == "published" {
            true => format!("{} ({})", self.workload, self.variant),
            false => self.workload.clone(),
        }
    }
}

/// One figure as a publication prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperFigures {
    /// The publication, with its table or section.
    pub source: String,
    /// Systems and versions that it measured; empty if it does not say.
    pub versions: String,
    /// Name in [`crate::comparison::FIGURES`] of what of ours it is set beside.
    pub figure: String,
    /// Why ours differ, where that is known.
    pub differs: String,
    /// Its values, in its order.
    pub values: Vec<PaperValue>,
}

/// A publication's value for a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperValue {
    /// Id of the cell.
    pub cell: String,
    /// In the figure's unit: µs, a share of 1, a number.
    pub value: f64,
}

/// Something that was varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// `system`, `qos`, `scale`, `payload`, `rate`, `limit`, `topology`, `profile`, `protocol`, or a workload's setting.
    pub name: String,
    /// Its values as written, in order.
    pub values: Vec<String>,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Stable id: its values joined by `_`, safe as a file name.
    pub id: String,
    /// What tells it from the others, for people: values of the axes that have more than one.
    pub label: String,
    /// Its value on every axis.
    pub settings: BTreeMap<String, String>,
    /// What its runs found; of the first run that was made.
    pub system: Option<SystemInfo>,
    /// Hash of its schedule; equal in all cells that differ in nothing but the system.
    pub schedule_hash: Option<String>,
    /// Messages offered per second.
    pub offered_per_s: Option<f64>,
    /// Runs that came to an end and count, wholly or but for their times.
    pub runs: Vec<CellRun>,
    /// Repetitions that gave no figures.
    pub failures: Vec<CellFailure>,
    /// Its figures, in the order of [`crate::comparison::FIGURES`]; empty if no run counts.
    pub figures: Vec<CellFigure>,
    /// Metrics of the user's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<CellMetric>,
    /// Latency over all its runs: histograms merged, not percentiles averaged.
    pub latency: Option<LatencyBounds>,
    /// Percentile curve over all its runs, likewise; of upper bounds.
    pub latency_curve: Option<Curve>,
    /// The same of lower bounds; absent where a run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_curve_lower: Option<Curve>,
}

/// A run that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellRun {
    /// Repetition, from 1.
    pub repetition: u32,
    /// Place in the order in which the runs were made, from 1.
    pub order: u32,
    /// Its folder, relative to the experiment's.
    pub folder: String,
    /// Its verdict. Invalid is a run whose times are not to be used ([`crate::verdict::usable`]): its figures of them are
    /// shown and not judged. Other invalid runs are failures.
    pub verdict: VerdictStatus,
    /// Time waited for a quiet machine before it, ms.
    pub waited_ms: u64,
    /// The machine did not become quiet; it was run all the same.
    pub busy: bool,
}

/// Why a repetition gave no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellFailure {
    /// Repetition, from 1; 0 where the cell was refused before anything was run.
    pub repetition: u32,
    /// The kind.
    pub kind: FailureKind,
    /// One sentence with the cause.
    pub text: String,
    /// Its folder, relative to the experiment's, where something was recorded.
    pub folder: Option<String>,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The system cannot do what was asked (protocol, QoS, TLS, topology).
    Unsupported,
    /// Its program is not on this machine.
    NotInstalled,
    /// This machine has not the open files or ports for so many connections, or not what a limit leaves a system.
    NoRoom,
    /// It did not start, or was not ready in time.
    DidNotStart,
    /// It could not be reached, or turned clients away.
    Refused,
    /// It was OOM-killed.
    OutOfMemory,
    /// It ended while it was measured.
    Ended,
    /// The generator was the limit: the figures would not be the system's.
    GeneratorLimited,
    /// The run was invalid for another reason.
    Invalid,
    /// It was stopped before its end.
    Interrupted,
}

impl FailureKind {
    /// In a table's cell.
    pub fn words(self) -> &'static str {
        match self {
            FailureKind::Unsupported => "not offered",
            FailureKind::NotInstalled => "not installed",
            FailureKind::NoRoom => "no room here",
            FailureKind::DidNotStart => "did not start",
            FailureKind::Refused => "refused",
            FailureKind::OutOfMemory => "out of memory",
            FailureKind::Ended => "ended during the run",
            FailureKind::GeneratorLimited => "generator-limited",
            FailureKind::Invalid => "invalid",
            FailureKind::Interrupted => "interrupted",
        }
    }
}

/// A figure over the repetitions of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellFigure {
    /// Name in [`crate::comparison::FIGURES`].
    pub figure: String,
    /// One value a run, in order of repetition, of a latency its upper bound; `null` where that run did not measure it.
    pub values: Vec<Option<f64>>,
    /// Mean over the values: geometric where the interval is taken on logarithms. Values that a run's verdict forbids to use
    /// count only where there are no others (`shown_only`).
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Quartiles; `null` below 4 values.
    pub quartiles: Option<(f64, f64)>,
    /// 95 % interval of the mean; `null` where repetitions are too few.
    pub interval: Option<Interval>,
    /// The same of the lower bounds of a latency; absent where a figure has none, or a run did not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<LowerBounds>,
    /// The verdicts of all runs forbid to use it: it is shown, and not judged.
    #[serde(default)]
    pub shown_only: bool,
}

/// A metric of the user's own over the repetitions of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellMetric {
    /// What its values counted in as it was declared. Times stand here in µs, sizes in bytes, shares of 1, as those of other figures;
    /// other units as they are.
    #[serde(default)]
    pub unit: String,
    /// Its values; its name is in `figure`, without `custom.`.
    #[serde(flatten)]
    pub figure: CellFigure,
}

impl CellMetric {
    /// Among figures.
    pub fn as_figure(&self) -> Figure<'_> {
        Figure::custom(&self.figure.figure, &self.unit)
    }
}

/// Lower bounds of a latency over the repetitions of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LowerBounds {
    /// One value a run, in order of repetition; `null` where that run has no value.
    pub values: Vec<Option<f64>>,
    /// Mean over the values, as that of the upper bounds.
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Quartiles; `null` below 4 values.
    pub quartiles: Option<(f64, f64)>,
    /// 95 % interval of the mean; `null` where repetitions are too few.
    pub interval: Option<Interval>,
}

impl CellFigure {
    /// Both bounds of the mean, the lower one first; `None` for one that is not known.
    pub fn mean_bounds(&self) -> [Option<f64>; 2] {
        [self.lower.as_ref().and_then(|lower| lower.mean), self.mean]
    }

    /// Where the mean may lie, bounds and noise together: from the lower end of the interval of the lower bounds to the upper
    /// end of that of the upper bounds. `None` where repetitions are too few.
    pub fn whole_interval(&self) -> Option<(f64, f64)> {
        let upper = self.interval.as_ref()?;
        let lower = self.lower.as_ref().map_or(Some(upper), |lower| lower.interval.as_ref())?;
        Some((lower.low.min(upper.low), upper.high))
    }
}

/// A confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that it covers, 0 to 1.
    pub level: f64,
    /// `t on logarithms`, `t`, `BCa bootstrap`.
    pub method: String,
}

/// Cells that differ in one axis only, judged by one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contest {
    /// The axis in which the cells differ, for instance `system`.
    pub axis: String,
    /// What they have in common: values of the other axes that have more than one.
    pub among: BTreeMap<String, String>,
    /// Name of the figure.
    pub figure: String,
    /// Ids of the cells, best mean first; cells without the figure are left out.
    pub ranking: Vec<String>,
    /// The best cell, where it is better than every other beyond the noise.
    pub winner: Option<String>,
    /// The best against each other cell.
    pub duels: Vec<Duel>,
}

/// Two cells, one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duel {
    /// Id of the better one by its mean.
    pub better: String,
    /// Id of the other.
    pub worse: String,
    /// Other's mean over the better's, or their difference where the figure can be 0 (`is_ratio` false); of a latency, of upper
    /// bounds.
    pub difference: f64,
    /// Is `difference` a ratio?
    pub is_ratio: bool,
    /// The difference at its least and at its most, by the bounds of the measurement alone; both the same as `difference` where
    /// a figure has no bounds. Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<(f64, f64)>,
    /// Its 95 % interval, where it can be told: from the lower limit of the difference at its least to the upper limit of the
    /// difference at its most.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p value of the test that both are the same, where their difference is least; `null` where repetitions are too
    /// few.
    pub p: Option<f64>,
    /// The same after Holm's correction over every pair of cells in every judged figure of the experiment.
    pub p_adjusted: Option<f64>,
    /// The difference exceeds the noise: adjusted p below 0.01, the ranks agree, and it is above 1 % and the resolution of
    /// the measurement.
    pub is_significant: bool,
    /// How sure it is; absent in older records. [`Duel::grade`] knows those, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
}

/// How sure a difference between two cells is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The interval of the difference holds "none", or what there is may be too small to matter, or repetitions are too few.
    NotShown,
    /// The 95 % interval lies on one side of "none", and the difference matters. Of equal systems one figure in twenty does so by
    /// chance.
    Likely,
    /// The same for all figures of the experiment together, with an error in one of a hundred experiments of equal systems.
    Proven,
}

impl Grade {
    /// In sentences and tables.
    pub fn words(self) -> &'static str {
        match self {
            Grade::NotShown => "not shown",
            Grade::Likely => "likely",
            Grade::Proven => "proven",
        }
    }
}

impl Duel {
    /// How sure the difference is.
    pub fn grade(&self) -> Grade {
        self.grade.unwrap_or(if self.is_significant { Grade::Proven } else { Grade::NotShown })
    }
}
