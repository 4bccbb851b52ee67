//! A node's side: joins a coordinator, runs workers at its request, sets the run's clock for them, and ends them when
//! it disconnects.

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

/// Starts a worker with two descriptors: its end of the control stream, and the memory that it shares with the node.
pub type Launch<'a> = &'a dyn Fn(OwnedFd, OwnedFd) -> io::Result<Child>;

/// Resources that a machine had used up to one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineReading {
    /// CPU time of all processes, ns.
    pub cpu_ns: u64,
    /// CPU time of all cores in all modes, idle ones included, ns.
    pub total_ns: u64,
    /// Part of `total_ns` that the hypervisor took for other guests; `None` if the kernel does not report it.
    pub stolen_ns: Option<u64>,
    /// Memory in use, bytes.
    pub used_bytes: Option<u64>,
    /// The interface that has the node's address; `None` if only the loopback has it.
    pub interface: Option<InterfaceReading>,
}

/// Bytes that a network interface had carried up to one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceReading {
    /// Name of the interface.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// Where a node looks for its coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorAddress {
    /// HOST:PORT; if the name has several addresses, each is tried.
    At(String),
    /// The address that a coordinator announces on a local network of this machine.
    Announced,
}

impl std::fmt::Display for CoordinatorAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CoordinatorAddress::At(address) => f.write_str(address),
            CoordinatorAddress::Announced => f.write_str("an address that is announced"),
        }
    }
}

/// Role of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Its clients send and receive.
    #[default]
    Clients,
    /// It measures what a system uses on its machine.
    Observer,
    /// It starts systems on its machine, and measures what they use.
    SystemHost,
}

impl NodeKind {
    /// The role in a node's first message.
    pub(crate) fn of(join: &Join) -> NodeKind {
        match (join.starts_systems, join.observes) {
            (true, _) => NodeKind::SystemHost,
            (false, true) => NodeKind::Observer,
            (false, false) => NodeKind::Clients,
        }
    }

    /// Several nodes of this kind, in words.
    pub fn plural(self) -> &'static str {
        match self {
            NodeKind::Clients => "nodes",
            NodeKind::Observer => "observers",
            NodeKind::SystemHost => "nodes that start systems",
        }
    }
}

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Where the node looks for the coordinator.
    pub join: CoordinatorAddress,
    /// The node's credentials.
    pub credentials: Credentials,
    /// The node's name.
    pub name: String,
    /// The node's version of pubmark.
    pub version: String,
    /// Name of the machine.
    pub host: String,
    /// Release of the machine's kernel.
    pub kernel: String,
    /// Cores that pubmark can use.
    pub cores: u32,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// CPU idle states of the machine are prevented while a worker runs.
    pub awake: bool,
    /// The node's role.
    pub kind: NodeKind,
    /// Address at which clients on other machines reach the node's clients; `None`: the address from which it joins.
    pub address: Option<IpAddr>,
    /// The node's labels, by which groups are placed.
    pub labels: Labels,
    /// Why links cannot be emulated on the machine, if they cannot.
    pub no_links: Option<String>,
    /// Why links cannot be emulated by the kernel's netem on the machine, if they cannot.
    pub no_kernel_netem: Option<String>,
    /// Reads the usage of the machine, and the bytes of the interface with this address; `None` if the kernel does not
    /// report them.
    pub machine: fn(Option<IpAddr>) -> Option<MachineReading>,
    /// Report the counts of its clients once a second, as [`Happening::Counts`].
    pub counts: bool,
    /// End together with the coordinator, instead of waiting for another.
    pub once: bool,
    /// A test error of the node's clock, to check whether it is detected: offset, ns, and drift, parts per million.
    pub clock_error: Option<(i64, f64)>,
}

/// Events of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It waits for a coordinator; the reason why it has not joined.
    Waits(String),
    /// It joined the coordinator at this address.
    Joined(String),
    /// It runs the first worker of a run.
    Began,
    /// The last worker of a run has ended.
    Ended,
    /// Counts of its clients.
    Counts(Box<NodeCounts>),
    /// It lost the coordinator; the reason.
    Left(String),
}

/// Joins a coordinator, and serves it, until `stop` is set; with [`NodeSettings::once`] until the coordinator
/// disconnects.
///
/// # Errors
/// The coordinator refuses this node, is not trusted, or is not a coordinator of pubmark.
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

/// Returns when `stop` is set.
async fn stopped(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        sleep(Duration::from_millis(50)).await;
    }
}
