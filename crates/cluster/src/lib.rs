//! The control plane between one coordinator and the nodes of a run.
//!
//! A node ([`node::attend`]) starts a worker process where the coordinator ([`Cluster`]) wants one and carries the byte stream between
//! that worker and whoever drives it, so that a worker on another machine is driven like one on this. Besides it carries counters while
//! somebody watches them, the time, and nothing else; while a run measures, only the time, which is the sign of life too. One connection
//! and one gRPC stream a node, TLS with certificates on both sides, and a token. See docs/explanation/many-machines.md.

pub mod address;
mod announcement;
pub mod clock;
mod coordinator;
pub mod credentials;
mod error;
mod lanes;
pub mod limits;
mod machine;
pub mod messages;
pub mod node;

mod stubs {
    //! Made by build.rs.
    #![allow(missing_docs)]
    tonic::include_proto!("pubmark.Control");
}

pub use announcement::Announcement;
pub use coordinator::{Cluster, Event, NodeInfo, NodesRequired, Traffic};
pub use credentials::Credentials;
pub use error::{ClusterError, Objection, Refusal};
