//! The record of an experiment: many runs over a grid of settings, their results, and conclusions.
//!
//! A [`Cell`] is one combination of settings. Its runs have records of their own in folders beside this one; this
//! record has the figures with their intervals, and the [`Contest`]s: which cell is better, by which figure, and how
//! certain that is. A cell that failed has the reason and no figures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::Figure;
use crate::nodes::JoinedMachines;
use crate::record::{Curve, Environment, LatencyBounds, Status, SystemInfo, VerdictStatus};

/// Version of this schema. It changes only when a field changes its meaning or is removed.
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
    /// Name of the folder.
    pub name: String,
    /// Title of the report, one line.
    pub title: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Duration, seconds; the sum over all parts if the experiment was resumed.
    pub took_s: f64,
    /// Whether all planned runs were executed.
    pub status: Status,
    /// Name of the workload.
    pub workload: String,
    /// Variant of the workload.
    pub variant: String,
    /// Whether the workload, or one of several, has two variants. Otherwise the variant need not be shown.
    #[serde(default)]
    pub has_readings: bool,
    /// Seed of the schedules.
    pub seed: u64,
    /// Seed of the order of the runs.
    pub order_seed: u64,
    /// Repetitions planned for each cell.
    pub repetitions: u32,
    /// Warm-up of each run, seconds.
    pub warmup_s: f64,
    /// Measured window of each run, seconds.
    pub duration_s: f64,
    /// Axes that were varied, in order; an axis with a single value is included.
    pub axes: Vec<Axis>,
    /// All combinations, in order of the axes.
    pub cells: Vec<Cell>,
    /// Contests between cells.
    pub contests: Vec<Contest>,
    /// Figures that publications print for the same cells.
    #[serde(default)]
    pub papers: Vec<PaperFigures>,
    /// What a reader should know before quoting the results: few repetitions, a busy machine, cells left out. One
    /// sentence each.
    pub cautions: Vec<String>,
    /// The machine that the experiment was executed on.
    pub environment: Environment,
    /// Machines that joined all runs; absent if everything was on the one of `environment`, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<JoinedMachines>,
    /// Complete definition of the experiment as YAML, so that it can be run again.
    pub definition: String,
}

impl ExperimentRecord {
    /// Folders of its runs, including failed ones, relative to the experiment's folder: cell by cell, by repetition.
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

    /// The workload, with its variant if there is more than one, or it is not the default.
    pub fn workload_words(&self) -> String {
        match self.has_readings || self.variant == "published" {
            true => format!("{} ({})", self.workload, self.variant),
            false => self.workload.clone(),
        }
    }
}

/// One figure as printed in a publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperFigures {
    /// The publication, with table or section.
    pub source: String,
    /// Systems and versions that it measured; empty if it does not state them.
    pub versions: String,
    /// Name in [`crate::comparison::FIGURES`] of the pubmark figure that it is compared with.
    pub figure: String,
    /// Why pubmark's value differs, where that is known.
    pub differs: String,
    /// Values, in the order of the publication.
    pub values: Vec<PaperValue>,
}

/// A publication's value for a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperValue {
    /// Id of the cell.
    pub cell: String,
    /// Value in the figure's unit: µs, a share of 1, a number.
    pub value: f64,
}

