//! A uniform random sample of measured first copies, of bounded size: reservoir sampling that draws how many messages it
//! skips (algorithm L: Li, *Reservoir-sampling algorithms of time complexity O(n(1 + log(N/n)))*, ACM TOMS 20(4), 1994).

use std::hash::{BuildHasher, RandomState};

use pubmark_model::random::Stream;
use serde::{Deserialize, Serialize};

/// Largest number of messages in the sample of a shard.
pub const SAMPLE: usize = 256;

/// Purpose of the draws.
const PURPOSE: u64 = 0xd0e5;

/// A key from the operating system's randomness. A key from the run's seed would tell a system that knows pubmark which
/// messages are audited. It has no influence on what is sent.
pub fn unpredictable_key() -> u64 {
    RandomState::new().hash_one(PURPOSE)
}

/// What the header of a message that arrived says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueClaim {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// The message's sequence number.
    pub sequence: u32,
    /// When it was due, ns relative to the start of the measured window.
    pub due_ns: i64,
}

/// The sample of a shard.
pub struct DueSample {
    claims: Vec<DueClaim>,
    /// Number of messages to skip before the next one is kept.
    skip: u64,
    /// The largest of the random numbers that the messages of the sample would have, if each message drew one and those
    /// with the smallest were kept.
    threshold: f64,
    draws: Stream,
    drawn: u64,
}

impl DueSample {
    /// An empty sample; the key determines which messages it keeps.
    pub fn new(key: u64) -> DueSample {
        DueSample { claims: vec![], skip: 0, threshold: 1.0, draws: Stream::new(key, PURPOSE), drawn: 0 }
    }

    /// A message arrived. Most are skipped, at the cost of this comparison.
    #[inline]
    pub fn note(&mut self, publisher: u32, sequence: u32, due_ns: i64) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.keep(DueClaim { publisher, sequence, due_ns });
    }

    #[cold]
    fn keep(&mut self, claim: DueClaim) {
        if self.claims.len() < SAMPLE {
            self.claims.push(claim);
            if self.claims.len() < SAMPLE {
                return;
            }
        } else {
            let index = self.next_draw();
            let place = self.draws.pick(index, SAMPLE as u64);
            self.claims[place as usize] = claim;
        }
        self.threshold *= (-self.exponential() / SAMPLE as f64).exp();
        // A conversion to a whole number ends at the largest one.
        self.skip = (self.exponential() / -(-self.threshold).ln_1p()) as u64;
    }

    fn exponential(&mut self) -> f64 {
        let index = self.next_draw();
        self.draws.exponential(index)
    }

    fn next_draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// The messages of the sample.
    pub fn into_claims(self) -> Vec<DueClaim> {
        self.claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequence numbers in the sample of this many messages.
    fn sampled(key: u64, messages: u32) -> Vec<u32> {
        let mut sample = DueSample::new(key);
        (0..messages).for_each(|sequence| sample.note(0, sequence, i64::from(sequence)));
        sample.into_claims().iter().map(|claim| claim.sequence).collect()
    }

    #[test]
    fn a_sample_holds_all_of_few_messages_and_a_fixed_number_of_many() {
        assert!(sampled(1, 0).is_empty());
        assert_eq!(sampled(1, 100), (0..100).collect::<Vec<u32>>());
        assert_eq!(sampled(1, SAMPLE as u32), (0..SAMPLE as u32).collect::<Vec<u32>>());
        let mut many = sampled(1, 100_000);
        many.sort_unstable();
        many.dedup();
        assert_eq!(many.len(), SAMPLE, "each is another message");
    }

    #[test]
    fn the_key_determines_the_sample() {
        assert_eq!(sampled(7, 10_000), sampled(7, 10_000));
        assert_ne!(sampled(7, 10_000), sampled(8, 10_000));
    }

    #[test]
    fn each_message_is_in_the_sample_with_the_same_probability() {
        const SAMPLES: u64 = 200;
        const MESSAGES: u32 = 10_000;
        let mut tenths = [0u32; 10];
        for key in 0..SAMPLES {
            sampled(key, MESSAGES).iter().for_each(|sequence| tenths[(sequence * 10 / MESSAGES) as usize] += 1);
        }
        // 5,120 each, with a standard deviation of 67.
        assert!(tenths.iter().all(|count| count.abs_diff(5_120) < 400), "{tenths:?}");
    }
}
