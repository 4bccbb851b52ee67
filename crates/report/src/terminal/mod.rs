//! Results of runs, comparisons, experiments and searches on a terminal.

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

/// Assumed width of a terminal whose width is not known, columns.
pub const COLUMNS: usize = 80;
/// Largest width of lines, columns, however wide the terminal is: longer lines are hard to read.
pub const MOST_COLUMNS: usize = 160;
/// Most lines of a summary.
pub const LINES: usize = 30;

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminalOptions<'a> {
    /// Use colours in addition to the words; the caller handles `NO_COLOR` and checks whether the output is a terminal.
    pub colour: bool,
    /// Folder of the run as the user would type it, if the run was saved.
    pub folder: Option<&'a str>,
    /// Width in columns, between [`COLUMNS`] and [`MOST_COLUMNS`]; `None` if the output is not a terminal, and nothing
    /// is cut.
    pub columns: Option<usize>,
    /// Print everything and not only the first screen.
    pub verbose: bool,
}