/// A setting that was varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// `system`, `qos`, `scale`, `payload`, `rate`, `limit`, `topology`, `profile`, `protocol`, or a workload's setting.
    pub name: String,
    /// Values as written, in order.
    pub values: Vec<String>,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Stable id: the values joined by `_`, usable as a file name.
    pub id: String,
    /// Label for people: values of the axes that have more than one value.
    pub label: String,
    /// Value of the cell on every axis.
    pub settings: BTreeMap<String, String>,
    /// The system of its first run.
    pub system: Option<SystemInfo>,
    /// Hash of the schedule; equal in all cells that differ only in the system.
    pub schedule_hash: Option<String>,
    /// Messages offered per second.
    pub offered_per_s: Option<f64>,
    /// Runs that were completed and are usable, fully or except for their times.
    pub runs: Vec<CellRun>,
    /// Repetitions without figures.
    pub failures: Vec<CellFailure>,
    /// Limits that its runs were made with, as written (`objectives` of the workload); `null` in records of older versions,
    /// which do not have them.
    #[serde(default)]
    pub objectives: Option<Vec<String>>,
    /// Figures, in the order of [`crate::comparison::FIGURES`]; empty if no run is usable.
    pub figures: Vec<CellFigure>,
    /// User-defined metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<CellMetric>,
    /// Latency over all runs of the cell: histograms are merged, percentiles are not averaged.
    pub latency: Option<LatencyBounds>,
    /// Percentile curve over all runs of the cell, likewise; of upper bounds.
    pub latency_curve: Option<Curve>,
    /// The same for lower bounds; absent if a run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_curve_lower: Option<Curve>,
}

/// A usable run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellRun {
    /// Repetition, from 1.
    pub repetition: u32,
    /// Position in the order of execution, from 1.
    pub order: u32,
    /// Folder of the run, relative to the experiment's.
    pub folder: String,
    /// Verdict of the run. An invalid run in this list is one whose times must not be used
    /// ([`crate::verdict::usable`]): its figures of times are shown and not judged. Other invalid runs are failures.
    pub verdict: VerdictStatus,
    /// Time waited for the machine to become idle before the run, ms.
    pub waited_ms: u64,
    /// The machine did not become idle; the run was executed nevertheless.
    pub busy: bool,
}

/// Why a repetition has no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellFailure {
    /// Repetition, from 1; 0 where the cell was refused before any run.
    pub repetition: u32,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// One sentence with the cause.
    pub text: String,
    /// Folder, relative to the experiment's, if something was recorded.
    pub folder: Option<String>,
}

impl CellFailure {
    /// Whether it is a run that was left out because pubmark or the machine was its limit. Of several runs of a flood the slower ones
    /// are left then. One without a folder did not begin: nothing was left out.
    pub fn is_limited_run(&self) -> bool {
        self.kind == FailureKind::GeneratorLimited && self.folder.is_some()
    }
}

/// In how many of its repetitions the system failed, and how it failed first: `failed in 2 of 3 repetitions (out of
/// memory)`, and this first failure; `None` if it failed in none. `counted` is the number of usable runs.
pub fn system_failures(counted: usize, failures: &[CellFailure]) -> Option<(String, &CellFailure)> {
    let by_the_system: Vec<&CellFailure> = failures.iter().filter(|failure| failure.kind.is_systems()).collect();
    let first = *by_the_system.first()?;
    let all = counted + failures.len();
    Some((format!("failed in {} of {all} repetitions ({})", by_the_system.len(), first.kind.words()), first))
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The system does not support what was requested (protocol, QoS, TLS, topology).
    Unsupported,
    /// The program of the system is not installed on this machine.
    NotInstalled,
    /// This machine has too few open files or ports for the connections, or too few resources for a limit of a system.
    NoRoom,
    /// The system did not start, or was not ready in time.
    DidNotStart,
    /// The system refused clients or all subscriptions, or did not respond to a connect that no network could lose.
    Refused,
    /// The system was OOM-killed.
    OutOfMemory,
    /// The system ended during the measurement.
    Ended,
    /// The generator was the limit, so the figures would not be the system's.
    GeneratorLimited,
    /// The run was invalid for another reason.
    Invalid,
    /// The run was stopped before its end.
    Interrupted,
}

impl FailureKind {
    /// Whether the system failed, not pubmark and not the machine: a result that no repetition replaces.
    pub fn is_systems(self) -> bool {
        match self {
            FailureKind::DidNotStart | FailureKind::Refused | FailureKind::OutOfMemory | FailureKind::Ended => true,
            FailureKind::Unsupported
            | FailureKind::NotInstalled
            | FailureKind::NoRoom
            | FailureKind::GeneratorLimited
            | FailureKind::Invalid
            | FailureKind::Interrupted => false,
        }
    }

