//! Counter-based random numbers: value `n` of a stream is a pure function of (key, n), so any draw can be repeated at any
//! time, in any order, on any shard. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) is such a function.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Step of the SplitMix64 sequence: 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Stafford's variant 13): a bijection that mixes every bit into every other.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers that can be read at any index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream for `purpose` (a constant chosen by the caller) under `key`.
    pub fn new(key: u64, purpose: u64) -> Stream {
        Stream { key: mix(key ^ mix(purpose.wrapping_mul(GOLDEN))) }
    }

    /// Value `index` of the stream, uniform over all 64-bit numbers.
    pub fn bits(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Value `index` as a whole number in [0, `count`).
    pub fn pick(self, index: u64, count: u64) -> u64 {
        ((u128::from(self.bits(index)) * u128::from(count)) >> 64) as u64
    }

    /// Value `index` as a number in [0, 1) with 53 random bits.
    pub fn unit(self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Value `index` of a standard normal distribution (Box and Muller 1958, cosine branch); draws 2·index and 2·index + 1.
    pub fn normal(self, index: u64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit(2 * index)));
        radius * libm::cos(std::f64::consts::TAU * self.unit(2 * index + 1))
    }

    /// Value `index` of an exponential distribution with mean 1.
    pub fn exponential(self, index: u64) -> f64 {
        -libm::log(1.0 - self.unit(index))
    }
}

/// A constant or random time: think time of a reaction, or time in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RandomTime {
    /// Always the same; zero for none.
    Fixed(Duration),
    /// Exponentially distributed with this mean (ComBench's `exponentialDistribution`).
    Exponential(Duration),
}

impl RandomTime {
    /// The time for a draw, in ns.
    pub fn draw_ns(&self, stream: Stream, index: u64) -> u64 {
        let nanoseconds = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            RandomTime::Fixed(time) => nanoseconds(time),
            RandomTime::Exponential(mean) => (nanoseconds(mean) as f64 * stream.exponential(index)) as u64,
        }
    }

    /// Mean of the time.
    pub fn mean(&self) -> Duration {
        match self {
            RandomTime::Fixed(time) | RandomTime::Exponential(time) => *time,
        }
    }
}

/// Folds bytes into a key, eight at a time; for names, not for untrusted input.
pub fn fold(mut key: u64, bytes: &[u8]) -> u64 {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        key = mix(key ^ u64::from_le_bytes(word)).wrapping_add(GOLDEN);
    }
    mix(key ^ bytes.len() as u64)
}
