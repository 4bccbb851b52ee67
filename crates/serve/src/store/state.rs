//! The states through which a submission passes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits for earlier submissions.
    Queued,
    /// It is being executed.
    Running,
    /// It was requested to end.
    Cancelling,
    /// It completed.
    Complete,
    /// It ended without an outcome.
    Failed,
    /// It was cancelled; results up to then are recorded.
    Cancelled,
    /// The server ended during the run; results up to then are recorded.
    Interrupted,
}

impl State {
    /// All states.
    pub const ALL: [State; 7] = [
        State::Queued,
        State::Running,
        State::Cancelling,
        State::Complete,
        State::Failed,
        State::Cancelled,
        State::Interrupted,
    ];

    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        !matches!(self, State::Queued | State::Running | State::Cancelling)
    }

    /// Name of the state.
    pub fn word(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Cancelling => "cancelling",
            State::Complete => "complete",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Interrupted => "interrupted",
        }
    }
}
