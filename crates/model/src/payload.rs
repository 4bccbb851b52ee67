//! How large a device's messages are and what fills them.

use std::sync::Arc;

/// A distribution of payload sizes in bytes, header included.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeDistribution {
    /// Always the same.
    Fixed(u32),
    /// Normal, cut below at `floor`.
    Normal {
        /// Mean in bytes.
        mean: f64,
        /// Standard deviation in bytes.
        sd: f64,
        /// Smallest size drawn; smaller draws become this.
        floor: u32,
    },
    /// Lognormal, given by mean and standard deviation of the size itself (not of its logarithm).
    Lognormal {
        /// Mean in bytes.
        mean: f64,
        /// Standard deviation in bytes.
        sd: f64,
    },
    /// Every size from `min` to `max` equally likely.
    Uniform {
        /// Smallest size.
        min: u32,
        /// Largest size.
        max: u32,
    },
    /// Drawn from a list of observed sizes.
    Empirical(Arc<[u32]>),
}

/// What fills a payload behind its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Bytes from a seeded generator: they do not compress.
    Random,
    /// Printable English-like text.
    Text,
    /// A JSON document cut or padded to the size.
    Json(Arc<str>),
}

impl SizeDistribution {
    /// Mean size in bytes as drawn (a floor is not corrected for).
    pub fn mean(&self) -> f64 {
        match self {
            SizeDistribution::Fixed(size) => f64::from(*size),
            SizeDistribution::Normal { mean, .. } | SizeDistribution::Lognormal { mean, .. } => *mean,
            SizeDistribution::Uniform { min, max } => (f64::from(*min) + f64::from(*max)) / 2.0,
            SizeDistribution::Empirical(sizes) => {
                sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / sizes.len().max(1) as f64
            }
        }
    }

    /// A size that draws exceed with negligible probability (mean + 6 sd where unbounded), for limits.
    pub fn upper_bound(&self) -> u32 {
        match self {
            SizeDistribution::Fixed(size) => *size,
            SizeDistribution::Normal { mean, sd, floor } => ((mean + 6.0 * sd) as u32).max(*floor),
            SizeDistribution::Lognormal { mean, sd } => {
                let variance = libm::log(1.0 + (sd / mean) * (sd / mean));
                libm::exp(libm::log(*mean) - variance / 2.0 + 6.0 * libm::sqrt(variance)) as u32
            }
            SizeDistribution::Uniform { max, .. } => *max,
            SizeDistribution::Empirical(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }
}
