//! What all parts of a shard add to.

use super::figures::Figures;
use super::traffic::Tally;

/// The totals of a shard.
pub struct Totals {
    /// What was measured.
    pub figures: Figures,
    /// What its sessions carried in the measured window.
    pub tally: Tally,
    /// Time of the last event that moves a message, ns of `CLOCK_MONOTONIC`.
    pub last_event_ns: u64,
}

impl Totals {
    /// Nothing yet.
    pub fn new(figures: Figures, tally: Tally) -> Totals {
        Totals { figures, tally, last_event_ns: 0 }
    }

    /// Counts a cause in words.
    pub fn count_cause(&mut self, words: String) {
        self.figures.counters.count_cause(words);
    }
}
