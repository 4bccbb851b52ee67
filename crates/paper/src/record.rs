//! The record of a publication's repetition: its tables with what is printed and what was measured. Self-contained: the page is made
//! from it alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use pubmark_record::record::{Environment, Status};
use pubmark_record::store::Stored;

/// Version of this schema: changes only when a field changes its meaning or goes away.
pub const PAPER_SCHEMA_VERSION: u32 = 1;
/// Name of its file.
pub const PAPER_FILE: &str = "paper.json";

/// A publication, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperRecord {
    /// [`PAPER_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of pubmark that wrote it.
    pub pubmark_version: String,
    /// What the publication is called on the command line.
    pub paper: String,
    /// One line for the head of the page.
    pub title: String,
    /// Authors, title, place and year.
    pub citation: String,
    /// Command line of the last call.
    pub command: Vec<String>,
    /// Short runs and few repetitions, as `--quick` makes them?
    pub quick: bool,
    /// Whether all runs that were planned were made.
    pub status: Status,
    /// The experiments, in the order of the tables.
    pub experiments: Vec<ExperimentPart>,
    /// The tables.
    pub tables: Vec<TableResult>,
    /// The conclusions.
    pub statements: Vec<StatementResult>,
    /// What of the publication is not repeated.
    pub not_repeated: Vec<Omission>,
}

/// One of its experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentPart {
    /// The experiment.
    pub name: String,
    /// Its folder, relative to the record's; `None` if it was not begun, or is gone while its results are still here.
    pub folder: Option<String>,
    /// Why there is nothing of it.
    pub reason: Option<String>,
    /// How it was run.
    pub runs: Option<RunsSummary>,
}

/// How an experiment was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSummary {
    /// Whether all runs that were planned were made.
    pub status: Status,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Time of all sittings, seconds.
    pub took_s: f64,
    /// Combinations of its axes.
    pub cells: u32,
    /// Of them, those with a run that counts.
    pub cells_measured: u32,
    /// Repetitions planned for each.
    pub repetitions: u32,
    /// Measured window of each run, seconds.
    pub duration_s: f64,
    /// Load before it that is not measured, seconds.
    pub warmup_s: f64,
    /// Systems that ran, with their versions.
    pub systems: Vec<String>,
    /// What to know before quoting it.
    pub cautions: Vec<String>,
    /// The machine.
    pub environment: Environment,
}

/// A table: what is printed beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableResult {
    /// As the publication numbers it, and what it shows.
    pub title: String,
    /// The experiment.
    pub experiment: String,
    /// Name of the figure.
    pub figure: String,
    /// Axes whose values make a row.
    pub rows: Vec<String>,
    /// Axes whose values make a column.
    pub columns: Vec<String>,
    /// Systems and versions that the publication measured; empty if it does not say, or prints nothing that may be repeated here.
    pub printed_of: String,
    /// Why ours differ, where that is known.
    pub differs: String,
    /// May what is measured here be divided by what is printed?
    pub comparable: bool,
    /// Every cell.
    pub cells: Vec<TableCell>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableCell {
    /// Values of the row's axes.
    pub row: Vec<String>,
    /// Values of the column's axes.
    pub column: Vec<String>,
    /// What is printed, in the figure's unit: µs, a share of 1, a number.
    pub printed: Option<f64>,
    /// What was measured.
    pub measured: Option<MeanFigure>,
    /// Why nothing was, in a few words.
    pub reason: Option<String>,
    /// The same in a sentence, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A figure that was measured, over the repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanFigure {
    /// Mean, of a latency that of its upper bounds.
    pub mean: f64,
    /// Mean of its lower bounds, where it has some.
    pub lower: Option<f64>,
    /// 95 % interval of the mean, bounds and noise together; `None` where repetitions are too few.
    pub interval: Option<(f64, f64)>,
    /// Runs that count.
    pub runs: u32,
    /// The verdicts of all runs forbid to use it: it is shown, and not judged.
    pub shown_only: bool,
}

impl MeanFigure {
    /// A count of one run.
    pub(crate) fn of_one_run(count: f64, shown_only: bool) -> MeanFigure {
        MeanFigure { mean: count, lower: None, interval: None, runs: 1, shown_only }
    }
}

/// What became of a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementResult {
    /// What the publication concludes.
    pub conclusion: String,
    /// Where it does.
    pub source: String,
    /// Name of the figure by which it is judged.
    pub figure: String,
    /// Each case.
    pub cases: Vec<Case>,
}

/// One case of a conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// What tells it from the others; empty where there is one.
    pub label: String,
    /// The cell where the figure should be larger.
    pub larger: String,
    /// The cell where it should be smaller.
    pub smaller: String,
    /// What follows.
    pub outcome: Outcome,
    /// How many times as large it is there, least and most; `None` where one is 0 or was not measured.
    pub ratio: Option<(f64, f64)>,
}

/// What follows of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is larger: the intervals are apart.
    Holds,
    /// It is smaller: they are apart the other way round.
    DoesNotHold,
    /// They overlap.
    Undecided,
    /// One of both was not measured.
    NotMeasured,
}

/// Something of the publication that is not repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Omission {
    /// What.
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
