//! One run: its specification, the checks before it, its execution, and its record.
//!
//! A [`RunSpec`] describes a run completely, as data. [`RunSpec::prepare`] checks it against this machine ([`Host`]) and computes the
//! schedule; nothing is started. [`PreparedRun::run`] starts the system, drives the fleet, and returns a [`RunOutcome`] with the record;
//! meanwhile it reports progress to a [`RunObserver`]. [`RunOutcome::save`] writes the folder of the run.
//!
//! ```no_run
//! use pubmark_runner::{Host, RunSpec};
//!
//! # fn main() -> Result<(), pubmark_runner::RunError> {
//! let mut spec = RunSpec::new("smart-home");
//! spec.target.system = Some("mosquitto".to_owned());
//! let outcome = spec.prepare(&Host::with_program("pubmark"))?.run(&mut ())?;
//! println!("{:?}", outcome.record.verdict.status);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here prints, ends the process or reads its arguments. Errors have a [kind](ErrorKind) for programs.

#[cfg(feature = "cluster")]
mod across_nodes;
pub mod brokerless;
mod carrying;
mod certificates;
mod child_process;
mod client_program;
mod cluster;
pub mod command_line;
mod conclusion;
mod contention;
pub mod custom_metrics;
mod endpoint;
mod error;
pub mod faults;
mod host;
mod identities;
pub mod installing;
mod labels;
mod latency_breakdown;
mod life;
pub mod linked;
mod links;
pub mod log_in;
mod machine_limits;
mod message_log;
mod node_links;
#[cfg(feature = "cluster")]
pub mod node_machine;
mod nodes;
pub mod objectives;
mod observer;
mod offers;
mod on_nodes;
mod pins;
mod planning;
mod prepare;
mod prepared;
pub mod progress_text;
pub mod protocol_pair;
pub mod readiness;
mod recording;
mod relay;
pub mod relayed;
mod repetition;
mod sampling;
pub mod save;
mod sockets;
pub mod sources;
pub mod spec;
pub mod stream;
pub mod suggestion;
mod suitability;
mod system_node;
pub mod target;
mod trunked;
pub mod unbuilt;
mod watch;
pub mod workers;

pub use cluster::JoinedNodes;
#[cfg(feature = "cluster")]
pub use cluster::{POD, host_system, observe, unusable};
pub use error::{ErrorKind, RunError};
pub use host::Host;
pub use labels::{check_nodes as check_node_labels, labels_in_turn};
pub use machine_limits::ClientNeeds;
pub use message_log::MessageLog;
pub use observer::{
    LiveInterval, LiveLatency, LiveUsage, Phase, RunEvent, RunObserver, RunProgress, Totals, UsageNow, WindowLatency,
};
pub use prepare::CheckedRun;
pub use prepared::{PreparedRun, RunOutcome};
pub use pubmark_systems::without_output;
pub use recording::now;
pub use repetition::Repetition;
pub use spec::{RunSpec, WorkloadSource, local_name};
