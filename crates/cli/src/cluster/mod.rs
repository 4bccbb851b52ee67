//! Runs on machines that joined; a build without the feature `cluster` says that it has none.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(feature = "cluster")]
mod present;

#[cfg(not(feature = "cluster"))]
pub use absent::Joined;
#[cfg(feature = "cluster")]
pub use present::{Joined, unusable};