    /// Whether the measurement failed, which a repetition may avoid: the run is made again.
    pub fn may_pass(self) -> bool {
        matches!(self, FailureKind::GeneratorLimited | FailureKind::Invalid)
    }

    /// Text for a cell of a table.
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
    /// One value per run, in order of repetition; upper bounds of a latency; `null` where the run did not measure it.
    pub values: Vec<Option<f64>>,
    /// Mean of the values: geometric where the interval is computed on logarithms. Values that the verdict of their run
    /// excludes are used only where there are no others (`shown_only`).
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Quartiles; `null` below 4 values.
    pub quartiles: Option<(f64, f64)>,
    /// 95 % interval of the mean; `null` with too few repetitions.
    pub interval: Option<Interval>,
    /// The same for the lower bounds of a latency; absent where a figure has none, or a run did not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<LowerBounds>,
    /// The verdicts of all runs exclude the figure: it is shown, and not judged.
    #[serde(default)]
    pub shown_only: bool,
    /// Repetitions whose verdict excludes their value. It is in `values`, and is in the mean, the median, the quartiles and the
    /// interval only if there are no others (`shown_only`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
    /// What a limit is compared with, one entry per run; `null` where that is the run's value and its lower bound. Empty if it
    /// is so for all runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<Option<LimitedValue>>,
}

/// What a limit on a figure is compared with in one run, where that is more than the run's value: a percentile of too few
/// samples, requests that only pubmark answered late, messages that are missing perhaps because of pubmark or the machine, or a system
/// that was held up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedValue {
    /// Lower bound, in the unit of the figure.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
    /// A percentile of too few samples: the bounds are neighbouring percentiles or the largest sample.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub few_samples: bool,
    /// The verdict says that the system was prevented from running, got another load, or was read late: it could have been faster,
    /// replied to more requests in time, lost fewer messages, or had a higher rate in a flood.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_up: bool,
    /// The message log lacks rows: the value decides no limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// A user-defined metric over the repetitions of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellMetric {
    /// Unit of the metric as declared. Times are stored in µs, sizes in bytes, shares as a fraction of 1, like other
    /// figures; other units are unchanged.
    #[serde(default)]
    pub unit: String,
    /// Values of the metric; its name is in `figure`, without `custom.`.
    #[serde(flatten)]
    pub figure: CellFigure,
}

impl CellMetric {
    /// The metric in the form of a figure.
    pub fn as_figure(&self) -> Figure<'_> {
        Figure::custom(&self.figure.figure, &self.unit)
    }
}

/// Lower bounds of a latency over the repetitions of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LowerBounds {
    /// One value per run, in order of repetition; `null` where the run has no value.
    pub values: Vec<Option<f64>>,
    /// Mean of the values, computed as for the upper bounds.
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Quartiles; `null` below 4 values.
    pub quartiles: Option<(f64, f64)>,
    /// 95 % interval of the mean; `null` with too few repetitions.
    pub interval: Option<Interval>,
}

impl CellFigure {
    /// Both bounds in the run at a position, from 0; `None` where the run did not measure the figure. A value without a lower
    /// bound is used for both.
    pub fn bounds(&self, run: usize) -> Option<[f64; 2]> {
        let upper = self.values.get(run).copied().flatten()?;
        let lower = self.lower.as_ref().and_then(|lower| lower.values.get(run).copied().flatten());
        Some([lower.map_or(upper, |lower| lower.min(upper)), upper])
    }

    /// Whether the verdict of the run at a position excludes the value that it measured.
    pub fn is_excluded(&self, figure: &Figure<'_>, runs: &[CellRun], position: usize) -> bool {
        self.bounds(position).is_some() && self.is_excluded_from_limits(figure, runs, position)
    }

