//! Conversion between a node's clock and the run's clock, with hard limits of the error.

mod estimate;
mod estimator;

pub use estimate::Reading;
pub use estimator::{Figures, RunClockEstimator};
