//! Measurements that all parts of a shard add to.

use super::figures::Figures;
use super::traffic::Tally;

/// The totals of a shard.
pub struct Totals {
    /// Times, counters and time series.
    pub figures: Figures,
    /// Traffic of its sessions in the measured window.
    pub tally: Tally,
    /// When the shard had handled the last event of a message, ns of `CLOCK_MONOTONIC`. Not when the event happened: a library
    /// stamps what arrives long before a shard that is behind handles it, and a shard that works is not silent.
    pub last_event_ns: u64,
    /// Such events were handled since then.
    had_events: bool,
}

impl Totals {
    /// Without measurements.
    pub fn new(figures: Figures, tally: Tally) -> Totals {
        Totals { figures, tally, last_event_ns: 0, had_events: false }
    }

    /// A message had an event.
    #[inline]
    pub fn note_event(&mut self) {
        self.had_events = true;
    }

    /// All events so far are handled.
    pub fn stamp_events(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.had_events) {
            self.last_event_ns = now_ns;
        }
    }

    /// Counts the cause of a connection's end, in words.
    pub fn count_cause(&mut self, words: String) {
        self.figures.counters.count_cause(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_is_when_it_was_handled_and_not_when_it_happened() {
        let mut totals = Totals::new(Figures::new(1, 0, 1_000_000_000), Tally::new(vec![]));
        totals.stamp_events(5);
        assert_eq!(totals.last_event_ns, 0, "there was none");
        totals.note_event();
        totals.note_event();
        totals.stamp_events(70);
        totals.stamp_events(90);
        assert_eq!(totals.last_event_ns, 70, "none since then");
    }
}
