//! The record of a publication's repetition: its tables with the printed and the measured values. Self-contained: the page
//! is generated from it alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use pubmark_record::conclusion::Conclusion;
use pubmark_record::nodes::JoinedMachines;
use pubmark_record::record::{Environment, Status};
use pubmark_record::store::Stored;

/// Version of this schema: changes only when a field changes its meaning or is removed.
pub const PAPER_SCHEMA_VERSION: u32 = 1;
/// Name of the record's file.
pub const PAPER_FILE: &str = "paper.json";

/// A repetition of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperRecord {
    /// [`PAPER_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of pubmark that wrote it.
    pub pubmark_version: String,
    /// Name of the publication on the command line.
    pub paper: String,
    /// Title of the page, one line.
    pub title: String,
    /// Authors, title, venue and year.
    pub citation: String,
    /// Command line of the last call.
    pub command: Vec<String>,
    /// Command lines of earlier calls that added to the record, the first one first; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_commands: Vec<Vec<String>>,
    /// Whether runs were short and repetitions few, because of `--quick`.
    pub quick: bool,
    /// Whether all planned runs were made.
    pub status: Status,
    /// The experiments, in the order of the tables.
    pub experiments: Vec<ExperimentPart>,
    /// The tables.
    pub tables: Vec<TableResult>,
    /// The publication's conclusions.
    pub statements: Vec<StatementResult>,
    /// Parts of the publication that are not repeated.
    pub not_repeated: Vec<Omission>,
}

/// One of the publication's experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentPart {
    /// The experiment.
    pub name: String,
    /// Its folder, relative to the record's; `None` if the experiment was not started, or if its folder was removed but its
    /// results are still here.
    pub folder: Option<String>,
    /// Why it has no results.
    pub reason: Option<String>,
    /// How it was run.
    pub runs: Option<RunsSummary>,
}

/// How an experiment was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSummary {
    /// Whether all planned runs were made.
    pub status: Status,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Total time of all calls that made runs, seconds.
    pub took_s: f64,
    /// Number of combinations of its axes.
    pub cells: u32,
    /// Number of cells with a run that counts.
    pub cells_measured: u32,
    /// Cells that lack runs and could not be run on this machine, and why: `CELLS: REASON`, each reason once. Absent if there are
    /// none, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Planned repetitions of each cell.
    pub repetitions: u32,
    /// Measured window of each run, seconds.
    pub duration_s: f64,
    /// Load before the window that is not measured, seconds.
    pub warmup_s: f64,
    /// Systems that ran, with their versions.
    pub systems: Vec<String>,
    /// Version of pubmark that made them; absent in older records, where it is the writer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pubmark_version: Option<String>,
    /// What all runs had in common besides their lengths: hashes of the definition's keys, and of each system (`system LABEL`) its
    /// back end, image, profile and protocol, unless these are axes. Absent in older records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
    /// The values of the axis `system` with the systems behind them; absent in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<ComparedSystem>,
    /// Cautions to consider before quoting it.
    pub cautions: Vec<String>,
    /// The machine.
    pub environment: Environment,
    /// Machines that joined all runs; absent if everything was on the one of `environment`, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<JoinedMachines>,
}

/// A value of the axis `system`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSystem {
    /// The value, as in the tables.
    pub label: String,
    /// Name of the system's definition, or `external`.
    pub system: String,
    /// Its protocol; `None` if it was chosen automatically, or varies.
    pub protocol: Option<String>,
    /// Whether it may be ranked against other systems. The built-in broker may not.
    pub ranked: bool,
}

