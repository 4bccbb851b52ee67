//! The record of a publication's repetition: its tables with the published and the measured values. Self-contained: the
//! page is made only from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use pubmark_record::record::{Environment, Status};
use pubmark_record::store::Stored;

/// Version of this schema: it changes only if a field changes its meaning or is removed.
pub const PAPER_SCHEMA_VERSION: u32 = 1;
/// Name of the record's file.
pub const PAPER_FILE: &str = "paper.json";

/// A publication, repeated.
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
    /// Whether runs were short and repetitions few, as with `--quick`.
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

/// An experiment of the publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentPart {
    /// The experiment.
    pub name: String,
    /// Folder of the experiment, relative to the record's; `None` if it was not begun, or if the folder was removed and
    /// the results are still here.
    pub folder: Option<String>,
    /// Reason why there are no results.
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
    /// Duration of all sittings, seconds.
    pub took_s: f64,
    /// Number of combinations of the axes.
    pub cells: u32,
    /// Number of cells with at least one run that counts.
    pub cells_measured: u32,
    /// Planned repetitions of each cell.
    pub repetitions: u32,
    /// Measured window of each run, seconds.
    pub duration_s: f64,
    /// Load before the window that is not measured, seconds.
    pub warmup_s: f64,
    /// Systems that ran, with their versions.
    pub systems: Vec<String>,
    /// Notes to read before quoting the results.
    pub cautions: Vec<String>,
    /// The machine.
    pub environment: Environment,
}

/// A table: published values beside measured ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableResult {
    /// Number and title in the publication.
    pub title: String,
    /// The experiment.
    pub experiment: String,
    /// Name of the figure.
    pub figure: String,
    /// Axes whose values form the rows.
    pub rows: Vec<String>,
    /// Axes whose values form the columns.
    pub columns: Vec<String>,
    /// Systems and versions that the publication measured; empty if it does not name them, or prints no figures that
    /// may be reproduced here.
    pub printed_of: String,
    /// Why our values differ, if that is known.
    pub differs: String,
    /// Whether measured values may be divided by published ones.
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
    /// Published value, in the figure's unit: µs, a share of 1, a number.
    pub printed: Option<f64>,
    /// Measured value.
    pub measured: Option<MeanFigure>,
    /// Short reason why nothing was measured.
    pub reason: Option<String>,
    /// The reason in a sentence, if there is more to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A measured figure over the repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanFigure {
    /// Mean; for a latency, the mean of its upper bounds.
    pub mean: f64,
    /// Mean of the lower bounds, if the figure has some.
    pub lower: Option<f64>,
    /// 95 % interval of the mean, with bounds and noise; `None` if there are too few repetitions.
    pub interval: Option<(f64, f64)>,
    /// Number of runs that count.
    pub runs: u32,
    /// The verdicts of all runs do not allow conclusions: the figure is shown, and not judged.
    pub shown_only: bool,
}

impl MeanFigure {
    /// A count of one run.
    pub(crate) fn of_one_run(count: f64, shown_only: bool) -> MeanFigure {
        MeanFigure { mean: count, lower: None, interval: None, runs: 1, shown_only }
    }
}

/// The result for a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementResult {
    /// The publication's conclusion.
    pub conclusion: String,
    /// Section of the publication that has the conclusion.
    pub source: String,
    /// Name of the figure that is compared.
    pub figure: String,
    /// All cases.
    pub cases: Vec<Case>,
}

/// One case of a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Values that distinguish the case from the others; empty if there is only one.
    pub label: String,
    /// The cell in which the figure should be larger.
    pub larger: String,
    /// The cell in which the figure should be smaller.
    pub smaller: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Ratio of the larger to the smaller figure, lower and upper bound; `None` if one is 0 or was not measured.
    pub ratio: Option<(f64, f64)>,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The figure is larger: the intervals do not overlap.
    Holds,
    /// The figure is smaller: the intervals do not overlap.
    DoesNotHold,
    /// The intervals overlap.
    Undecided,
    /// At least one of the two was not measured.
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
