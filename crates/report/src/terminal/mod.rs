//! What runs, comparisons, experiments and searches come to on a terminal.

mod capacity;
mod comparison;
mod experiment;
mod latency_breakdown;
pub mod layout;
pub mod past_runs;
mod run;

pub use capacity::{capacity, trial_line};
pub use comparison::comparison;
pub use experiment::experiment;
pub use run::summary;

/// Columns of the terminal that everything fits into where its width is not known.
pub const COLUMNS: usize = 80;
/// Widest lines, however wide the terminal is: longer ones are hard to read.
pub const MOST_COLUMNS: usize = 160;
/// Lines of a summary at most.
pub const LINES: usize = 30;

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminalOptions<'a> {
    /// Colours, in addition to the words; the caller honours `NO_COLOR` and asks whether this is a terminal.
    pub colour: bool,
    /// The run's folder as the reader would type it, if the run was kept.
    pub folder: Option<&'a str>,
    /// Columns, between [`COLUMNS`] and [`MOST_COLUMNS`]; `None` where this is no terminal, and nothing is cut.
    pub columns: Option<usize>,
    /// Everything that there is to say, not the first screen alone.
    pub verbose: bool,
}
