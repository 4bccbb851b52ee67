//! Payload sizes drawn from a group's distribution.

use std::sync::Arc;

use crate::payload::SizeDistribution;
use crate::random::Stream;
use crate::schedule::purpose;
use crate::template::{BodyDraw, Template};

/// A size distribution with its constants computed.
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
    /// The rendered template after a header of the given number of bytes.
    Rendered(Arc<Template>, u32),
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
            SizeDistribution::Rendered { template, header_bytes } => {
                SizeRule::Rendered(Arc::clone(template), *header_bytes)
            }
        }
    }

    /// Size of a message in bytes, rounded to the nearest; not yet raised to the header. `device_bytes` is the length of
    /// the device's name.
    pub fn draw(&self, draw: BodyDraw, device_bytes: u8) -> u32 {
        let (stream, index) = (Stream::new(draw.key, purpose::SIZE), u64::from(draw.number));
        match self {
            SizeRule::Fixed(bytes) => *bytes,
            SizeRule::Normal { mean, sd, floor } => ((mean + sd * stream.normal(index)).round() as u32).max(*floor),
            SizeRule::Lognormal { mu, sigma } => libm::exp(mu + sigma * stream.normal(index)).round() as u32,
            SizeRule::Uniform { min, count } => min + stream.pick(index, *count) as u32,
            SizeRule::Empirical(sizes) if sizes.is_empty() => 0,
            SizeRule::Rendered(template, header_bytes) => {
                header_bytes + template.bytes(draw, usize::from(device_bytes)) as u32
            }
            SizeRule::Empirical(sizes) => sizes[stream.pick(index, sizes.len() as u64) as usize],
        }
    }
}
