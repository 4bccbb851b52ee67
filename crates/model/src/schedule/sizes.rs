//! Payload sizes drawn from a group's distribution.

use std::sync::Arc;

use crate::payload::SizeDistribution;
use crate::random::Stream;

/// A size distribution with its constants worked out.
#[derive(Clone, Debug)]
pub(super) enum SizeRule {
    Fixed(u32),
    Normal {
        mean: f64,
        sd: f64,
        floor: u32,
    },
    /// Mean and standard deviation of the logarithm.
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    Uniform {
        min: u32,
        count: u64,
    },
    Empirical(Arc<[u32]>),
}

impl SizeRule {
    pub fn new(size: &SizeDistribution) -> SizeRule {
        match size {
            SizeDistribution::Fixed(bytes) => SizeRule::Fixed(*bytes),
            SizeDistribution::Normal { mean, sd, floor } => SizeRule::Normal { mean: *mean, sd: *sd, floor: *floor },
            SizeDistribution::Lognormal { mean, sd } => {
                let variance = libm::log1p((sd / mean) * (sd / mean));
                SizeRule::Lognormal { mu: libm::log(*mean) - variance / 2.0, sigma: libm::sqrt(variance) }
            }
            SizeDistribution::Uniform { min, max } => {
                SizeRule::Uniform { min: *min, count: u64::from(max.saturating_sub(*min)) + 1 }
            }
            SizeDistribution::Empirical(sizes) => SizeRule::Empirical(sizes.clone()),
        }
    }

    /// Size number `index` in bytes, rounded to the nearest; not yet raised to the header.
    pub fn draw(&self, stream: Stream, index: u64) -> u32 {
        match self {
            SizeRule::Fixed(bytes) => *bytes,
            SizeRule::Normal { mean, sd, floor } => ((mean + sd * stream.normal(index)).round() as u32).max(*floor),
            SizeRule::Lognormal { mu, sigma } => libm::exp(mu + sigma * stream.normal(index)).round() as u32,
            SizeRule::Uniform { min, count } => min + pick(stream.bits(index), *count) as u32,
            SizeRule::Empirical(sizes) if sizes.is_empty() => 0,
            SizeRule::Empirical(sizes) => sizes[pick(stream.bits(index), sizes.len() as u64) as usize],
        }
    }
}

/// A uniform draw of 64 bits scaled to [0, `count`).
fn pick(bits: u64, count: u64) -> u64 {
    ((u128::from(bits) * u128::from(count)) >> 64) as u64
}
