//! Faults: what is broken during a run, when, and for how long. Plain data; other crates inject the faults.

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
    /// The system is stopped in an orderly way and started again: when it has stopped, or when the fault ends if that is
    /// later.
    Restart,
    /// The system is paused (SIGSTOP) until the fault ends (SIGCONT).
    Pause,
    /// Connections end with a reset (RST); their clients cannot reconnect until the fault ends.
    Reset,
    /// Connections fail silently: nothing is sent or received on them any more. When the fault ends, their clients close
    /// them and reconnect; if the fault has no end, the clients have to detect the failure.
    Cut,
    /// A group's link carries no packets in either direction until the fault ends.
    Partition,
    /// A link carries no packets in either direction, for all groups that use it, until the fault ends.
    LinkDown,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a fault affects.
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
    /// The name in files and on the command line.
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

    /// What the fault affects.
    pub fn scope(self) -> Scope {
        match self {
            FaultKind::Kill | FaultKind::Restart | FaultKind::Pause => Scope::System,
            FaultKind::Reset | FaultKind::Cut => Scope::Connections,
            FaultKind::Partition | FaultKind::LinkDown => Scope::Links,
        }
    }

    /// Whether a fault of this kind needs a length.
    pub fn needs_length(self) -> bool {
        matches!(self, FaultKind::Pause | FaultKind::Partition | FaultKind::LinkDown)
    }
}

/// Time of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Timing {
    /// Once.
    Once {
        /// Time since the start of the measured window.
        at: Duration,
        /// Length, if given.
        length: Option<Duration>,
    },
    /// Repeated at random: both times are exponentially distributed.
    Random {
        /// Mean time from the window's start, or from the end of the previous fault, to the next fault.
        mttf: Duration,
        /// Mean length of a fault.
        mttr: Duration,
    },
}

/// A validated fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Time of the fault.
    pub timing: Timing,
    /// For connections: the share that is affected, above 0, at most 1.
    pub share: f64,
    /// For connections: only this group. For a partition: this group. A group, or the clients that groups share.
    pub group: Option<String>,
    /// For a link: its name.
    pub link: Option<String>,
    /// For the system: the number of the affected server, from 1; all servers if `None`.
    pub server: Option<u32>,
}
