//! What a shard's own thread spends.

use serde::{Deserialize, Serialize};

/// CPU time and wake-ups of a thread, up to an instant or between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// ns.
    pub cpu_ns: u64,
    /// Times that it came out of waiting.
    pub wakeups: u64,
    /// Its quantum at that instant, or at the end, ns; 0 for none.
    pub quantum_ns: u64,
    /// Time at ordinary priority because its real-time budget was used up, ns; `None` for a thread that is not real-time.
    pub ordinary_ns: Option<u64>,
}
