//! Faults: what is broken during a run, when, and for how long. Pure data; who carries them out is not known here.

pub mod choice;
pub mod occurrence;
mod words;

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use occurrence::{Occurrence, occurrences};

/// What is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The system is killed (SIGKILL), and started again when the fault ends.
    #[default]
    Kill,
    /// The system is asked to stop, and started again: when it has stopped, or when the fault ends if that is later.
    Restart,
    /// The system stands still (SIGSTOP) until the fault ends (SIGCONT).
    Pause,
    /// Connections end with a reset (RST); until the fault ends their clients are not let through.
    Reset,
    /// Connections die without a word: nothing is sent or received on them any more. When the fault ends, their clients give them
    /// up and connect anew; one without an end is left to the clients to find out.
    Cut,
    /// A group's link carries nothing either way until the fault ends.
    Partition,
    /// A link carries nothing either way, for all groups behind it, until the fault ends.
    LinkDown,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a fault is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The system's processes.
    System,
    /// Connections.
    Connections,
    /// Emulated links.
    Links,
}

impl FaultKind {
    /// Its name in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Kill => "kill",
            FaultKind::Restart => "restart",
            FaultKind::Pause => "pause",
            FaultKind::Reset => "reset",
            FaultKind::Cut => "cut",
            FaultKind::Partition => "partition",
            FaultKind::LinkDown => "link-down",
        }
    }

    /// What it is done to.
    pub fn scope(self) -> Scope {
        match self {
            FaultKind::Kill | FaultKind::Restart | FaultKind::Pause => Scope::System,
            FaultKind::Reset | FaultKind::Cut => Scope::Connections,
            FaultKind::Partition | FaultKind::LinkDown => Scope::Links,
        }
    }

    /// Is a fault of this kind nothing without a length?
    pub fn needs_length(self) -> bool {
        matches!(self, FaultKind::Pause | FaultKind::Partition | FaultKind::LinkDown)
    }
}

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Timing {
    /// Once.
    Once {
        /// Since the start of the measured window.
        at: Duration,
        /// How long, where that is said.
        length: Option<Duration>,
    },
    /// Again and again, by chance: both times are exponential.
    Random {
        /// Mean time from the window's start, or from the end of the fault before, to the next.
        mttf: Duration,
        /// Mean length.
        mttr: Duration,
    },
}

/// A fault, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What is broken.
    pub kind: FaultKind,
    /// When.
    pub timing: Timing,
    /// Of connections: which part of them, above 0, at most 1.
    pub share: f64,
    /// Of connections: of this group alone. Of a partition: this group. A group, or the clients that groups share.
    pub group: Option<String>,
    /// Of a link: its name.
    pub link: Option<String>,
    /// Of the system: this of its servers, from 1; all if `None`.
    pub server: Option<u32>,
}
