//! CPU time and wake-ups of a shard's thread.

use serde::{Deserialize, Serialize};

/// CPU time and wake-ups of a thread, up to an instant or between two instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Number of times that the thread woke from a wait.
    pub wakeups: u64,
    /// The thread's quantum at that instant, or at the end, ns; 0 for none.
    pub quantum_ns: u64,
    /// Time at ordinary priority because its real-time budget was used up, ns; `None` for a thread that is not real-time.
    pub ordinary_ns: Option<u64>,
}
