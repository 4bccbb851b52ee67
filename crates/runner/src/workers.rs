//! Worker processes of a run. Behind links, a client library that opens sockets itself has all its clients of a network
//! in a process that was started inside that network; each isolated group has a separate process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_engine::plan::RunPlan;
use pubmark_engine::progress::Progress;
use pubmark_engine::remote::{self, AccessNetwork, Launcher, Service, Started};
use pubmark_engine::run::{ShardRun, Sides};
use pubmark_engine::shares::WorkerLocation;
use pubmark_links::namespace::Namespace;
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_protocol::capabilities::SentMeans;
use pubmark_systems::meter;

use crate::host::Host;
use crate::node_links::NodeLinks;

pub use crate::child_process::end_with_parent;
use pubmark_protocols::{self as protocols, Protocol, ProtocolPair};

/// Starts workers.
#[derive(Debug)]
pub struct Workers {
    /// Names of the workload's groups; groups that share clients are combined.
    groups: Vec<String>,
    /// Namespaces by number of the network; those of the first node are first.
    namespaces: Vec<Namespace>,
    networks_of_node: usize,
    adapter_names: [String; 2],
    started: meter::Workers,
    program: Option<PathBuf>,
}

/// Whether clients of either side listen, or open their sockets in a library. Other clients create each socket in the
/// network of its group.
pub fn are_needed(protocol_pair: ProtocolPair) -> bool {
    let listens = |side: &Protocol| side.capabilities.features.subscribers_listen;
    have_library_sockets(protocol_pair) || listens(protocol_pair.publish) || listens(protocol_pair.subscribe)
}

/// Whether clients of either side open their sockets in a library.
pub fn have_library_sockets(protocol_pair: ProtocolPair) -> bool {
    let of_library = |side: &Protocol| side.capabilities.sent_means == SentMeans::HandedOver;
    of_library(protocol_pair.publish) || of_library(protocol_pair.subscribe)
}

impl Workers {
    /// The workers for the clients of a plan, with these protocols and networks, with the same number for each node.
    /// Each is started with the host's program and entered in `started`.
    pub fn new(
        plan: &RunPlan,
        namespaces: Vec<Namespace>,
        protocol_pair: ProtocolPair,
        started: meter::Workers,
        host: &Host,
    ) -> Workers {
        let networks_of_node = namespaces.len() / usize::from(plan.nodes.max(1));
        let groups = ConnectionGroups::of(&plan.workload).names;
        Workers {
            groups,
            namespaces,
            networks_of_node,
            adapter_names: words(protocol_pair),
            started,
            program: host.program.clone(),
        }
    }
}

/// Names of the protocols of devices and of subscribers, in a form that a worker can parse.
pub fn words(protocol_pair: ProtocolPair) -> [String; 2] {
    [protocol_pair.publish, protocol_pair.subscribe].map(word)
}

/// The name of a protocol that [`read`] can parse.
fn word(protocol: &Protocol) -> String {
    let client = protocol.program.map(|_| protocols::PROGRAM).or(protocol.client.map(|client| client.name));
    let client = client.map(|name| format!(" {name}")).unwrap_or_default();
    format!("{}{client}", protocol.capabilities.name)
}

fn shard(word: &str) -> Result<ShardRun, String> {
    match word.rsplit_once(' ') {
        Some((_, protocols::PROGRAM)) => Ok(protocols::program_shard()),
        _ => read(word).map(|protocol| protocol.shard),
    }
}

fn read(word: &str) -> Result<&'static Protocol, String> {
    let (name, client) = word.split_once(' ').map_or((word, None), |(name, client)| (name, Some(client)));
    let unknown = || format!("no protocol `{word}` in this build");
    let protocol = protocols::find(name).ok_or_else(unknown)?;
    client.map_or(Ok(protocol), |client| protocol.with_client(client).map_err(|_| unknown()))
}

/// The command that starts a worker with this program (the running one if `None`) and these descriptors.
pub fn command(program: Option<&Path>, control: OwnedFd, memory: OwnedFd) -> io::Result<Command> {
    let program = program.map_or_else(std::env::current_exe, |program| Ok(program.to_owned()))?;
    let mut command = Command::new(program);
    // A Ctrl-C in the terminal is for the run, which ends its workers.
    command.arg("worker").stdin(Stdio::from(control)).stdout(Stdio::from(memory)).process_group(0);
    Ok(command)
}

impl Launcher for Workers {
    fn launch(
        &self,
        place: WorkerLocation,
        _: &[u32],
        progress: &Arc<Progress>,
        _: &AtomicBool,
    ) -> io::Result<Started> {
        let (control, theirs) = UnixStream::pair()?;
        let mut command =
            command(self.program.as_deref(), OwnedFd::from(theirs), progress.memory().try_clone_to_owned()?)?;
        if let Some(network) = place.network {
            let number = usize::from(network) + usize::from(place.node) * self.networks_of_node;
            let namespace = self.namespaces.get(number);
            let namespace = namespace.ok_or_else(|| io::Error::other(format!("there is no network {number}")))?;
            namespace.contain(&mut command);
        }
        end_with_parent(&mut command);
        let child = command.spawn()?;
        let group = place.group.and_then(|group| self.groups.get(usize::from(group)));
        self.started.enter(child.id(), group.map(String::as_str));
        Ok(Started { control, child: Some(child) })
    }

    fn adapter_names(&self) -> [String; 2] {
        self.adapter_names.clone()
    }
}

/// The descriptors of a worker: the channel at standard input, and the shared memory at standard output.
pub fn ends() -> io::Result<(UnixStream, OwnedFd)> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    let memory = io::stdout().as_fd().try_clone_to_owned()?;
    // Output that a library prints is for people, and must not be written to the memory.
    // SAFETY: both descriptors are open; no memory is touched.
    if unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((UnixStream::from(control), memory))
}

/// Serves the run that is connected to standard input, with standard output as the shared memory, until the connection
/// closes.
pub fn serve() -> io::Result<()> {
    let (control, memory) = ends()?;
    remote::serve(control, memory, Service { sides, access, on_node_lost: end })
}

fn sides([publish, subscribe]: &[String; 2]) -> Result<Sides, String> {
    Ok(Sides { publish: shard(publish)?, subscribe: shard(subscribe)? })
}

fn access(order: &[u8]) -> Result<Box<dyn AccessNetwork>, String> {
    NodeLinks::new(order).map(|links| Box::new(links) as Box<dyn AccessNetwork>)
}

/// Ends this process at once: its parent has ended, and a library's threads may take long to end.
pub fn end() {
    // SAFETY: does not return; nothing is left behind, as sockets and memory go with the process.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_found_again_by_its_word() {
        for protocol in protocols::PROTOCOLS {
            let found = read(&word(protocol)).map(|found| found.client.map(|client| client.name));
            assert_eq!(found, Ok(protocol.client.map(|client| client.name)), "{}", protocol.capabilities.name);
        }
        assert!(read("smoke signals").is_err());
    }
}
