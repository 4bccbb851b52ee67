//! Checks whether every writer–reader pair had a delivery. Without a broker, clients discover each other, and a pair
//! that did not discover each other looks like a pair whose messages were lost. See
//! docs/explanation/message-accounting.md.

use std::collections::BTreeMap;

use pubmark_record::record::{Delivery, PairCounts};

/// A pair without deliveries counts as lossy, and not as undiscovered, if loss at the rate of the other pairs would
/// explain at least this number of such pairs per run.
const CHANCE: f64 = 0.01;

/// Streams of measured messages by their result.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// Streams with expected messages.
    all: u64,
    /// Of the streams with deliveries: messages expected, and missing.
    expected: u64,
    missing: u64,
    /// Number of streams without deliveries, by the number of their expected messages.
    silent: BTreeMap<u64, u64>,
}

impl Pairs {
    /// Adds a stream's part of the accounting; true if it had no delivery. `delivered_before` returns whether a message
    /// of it arrived in the warm-up.
    pub fn enter(&mut self, part: &Delivery, delivered_before: impl FnOnce() -> bool) -> bool {
        if part.expected == 0 {
            return false;
        }
        self.all += 1;
        if part.delivered > 0 || delivered_before() {
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
        // The probability that a pair loses all its messages, times the number of pairs.
        let is_explained = |expected: u64| loss.powf(expected as f64) * self.all as f64 >= CHANCE;
        let unreached =
            self.silent.iter().filter(|(expected, _)| !is_explained(**expected)).map(|(_, pairs)| pairs).sum();
        PairCounts { all: self.all, silent: self.silent.values().sum(), unreached, probed: None }
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
        let PairCounts { all, silent, unreached, .. } = all.counts();
        (all, silent, unreached)
    }

    #[test]
    fn pairs_without_a_delivery_are_silent_unless_loss_explains_it() {
        assert_eq!(counts(&[(10, 10), (10, 10), (0, 0)]), (2, 0, 0), "nothing was expected of one");
        assert_eq!(counts(&[(10, 10), (10, 0)]), (2, 1, 1));
        assert_eq!(counts(&[(1, 1), (1, 0)]), (2, 1, 1), "where nothing else is lost, one message is enough");
        assert_eq!(counts(&[(10, 0), (10, 0)]), (2, 2, 2), "nobody met anybody");
        // Half of the messages are lost: one in four pairs loses both of its two, but no pair all of its hundred.
        let half: Vec<(u64, u64)> = (0..100).map(|_| (100, 50)).collect();
        assert_eq!(counts(&[&half[..], &[(2, 0), (100, 0)]].concat()), (102, 2, 1));
    }

    #[test]
    fn a_pair_with_a_delivery_in_the_warm_up_is_not_silent() {
        let mut pairs = Pairs::default();
        pairs.enter(&Delivery { expected: 3, lost: 3, ..Delivery::default() }, || true);
        assert_eq!(pairs.counts(), PairCounts { all: 1, ..PairCounts::default() });
    }
}
