//! Did every writer–reader pair meet? Where there is no broker, clients find each other by themselves, and a pair that did not looks like a
//! pair whose messages were lost. See docs/explanation/message-accounting.md.

use std::collections::BTreeMap;

use pubmark_record::record::{Delivery, PairCounts};

/// Pairs that had nothing, if loss as it was between the others would explain one such pair in N runs, are lossy and not unmet.
const CHANCE: f64 = 0.01;

/// Streams of measured messages by what became of them.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// Those of which something was expected.
    all: u64,
    /// Of those of which something arrived: messages expected, and missing.
    expected: u64,
    missing: u64,
    /// How many had nothing, by how many messages were expected.
    silent: BTreeMap<u64, u64>,
}

impl Pairs {
    /// Enters a stream's part of the books; true if it had nothing. `heard_before`: did something of it arrive in the warm-up?
    pub fn enter(&mut self, part: &Delivery, heard_before: impl FnOnce() -> bool) -> bool {
        if part.expected == 0 {
            return false;
        }
        self.all += 1;
        if part.delivered > 0 || heard_before() {
            self.expected += part.expected;
            self.missing += part.lost + part.unknown;
            return false;
        }
        *self.silent.entry(part.expected).or_default() += 1;
        true
    }

    /// The counts.
    pub fn counts(&self) -> PairCounts {
        let loss = if self.expected == 0 { 0.0 } else { self.missing as f64 / self.expected as f64 };
        // The chance that a pair loses all its messages, times the pairs to which that can happen.
        let is_explained = |expected: u64| loss.powf(expected as f64) * self.all as f64 >= CHANCE;
        let unmet = self.silent.iter().filter(|(expected, _)| !is_explained(**expected)).map(|(_, pairs)| pairs).sum();
        PairCounts { all: self.all, silent: self.silent.values().sum(), unmet, probed: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(u64, u64)]) -> (u64, u64, u64) {
        let mut all = Pairs::default();
        for (expected, delivered) in pairs {
            let (expected, delivered) = (*expected, *delivered);
            all.enter(&Delivery { expected, delivered, lost: expected - delivered, ..Delivery::default() }, || false);
        }
        let PairCounts { all, silent, unmet, .. } = all.counts();
        (all, silent, unmet)
    }

    #[test]
    fn pairs_that_had_nothing_did_not_meet_unless_loss_explains_it() {
        assert_eq!(counts(&[(10, 10), (10, 10), (0, 0)]), (2, 0, 0), "nothing was expected of one");
        assert_eq!(counts(&[(10, 10), (10, 0)]), (2, 1, 1));
        assert_eq!(counts(&[(1, 1), (1, 0)]), (2, 1, 1), "where nothing else is lost, one message is enough");
        assert_eq!(counts(&[(10, 0), (10, 0)]), (2, 2, 2), "nobody met anybody");
        // Half of the messages are lost: one in four pairs loses both of its two, none all of its hundred.
        let half: Vec<(u64, u64)> = (0..100).map(|_| (100, 50)).collect();
        assert_eq!(counts(&[&half[..], &[(2, 0), (100, 0)]].concat()), (102, 2, 1));
    }

    #[test]
    fn who_was_heard_in_the_warm_up_has_met() {
        let mut pairs = Pairs::default();
        pairs.enter(&Delivery { expected: 3, lost: 3, ..Delivery::default() }, || true);
        assert_eq!(pairs.counts(), PairCounts { all: 1, ..PairCounts::default() });
    }
}
