//! What a node's clock reads when the run's reads something else: hard limits instead of guesses.

mod estimate;
mod keeper;

pub use estimate::Reading;
pub use keeper::{Figures, Keeper};