    /// The same for what a limit is compared with, which a run with too few samples for a value has as well
    /// ([`CellFigure::limited`]). Older records name no excluded repetitions; an invalid run has no usable times.
    pub(crate) fn is_excluded_from_limits(&self, figure: &Figure<'_>, runs: &[CellRun], position: usize) -> bool {
        let Some(run) = runs.get(position) else { return false };
        let is_of_invalid_times = run.verdict == VerdictStatus::Invalid && figure.is_of_times();
        is_of_invalid_times || self.excluded.contains(&run.repetition)
    }

    /// Both bounds of the mean, the lower one first; `None` for a bound that is not known.
    pub fn mean_bounds(&self) -> [Option<f64>; 2] {
        [self.lower.as_ref().and_then(|lower| lower.mean), self.mean]
    }

    /// Range of the mean, bounds and noise together: from the lower end of the interval of the lower bounds to the
    /// upper end of the interval of the upper bounds. `None` with too few repetitions.
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
    /// Coverage probability, 0 to 1.
    pub level: f64,
    /// Method: `t on logarithms`, `t`, `BCa bootstrap`.
    pub method: String,
}

/// Cells that differ in one axis only, compared by one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contest {
    /// The axis in which the cells differ, for instance `system`.
    pub axis: String,
    /// Common settings of the cells: values of the other axes that have more than one.
    pub among: BTreeMap<String, String>,
    /// Name of the figure.
    pub figure: String,
    /// Ids of the cells, best mean first; cells without the figure are left out.
    pub ranking: Vec<String>,
    /// The best cell, if it is better than every other beyond the noise.
    pub winner: Option<String>,
    /// The best cell compared with each other cell.
    pub duels: Vec<Duel>,
}

/// Two cells compared by one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duel {
    /// Id of the cell with the better mean.
    pub better: String,
    /// Id of the other cell.
    pub worse: String,
    /// Mean of the other cell over the mean of the better one, or their difference where the figure can be 0
    /// (`is_ratio` false); upper bounds of a latency.
    pub difference: f64,
    /// Whether `difference` is a ratio.
    pub is_ratio: bool,
    /// Smallest and largest difference that the bounds of the measurement permit; both equal to `difference` where a
    /// figure has no bounds. Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<(f64, f64)>,
    /// 95 % interval, where it can be computed: from the lower limit of the smallest difference to the upper limit of
    /// the largest difference.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p value of the test that both are equal, for the smallest difference; `null` with too few repetitions.
    pub p: Option<f64>,
    /// The p value after Holm's correction over all pairs of cells in all judged figures of the experiment.
    pub p_adjusted: Option<f64>,
    /// Shares delivered by the better cell and by the other one, for a latency whose better cell lost more of its messages and whose
    /// difference would be shown otherwise: its latencies are those of fewer messages, and do not win. Absent otherwise, and in older
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survivors: Option<[f64; 2]>,
    /// The difference exceeds the noise: the adjusted p is below 0.01, the rank test agrees, and the difference is
    /// above 1 % and above the resolution of the measurement.
    pub is_significant: bool,
    /// Certainty of the difference; absent in older records. [`Duel::grade`] also handles those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
}

/// Certainty of a difference between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The interval of the difference includes "none", or the difference may be too small to matter, or there are too
    /// few repetitions, or the better latencies are those of fewer messages ([`Duel::survivors`]), or the lower rate or share delivered
    /// of a flood may have been limited by pubmark or the machine.
    NotShown,
    /// The 95 % interval excludes "none", and the difference matters. For equal systems this happens by chance in one
    /// of twenty figures.
    Likely,
    /// The same for all figures of the experiment together, with an error in one of a hundred experiments with equal
    /// systems. Never where the runs of the two cells were not interleaved.
    Proven,
}

impl Grade {
    /// Text for sentences and tables.
    pub fn words(self) -> &'static str {
        match self {
            Grade::NotShown => "not shown",
            Grade::Likely => "likely",
            Grade::Proven => "proven",
        }
    }
}

impl Duel {
    /// Certainty of the difference.
    pub fn grade(&self) -> Grade {
        self.grade.unwrap_or(if self.is_significant { Grade::Proven } else { Grade::NotShown })
    }
}
