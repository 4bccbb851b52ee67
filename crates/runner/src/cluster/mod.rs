//! Runs on nodes; a build without the feature `cluster` refuses them.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(feature = "cluster")]
mod channel;
mod finished;
#[cfg(feature = "cluster")]
mod hosted;
#[cfg(feature = "cluster")]
mod observed;
#[cfg(feature = "cluster")]
mod observer;
#[cfg(feature = "cluster")]
mod present;
#[cfg(feature = "cluster")]
mod system_host;
#[cfg(feature = "cluster")]
mod system_order;

pub use finished::{FinishedSystem, WorkerUsage};

#[cfg(not(feature = "cluster"))]
pub use absent::{Hosted, JoinedNodes, Observed, beside};
#[cfg(feature = "cluster")]
pub use hosted::Hosted;
#[cfg(feature = "cluster")]
pub use observed::{Observed, beside};
#[cfg(feature = "cluster")]
pub use observer::{POD, observe};
#[cfg(feature = "cluster")]
pub use present::{JoinedNodes, unusable};
#[cfg(feature = "cluster")]
pub use system_host::host_system;
