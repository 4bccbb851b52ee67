//! Samples messages if tracing all would be too many: one in N, selected by publisher and sequence number, so that every
//! process that sees a message selects the same ones.

use pubmark_model::random::mix;
use serde::{Deserialize, Serialize};

/// A share of all messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    mask: u64,
}

impl Sampling {
    /// One message in `every`, rounded up to a power of two.
    pub fn one_in(every: u64) -> Sampling {
        Sampling { mask: every.clamp(1, 1 << 32).next_power_of_two() - 1 }
    }

    /// One message in this many.
    pub fn every(&self) -> u64 {
        self.mask + 1
    }

    /// Is this message sampled?
    pub fn includes(&self, publisher: u32, sequence: u32) -> bool {
        self.mask == 0 || mix(u64::from(publisher) << 32 | u64::from(sequence)) & self.mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_n_messages_of_every_publisher_is_sampled() {
        for publisher in [0, 1, 77] {
            let included = (0..80_000).filter(|sequence| Sampling::one_in(8).includes(publisher, *sequence)).count();
            // Five standard deviations of the binomial distribution.
            assert!(included.abs_diff(10_000) < 470, "{included}");
        }
        assert!((0..100).all(|sequence| Sampling::one_in(1).includes(3, sequence)));
        assert_eq!((Sampling::one_in(0).every(), Sampling::one_in(5).every()), (1, 8));
    }
}
