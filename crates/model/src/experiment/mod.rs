//! Experiments: settings that vary, repetitions of each combination, and the order of runs. Plain data, like workloads.
//!
//! The steps: [`load()`] finds the file, [`parse`] reads it into the shape of `raw` and validates every value (`check`);
//! [`Experiment::only`] selects values, [`cells()`] creates the combinations, [`order()`] the order of their runs,
//! [`Experiment::to_yaml`] the text of a file. Names that only other crates know (systems, protocols, limits) are validated
//! by the caller's [`Judge`], so that a wrong one is underlined like any other error.

mod axes;
mod axis_value;
mod builtin;
mod cells;
mod changes;
mod check;
mod definition;
mod endpoint;
mod load;
mod only;
mod order;
mod papers;
pub(crate) mod raw;
mod systems;
mod values;
mod write;

pub use axes::{AXES, Axes, AxisRow, Settings, axis_description, axis_title, axis_words, same_schedule_axes};
pub use axis_value::client_parts;
pub use builtin::{Listed, all, names};
pub use cells::{AxisValues, PlannedCell, axes, cells};
pub use changes::Changes;
pub use definition::{Experiment, Generator, Pins, Quick, QuietMachine};
pub use endpoint::EndpointChoice;
pub use load::{LoadError, Loaded, load, parse};
pub use only::{OnlyError, axis_and_values};
pub use order::{Turn, order};
pub use papers::{PaperFigures, PaperRow};
pub use systems::SystemChoice;
pub use values::ValueError;

/// Kind of a name in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<'a> {
    /// A workload: a built-in one, or the path of a file.
    Workload,
    /// A system: a built-in one, or the path of a definition.
    System,
    /// URL of a system that already runs.
    Endpoint,
    /// A protocol.
    Protocol,
    /// Limits of a system, such as `cpu=0.5,memory=256MB`; not called for `none`.
    Limit,
    /// A figure of a record, such as `latency p50`.
    Figure,
    /// A value of this figure, such as `3.94ms`.
    FigureValue(&'a str),
    /// A list of cores, such as `0-1,3`.
    Cores,
}

/// Reason why a name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What is wrong, including the value.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// Validates a name.
pub type Judge<'a> = &'a dyn Fn(Word<'_>, &str) -> Result<(), Objection>;

/// Maximum number of cells of an experiment.
pub const MOST_CELLS: usize = 500;
/// Largest multiplier of devices.
pub const LARGEST_SCALE: u32 = 1_000_000;
/// Maximum number of repetitions of a cell.
pub const MOST_REPETITIONS: u32 = 1_000;
/// Largest seed of an experiment: the largest integer that all YAML parsers support.
pub const LARGEST_SEED: u64 = i64::MAX as u64;
