//! Sizes and contents of a device's messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::template::Template;

/// A distribution of payload sizes in bytes, header included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SizeDistribution {
    /// Always the same size.
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
    /// Drawn from a list of observed sizes, each equally likely.
    Empirical(Arc<[u32]>),
    /// The size of the rendered template.
    Rendered {
        /// The template, which is the body.
        template: Arc<Template>,
        /// Bytes of the header in front of it; 0 if the header is not in the payload.
        header_bytes: u32,
    },
}

/// Content of a payload after its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Bytes from a seeded generator: they cannot be compressed.
    Random,
    /// Printable English-like text.
    Text,
    /// A JSON document, truncated or padded to the size.
    Json(Arc<str>),
    /// A JSON document with fields that are drawn for each message, padded to the size with spaces.
    Template(Arc<Template>),
}

/// Maximum number of user properties that the workload defines.
pub const MOST_PROPERTIES: usize = 8;
/// Name of the user property that contains the header.
pub const HEADER_PROPERTY: &str = "pubmark";

/// Position of a message's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeaderPlace {
    /// At the front of the payload.
    #[default]
    Payload,
    /// In a user property of the message, outside the payload.
    UserProperty,
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
            SizeDistribution::Rendered { template, header_bytes } => f64::from(*header_bytes) + template.mean_bytes(),
        }
    }

    /// Mean size in bytes as sent: with a normal's floor, and sizes below `smallest_bytes` raised to it.
    pub fn mean_raised(&self, smallest_bytes: u32) -> f64 {
        let header = f64::from(smallest_bytes);
        match self {
            SizeDistribution::Fixed(size) => f64::from(*size).max(header),
            SizeDistribution::Normal { mean, sd, floor } => {
                // E[max(X, f)] = f + sd·(z·Φ(z) + φ(z)) with z = (mean − f) / sd.
                let floor = f64::from(*floor).max(header);
                if *sd == 0.0 {
                    return mean.max(floor);
                }
                let z = (mean - floor) / sd;
                let density = libm::exp(-z * z / 2.0) / libm::sqrt(std::f64::consts::TAU);
                floor + sd * (z * below(z) + density)
            }
            SizeDistribution::Lognormal { mean, sd } => {
                let variance = libm::log(1.0 + (sd / mean) * (sd / mean));
                if variance == 0.0 {
                    return mean.max(header);
                }
                // For a lognormal, the part of the mean above h is mean·Φ(s − z), where z is h in standard deviations of
                // the logarithm.
                let deviation = libm::sqrt(variance);
                let z = (libm::log(header / mean) + variance / 2.0) / deviation;
                header * below(z) + mean * below(deviation - z)
            }
            SizeDistribution::Uniform { min, max } => {
                let count = f64::from(*max) - f64::from(*min) + 1.0;
                let raised = (header - f64::from(*min)).clamp(0.0, count);
                let rest = count - raised;
                let rest_mean = (f64::from(*min) + raised + f64::from(*max)) / 2.0;
                (raised * header + rest * rest_mean) / count
            }
            SizeDistribution::Empirical(sizes) => {
                let sum: f64 = sizes.iter().map(|size| f64::from(*size).max(header)).sum();
                sum / sizes.len().max(1) as f64
            }
            SizeDistribution::Rendered { .. } => self.mean().max(header),
        }
    }

    /// The smallest size that can be drawn, before it is raised to the size of the header.
    pub fn lower_bound(&self) -> u32 {
        match self {
            SizeDistribution::Fixed(size) => *size,
            SizeDistribution::Normal { floor, .. } => *floor,
            SizeDistribution::Lognormal { .. } => 0,
            SizeDistribution::Uniform { min, .. } => *min,
            SizeDistribution::Empirical(sizes) => sizes.iter().copied().min().unwrap_or(0),
            SizeDistribution::Rendered { template, header_bytes } => header_bytes + template.least_bytes() as u32,
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
            SizeDistribution::Rendered { template, header_bytes } => header_bytes + template.most_bytes() as u32,
        }
    }
}

/// Probability that a standard normal variable is below `z`.
pub(crate) fn below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}
