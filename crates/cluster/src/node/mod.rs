//! A node's end: joins a coordinator, runs workers at its request, sets the run's clock for them, and ends them when it is gone.

mod clock;
mod connection;
mod counts;
mod ports;
mod session;
mod worker;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pubmark_model::placement::Labels;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::credentials::Credentials;
use crate::error::ClusterError;
use crate::limits;
use crate::messages::Join;

pub use counts::NodeCounts;

/// Starts a worker whose ends these are.
pub type Launch<'a> = &'a dyn Fn(OwnedFd, OwnedFd) -> io::Result<Child>;

/// Resources that a machine had used up to one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineReading {
    /// CPU time of all processes, ns.
    pub cpu_ns: u64,
    /// Memory in use, bytes.
    pub used_bytes: Option<u64>,
    /// The interface that has the node's address; `None` if none has it but the loopback.
    pub interface: Option<InterfaceReading>,
}

/// Bytes that a network interface had carried up to one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceReading {
    /// Its name.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// Where a node looks for its coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// HOST:PORT; of a name with several addresses each is tried.
    At(String),
    /// Where one is announced on a local network of this machine.
    Announced,
}

impl std::fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whereabouts::At(address) => f.write_str(address),
            Whereabouts::Announced => f.write_str("an address that is announced"),
        }
    }
}

/// Role of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Clients send and receive on it.
    #[default]
    Clients,
    /// It measures what a system uses on its machine.
    Observer,
    /// It starts systems on its machine, and measures what they use.
    SystemHost,
}

impl NodeKind {
    /// Of what it says of itself.
    pub(crate) fn of(join: &Join) -> NodeKind {
        match (join.starts_systems, join.observes) {
            (true, _) => NodeKind::SystemHost,
            (false, true) => NodeKind::Observer,
            (false, false) => NodeKind::Clients,
        }
    }

    /// Several of them, in words.
    pub fn plural(self) -> &'static str {
        match self {
            NodeKind::Clients => "nodes",
            NodeKind::Observer => "observers",
            NodeKind::SystemHost => "nodes that start systems",
        }
    }
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Where the coordinator is.
    pub join: Whereabouts,
    /// Its credentials.
    pub credentials: Credentials,
    /// Its name.
    pub name: String,
    /// Its version of pubmark.
    pub version: String,
    /// Name of its machine.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Cores that pubmark can use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// CPU idle states of its machine are disabled while a worker runs.
    pub awake: bool,
    /// Its role.
    pub kind: NodeKind,
    /// Where clients of other machines reach its clients; `None`: the address from which it joins.
    pub address: Option<IpAddr>,
    /// Its labels, by which groups are placed.
    pub labels: Labels,
    /// Why links cannot be emulated on its machine, if they cannot.
    pub no_links: Option<String>,
    /// The same of links by the kernel's netem.
    pub no_kernel_netem: Option<String>,
    /// Reads what its machine has taken, and what the interface with this address has carried; `None` where the kernel does not say.
    pub machine: fn(Option<IpAddr>) -> Option<MachineReading>,
    /// It tells its counts once a second, as [`Happening::Counts`].
    pub counts: bool,
    /// Ends with the coordinator, instead of waiting for another.
    pub once: bool,
    /// An error that is put into its clock, to see whether it is found: how far off, ns, and how much too fast, parts in a million.
    pub clock_error: Option<(i64, f64)>,
}

/// What happens to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It waits for a coordinator; the reason why there is none yet.
    Waits(String),
    /// It joined the coordinator at this address.
    Joined(String),
    /// It runs the first worker of a run.
    Began,
    /// The last worker of a run has ended.
    Ended,
    /// Counts of its clients.
    Counts(Box<NodeCounts>),
    /// The coordinator is gone; the reason.
    Left(String),
}

/// Joins, and serves until `stop` is set; with [`NodeSettings::once`] until the coordinator goes.
///
/// # Errors
/// The coordinator refuses this node, or cannot be one.
pub fn attend(
    settings: &NodeSettings,
    launch: Launch<'_>,
    stop: &AtomicBool,
    seen: &mut dyn FnMut(&Happening),
) -> Result<(), ClusterError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| ClusterError::System { doing: "start a node", source })?;
    crate::machine::stay_ahead();
    let result = runtime.block_on(serve(settings, launch, stop, seen));
    // A stalled connection is not waited for.
    runtime.shutdown_timeout(limits::GRACE);
    result
}

async fn serve(
    settings: &NodeSettings,
    launch: Launch<'_>,
    stop: &AtomicBool,
    seen: &mut dyn FnMut(&Happening),
) -> Result<(), ClusterError> {
    let mut waits_for = None;
    loop {
        let joined = tokio::select! {
            joined = connection::join(settings) => joined,
            () = stopped(stop) => return Ok(()),
        };
        match joined {
            Ok(joined) => {
                waits_for = None;
                seen(&Happening::Joined(joined.address.clone()));
                let why = session::Session::new(settings, launch, joined).serve(stop, seen).await;
                if stop.load(Relaxed) {
                    return Ok(());
                }
                seen(&Happening::Left(why));
                if settings.once {
                    return Ok(());
                }
            }
            Err(connection::Failure::Refused(error)) => return Err(error),
            Err(connection::Failure::NotYet(why)) => {
                if waits_for.as_ref() != Some(&why) {
                    seen(&Happening::Waits(why.clone()));
                    waits_for = Some(why);
                }
            }
        }
        tokio::select! {
            () = sleep(limits::RETRY) => {}
            () = stopped(stop) => return Ok(()),
        }
    }
}

/// Returns when somebody wants this to end.
async fn stopped(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        sleep(Duration::from_millis(50)).await;
    }
}
