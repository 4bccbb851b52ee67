//! How the sessions of a run come up.

use serde::{Deserialize, Serialize};

/// How sessions came up before the schedule began. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ramp {
    /// Sessions that were accepted.
    pub accepted: u64,
    /// The first try, and the last acceptance; `None` while there was none.
    pub span_ns: Option<(u64, u64)>,
}

impl Ramp {
    /// A session is tried for.
    pub fn tried(&mut self, at_ns: u64) {
        self.span_ns.get_or_insert((at_ns, at_ns));
    }

    /// A session was accepted.
    pub fn accepted(&mut self, at_ns: u64) {
        self.accepted += 1;
        let (first_ns, last_ns) = self.span_ns.get_or_insert((at_ns, at_ns));
        *last_ns = at_ns.max(*last_ns).max(*first_ns);
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &Ramp) {
        self.accepted += other.accepted;
        self.span_ns = match (self.span_ns, other.span_ns) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }

    /// From the first try to the last acceptance, s; `None` if nobody was accepted.
    pub fn seconds(&self) -> Option<f64> {
        let (first_ns, last_ns) = self.span_ns.filter(|_| self.accepted > 0)?;
        Some((last_ns - first_ns) as f64 / 1e9)
    }
}
