//! Systems under test: what they are, how they are started and stopped, what they cost; and the machine they run on.
//!
//! A system is one YAML file ([`definition`]); [`start`] starts it and [`running::RunningSystem`] stops it in any case.
//! [`sampler`] measures process trees, [`environment`] describes the machine. This crate has no clients of the systems'
//! protocols: the caller checks with a real message that a system works.

pub mod affinity;
pub mod awake;
pub mod breaking;
pub mod cgroup;
pub mod client_programs;
pub mod clock;
pub mod condition;
pub mod container;
pub mod definition;
pub mod descriptors;
pub mod device_certificates;
pub mod end_watch;
pub mod environment;
pub mod error;
pub mod install;
pub mod launch;
pub mod limits;
pub mod meter;
pub mod network;
pub mod node_exporter;
pub mod ports;
pub mod private_directory;
pub mod probe;
pub mod process;
pub mod programs;
pub mod running;
pub mod sampler;
pub mod sockets;
pub mod supervisor;
pub mod template;
pub mod tree;

pub use cgroup::{CgroupFolders, CostSource};
pub use definition::Definition;
pub use error::{SystemError, without_output};
pub use launch::{BackEndChoice, Endpoint, StartOptions, TlsFiles, start};
pub use running::RunningSystem;