/// A table with printed and measured values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableResult {
    /// Number and caption, as in the publication.
    pub title: String,
    /// The experiment.
    pub experiment: String,
    /// Name of the figure.
    pub figure: String,
    /// Axes whose values form the rows.
    pub rows: Vec<String>,
    /// Axes whose values form the columns.
    pub columns: Vec<String>,
    /// Systems and versions that the publication measured; empty if the publication does not name them, or has no values
    /// that may be reprinted here.
    pub printed_of: String,
    /// Why our results differ, if the reason is known.
    pub differs: String,
    /// Whether measured values may be divided by printed ones.
    pub comparable: bool,
    /// All cells.
    pub cells: Vec<TableCell>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableCell {
    /// Values of the row's axes.
    pub row: Vec<String>,
    /// Values of the column's axes.
    pub column: Vec<String>,
    /// The printed value, in the figure's unit: µs, a share of 1, a number.
    pub printed: Option<f64>,
    /// The measured value.
    pub measured: Option<MeanFigure>,
    /// Short reason why no value was measured; beside a value, in how many repetitions the system failed.
    pub reason: Option<String>,
    /// The system failed in a repetition: the value of the others does not represent it, and is not judged.
    #[serde(default)]
    pub system_failed: bool,
    /// The reason in a full sentence, if the short one does not say everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Start of the earlier runs that the cell is of, as in `experiments`; absent if they are the first ones of the experiment there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Whether all its planned repetitions were made, or it cannot be run here; absent in older records. A repetition that was left
    /// out after failures counts as missing if the experiment was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
}

/// A measured figure over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanFigure {
    /// Mean over the repetitions; for a latency, the mean of its upper bounds.
    pub mean: f64,
    /// Mean of the lower bounds; `None` if the figure has none.
    pub lower: Option<f64>,
    /// 95 % interval of the mean, from bounds and noise; `None` if there are too few repetitions.
    pub interval: Option<(f64, f64)>,
    /// Number of runs that count.
    pub runs: u32,
    /// The verdicts of all runs forbid the use of the figure: it is shown, but not judged.
    pub shown_only: bool,
}

impl MeanFigure {
    /// A count of one run.
    pub(crate) fn of_one_run(count: f64, shown_only: bool) -> MeanFigure {
        MeanFigure { mean: count, lower: None, interval: None, runs: 1, shown_only }
    }
}

/// The judgement of a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementResult {
    /// The publication's conclusion.
    pub conclusion: String,
    /// Where in the publication.
    pub source: String,
    /// Name of the figure that is compared.
    pub figure: String,
    /// Axes whose values distinguish the cases, in the order of a case's label; absent if there is only one case, and in older
    /// records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
    /// Why its cases are undecided although both figures were measured; `None` if their intervals decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One case of a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Label that distinguishes the case from the others; empty if there is only one.
    pub label: String,
    /// The cell in which the figure should be larger.
    pub larger: String,
    /// The cell in which the figure should be smaller.
    pub smaller: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Lowest and highest ratio of the two figures; `None` if one of them is 0 or was not measured.
    pub ratio: Option<(f64, f64)>,
    /// Experiment on one of its sides that got further runs since. The case is not judged with them, because runs of the other side are
    /// no longer here. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_before: Option<String>,
}

/// Outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The figure is larger as concluded: the intervals do not overlap.
    Holds,
    /// The figure is smaller instead: the intervals do not overlap.
    DoesNotHold,
    /// The intervals overlap, or the two figures are of several machines.
    Undecided,
    /// One of the two figures was not measured.
    NotMeasured,
}

/// A part of the publication that is not repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Omission {
    /// The part.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl PaperRecord {
    /// Returns whether all runs that are possible here were made.
    pub fn is_complete(&self) -> bool {
        self.status == Status::Complete
    }

    /// The result of the call that wrote this record. `stopped` says whether an experiment [stopped](crate::Step::Stopped) in it.
    pub fn conclusion(&self, stopped: bool) -> Conclusion {
        match (self.is_complete(), self.has_measured()) {
            // An experiment that stopped by itself would stop again.
            (false, _) if stopped => Conclusion::Invalid,
            (false, _) => Conclusion::Interrupted,
            (true, true) => Conclusion::Done,
            (true, false) => Conclusion::SystemFailed,
        }
    }

    /// Returns whether an experiment with a folder here has a cell with a run that counts.
    pub fn has_measured(&self) -> bool {
        let here = self.experiments.iter().filter(|part| part.folder.is_some());
        here.filter_map(|part| part.runs.as_ref()).any(|runs| runs.cells_measured > 0)
    }
}

impl Stored for PaperRecord {
    const FILE: &'static str = PAPER_FILE;
    const VERSION: u32 = PAPER_SCHEMA_VERSION;
    const FROM_SCHEMA_1: &'static [pubmark_record::schema1::Step] = &[];
}

/// The JSON Schema (draft 2020-12) of `paper.json`, as indented JSON with a final newline.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(PaperRecord)).expect("a schema is plain JSON");
    text.push('\n');
    text
}
