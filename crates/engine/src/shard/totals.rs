//! Measurements that all parts of a shard add to.

use super::figures::Figures;
use super::traffic::Tally;

/// The totals of a shard.
pub struct Totals {
    /// Times, counters and time series.
    pub figures: Figures,
    /// Traffic of its sessions in the measured window.
    pub tally: Tally,
    /// Time of the last event of a message, ns of `CLOCK_MONOTONIC`.
    pub last_event_ns: u64,
}

impl Totals {
    /// Without measurements.
    pub fn new(figures: Figures, tally: Tally) -> Totals {
        Totals { figures, tally, last_event_ns: 0 }
    }

    /// Counts the cause of a connection's end, in words.
    pub fn count_cause(&mut self, words: String) {
        self.figures.counters.count_cause(words);
    }
}
