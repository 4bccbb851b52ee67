//! What a node's clock reads when the run's reads something else: hard limits instead of guesses.

mod estimate;
mod estimator;

pub use estimate::Reading;
pub use estimator::{Figures, RunClockEstimator};
