//! The nodes of one run on listed hosts. Hosts are connected when the run is prepared, and their nodes join while it waits.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubmark_cluster::by_name;
use pubmark_cluster::credentials::{self, Files};
use pubmark_model::fleet::{ConnectionCounts, ConnectionsOnNodes, SecondConnection};
use pubmark_model::placement::{Labels, NodeLabels};
use pubmark_model::workload::Workload;
use pubmark_runner::spec::Nodes;
use pubmark_runner::target::CheckedTarget;
use pubmark_runner::{ErrorKind, Host as Machine, JoinedNodes, PreparedRun, RunError, RunEvent, RunObserver};

use super::hosts::Host;
use super::program::Program;
use super::session::Caller;
use super::{Hosts, Settings};

/// Default port of the coordinator.
const PORT: u16 = 7700;
/// Interval at which the connections of nodes are checked.
const LOOK: Duration = Duration::from_millis(50);
/// Open files that a node needs in addition to one for each client.
const OTHER_FILES: u64 = 64;

/// The hosts on which a run has its nodes, and how to connect to them.
pub struct HostedNodes {
    /// The hosts, with one node on each.
    pub hosts: Vec<Host>,
    /// The program that is copied to the hosts.
    pub program: Program,
    /// How `ssh` is called.
    pub caller: Caller,
    /// Folder on the hosts in which a private one is created; `TMPDIR` of the host or `/tmp`, if none.
    pub folder: Option<String>,
    /// Address at which nodes join; if none, the address from which a host sees its SSH connection come.
    pub address: Option<IpAddr>,
    /// Name of the host whose node starts the system, and neither sends nor receives; if none, the system runs on this
    /// machine or at an endpoint.
    pub system_host: Option<String>,
}

impl HostedNodes {
    /// Connects to the hosts, starts their nodes and assigns them to the run. The hosts are stored in `reached`, also after
    /// a failure: the caller must [end](Hosts::end) them. `note` receives progress messages.
    ///
    /// # Errors
    /// The port of the coordinator is busy, hosts cannot be used, the system cannot listen at an address that they reach, a node did
    /// not join, or the run was stopped.
    pub fn gather(
        &self,
        reached: &mut Option<Hosts>,
        prepared: &mut PreparedRun,
        machine: &Machine,
        observer: &mut dyn RunObserver,
        note: &dyn Fn(&str),
    ) -> Result<(), RunError> {
        // Known before anything is done on a host.
        let listen = prepared.spec.nodes.listen.unwrap_or((Ipv4Addr::UNSPECIFIED, PORT).into());
        refuse_busy_port(listen)?;
        let hosts = reached.insert(self.reach(prepared, machine, note)?);
        note(&format!("copying {:.0} MB to each", self.program.bytes as f64 / 1e6));
        hosts.copy(&self.program, &machine.stop)?;
        join(hosts, prepared, machine, observer)
    }

    /// Open files that each host needs. The host of the system has the connections of all clients, another one those of its own
    /// clients, which labels may place on a few hosts. The coordinator numbers nodes in the order of their names.
    fn files(&self, workload: &Workload, second: SecondConnection) -> Vec<u64> {
        let is_of_clients = |host: &&Host| Some(&host.name) != self.system_host.as_ref();
        let mut of_clients: Vec<&Host> = self.hosts.iter().filter(is_of_clients).collect();
        of_clients.sort_by(|one, other| by_name(&one.name, &other.name));
        let labels: Vec<Labels> = of_clients.iter().map(|host| host.labels.clone()).collect();
        let nodes = NodeLabels { nodes: labels.len() as u16, labels: &labels };
        let ConnectionsOnNodes { all, each, .. } = ConnectionsOnNodes::of(workload, nodes, second);
        let sum = |on: &ConnectionCounts| on.devices + on.subscribers;
        let own = |host: &Host| {
            let counts = of_clients.iter().zip(&each).find(|(one, _)| one.name == host.name);
            counts.map(|(_, on)| sum(on)).unwrap_or_default()
        };
        let connections = |host: &Host| if is_of_clients(&host) { own(host) } else { sum(&all) };
        self.hosts.iter().map(|host| connections(host) + OTHER_FILES).collect()
    }

    /// Connects to the hosts, and selects an address at which they reach a system of this machine.
    fn reach(&self, prepared: &mut PreparedRun, machine: &Machine, note: &dyn Fn(&str)) -> Result<Hosts, RunError> {
        let settings = Settings {
            caller: self.caller.clone(),
            folder: self.folder.clone(),
            address: self.address,
            system_host: self.system_host.clone(),
        };
        note(&match self.hosts.len() {
            1 => "connecting to 1 host".to_owned(),
            count => format!("connecting to {count} hosts"),
        });
        let files = self.files(&prepared.workload, prepared.protocol_pair.second_connection());
        let hosts = self.hosts.iter().cloned().zip(files).collect();
        let hosts = Hosts::reach(hosts, &self.program, settings, &machine.stop)?;
        if let CheckedTarget::Started { options, .. } = &mut prepared.wanted
            && prepared.spec.target.system_host.is_none()
            && self.system_host.is_none()
        {
            options.host = own_address(hosts.address())?;
        }
        Ok(hosts)
    }
}

/// Refuses a port that another program has. What else prevents that the coordinator listens depends on the hosts' addresses, too.
fn refuse_busy_port(address: SocketAddr) -> Result<(), RunError> {
    let Some(error) = TcpListener::bind(address).err().filter(|error| error.kind() == io::ErrorKind::AddrInUse) else {
        return Ok(());
    };
    let other = if address.port() == PORT { PORT + 1 } else { PORT };
    Err(RunError::from_error(ErrorKind::Input, &error)
        .during(format!("failed to listen on {address} for nodes"))
        .hint(format!("`-- --listen {}` takes another port", SocketAddr::new(address.ip(), other))))
}

/// The IPv4 address of this machine that hosts see, as the system's listening address; an error if hosts see several.
fn own_address(seen: Option<IpAddr>) -> Result<Ipv4Addr, RunError> {
    match seen {
        Some(IpAddr::V4(address)) if UdpSocket::bind((address, 0)).is_ok() => Ok(address),
        Some(IpAddr::V4(address)) => {
            Err(RunError::input(format!("{address} is no address of this machine, and the system is to listen there"))
                .hint("`-- --system-host ADDRESS`, with one of this machine"))
        }
        Some(IpAddr::V6(_)) => {
            Err(RunError::input("hosts join over IPv6, and a system that pubmark starts listens over IPv4")
                .hint("`-- --endpoint URL` for one that runs already"))
        }
        None => Err(RunError::input("hosts see this machine at several addresses, and the system has one")
            .hint("`-- --system-host ADDRESS`, with one that all hosts reach")),
    }
}

/// Listens, starts the nodes, and waits until they have joined. The coordinator's key file is removed as soon as it was
/// read.
fn join(
    hosts: &mut Hosts,
    prepared: &mut PreparedRun,
    machine: &Machine,
    observer: &mut dyn RunObserver,
) -> Result<(), RunError> {
    let [coordinator, node] = credentials::fresh(credentials::VALID_DAYS)
        .map_err(|error| RunError::from_error(ErrorKind::Internal, &error))?;
    let any = if hosts.over_ipv6() { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    prepared.spec.nodes.listen.get_or_insert(SocketAddr::new(any, PORT));
    let folder = Keys::write(&coordinator)?;
    let nodes = Nodes { credentials: Some(folder.0.clone()), ..prepared.spec.nodes.clone() };
    let system_hosts = prepared.spec.target.node.clone().into_iter().collect();
    let is_joined: Arc<AtomicBool> = Arc::default();
    let watch = watch_ends(hosts.over(), Arc::clone(&machine.stop), Arc::clone(&is_joined));
    let mut starting = Starting { observer, hosts, folder: Some(folder), node, stop: &machine.stop, failed: None };
    let joined = JoinedNodes::of(&nodes, system_hosts, &machine.stop, &mut starting);
    let failed = starting.failed.take();
    // Its folder goes as soon as the nodes are started.
    let were_started = starting.folder.is_none();
    is_joined.store(true, Ordering::Relaxed);
    let has_ended = watch.join().unwrap_or_default();
    if let Some(error) = failed {
        return Err(error);
    }
    let joined = joined.map_err(|error| match were_started {
        true => not_joined(error, has_ended, hosts.last_output()),
        // The coordinator could not listen, for instance: the nodes have no part in it.
        false => error,
    })?;
    joined.map_or(Ok(()), |joined| prepared.use_nodes(&Arc::new(joined)))
}

/// Why nodes that were started did not join. `has_ended`: the end of a node stopped the coordinator, which takes that for an
/// interruption. A failure of the coordinator stays as it is.
fn not_joined(error: RunError, has_ended: bool, last_output: Vec<String>) -> RunError {
    let mut error = match error.kind {
        ErrorKind::Interrupted if has_ended => RunError::new(ErrorKind::Input, "a node ended before it had joined"),
        ErrorKind::Input => error,
        _ => return error,
    };
    error.chain.extend(last_output);
    error.hint("each host connects to this machine: is the port open (`--listen` behind `--` takes another), and the address the right one (`--address`)?")
}

/// Stops the wait for nodes when the connection to one ends; the thread returns whether that, and nothing before it, stopped the
/// wait.
fn watch_ends(over: Vec<Arc<AtomicBool>>, stop: Arc<AtomicBool>, is_joined: Arc<AtomicBool>) -> JoinHandle<bool> {
    thread::spawn(move || {
        while !is_joined.load(Ordering::Relaxed) {
            if over.iter().any(|one| one.load(Ordering::Relaxed)) {
                // After Ctrl-C, a connection that ends is no reason.
                return !stop.swap(true, Ordering::Relaxed);
            }
            thread::sleep(LOOK);
        }
        false
    })
}

/// Starts the nodes as soon as the coordinator listens.
struct Starting<'a> {
    observer: &'a mut dyn RunObserver,
    hosts: &'a mut Hosts,
    folder: Option<Keys>,
    node: Files,
    stop: &'a AtomicBool,
    failed: Option<RunError>,
}

impl RunObserver for Starting<'_> {
    fn event(&mut self, event: &RunEvent) {
        if let RunEvent::WaitsForNodes { address, .. } = event {
            self.folder = None;
            self.failed = self.hosts.start(address.port(), &self.node).err();
            // If the nodes could not be started, the coordinator must not wait for them.
            self.stop.fetch_or(self.failed.is_some(), Ordering::Relaxed);
        }
        self.observer.event(event);
    }
}

/// A folder with the coordinator's keys, which is removed on drop.
struct Keys(PathBuf);

impl Keys {
    fn write(files: &Files) -> Result<Keys, RunError> {
        let id = RandomState::new().build_hasher().finish();
        let folder = std::env::temp_dir().join(format!("pubmark-keys-{id:016x}"));
        let failed = |error: std::io::Error| {
            RunError::from_error(ErrorKind::Internal, &error)
                .during(format!("failed to write keys to `{}`", folder.display()))
        };
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let keys = Keys(folder.clone());
        for (name, text) in files {
            write(&folder.join(name), text).map_err(failed)?;
        }
        Ok(keys)
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A failure is ignored: only the owner can read the folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::load::{LoadOptions, parse};
    use pubmark_model::placement::labels;

    use super::*;

    #[test]
    fn a_host_needs_the_open_files_of_the_clients_that_labels_place_there() {
        let text = "name: w\ndevices:\n  - {name: a, count: 100, every: 1s, payload: 30B, topic: 'a/{index}'}\n  \
                    - {name: c, count: 1, every: 1s, payload: 30B, topic: c, scales: false, client: s}\n\
                    subscribers: [{name: b, filters: ['#'], client: s}]\nplacement: {a: site=edge, subscribers: once}\n";
        let workload = parse("w.yaml", text, &LoadOptions::default()).unwrap();
        // Hosts are named by their site and a number.
        let needed = |names: &[&str], system_host: Option<&str>, second: SecondConnection| {
            let site = |name: &str| name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned();
            let host = |name: &&str| Host {
                name: (*name).to_owned(),
                address: (*name).to_owned(),
                user: None,
                port: None,
                labels: labels(&[format!("site={}", site(name))]).unwrap(),
            };
            let nodes = HostedNodes {
                hosts: names.iter().map(host).collect(),
                program: Program::read(None).unwrap(),
                caller: Caller { config: None },
                folder: None,
                address: None,
                system_host: system_host.map(str::to_owned),
            };
            let files = nodes.files(&workload, second);
            files.into_iter().map(|files| files - OTHER_FILES).collect::<Vec<_>>()
        };
        let one = SecondConnection::Never;
        // The client that is shared is on the first node by name.
        assert_eq!(needed(&["edge", "cloud"], None, one), [100, 1]);
        assert_eq!(needed(&["edge9", "edge10"], None, one), [51, 50]);
        assert_eq!(needed(&["edge10", "edge9", "cloud"], Some("cloud"), one), [50, 51, 101]);
        assert_eq!(
            needed(&["edge", "cloud"], None, SecondConnection::PublishesAndSubscribes),
            [100, 2],
            "the subscriber has two"
        );
    }

    #[test]
    fn a_coordinator_that_fails_before_nodes_have_joined_says_why() {
        let output = || vec!["edge-1: error: refused".to_owned()];
        let words = |error: RunError| (error.kind, error.to_string(), error.hint.unwrap_or_default());
        let missing = RunError::input("1 of 2 nodes joined within 60 s").hint("on each machine: `pubmark node`");
        let (kind, text, hint) = words(not_joined(missing, false, output()));
        assert_eq!((kind, &text[..]), (ErrorKind::Input, "1 of 2 nodes joined within 60 s: edge-1: error: refused"));
        assert!(hint.contains("is the port open"), "{hint}");
        let interrupted = RunError::new(ErrorKind::Interrupted, "interrupted while waiting for nodes");
        let (_, text, _) = words(not_joined(interrupted, true, output()));
        assert_eq!(text, "a node ended before it had joined: edge-1: error: refused");
        // Its own reason, also if a node ended at the same moment.
        for (kind, has_ended) in [(ErrorKind::Internal, true), (ErrorKind::Interrupted, false)] {
            let own = RunError::new(kind, "failed to announce the run").hint("try again");
            let expected = (kind, "failed to announce the run".to_owned(), "try again".to_owned());
            assert_eq!(words(not_joined(own, has_ended, output())), expected);
        }
    }

    #[test]
    fn a_node_that_ends_after_ctrl_c_is_not_why_the_wait_ended() {
        for is_stopped in [false, true] {
            let stop = Arc::new(AtomicBool::new(is_stopped));
            let watch = watch_ends(vec![Arc::new(AtomicBool::new(true))], Arc::clone(&stop), Arc::default());
            assert_eq!(watch.join().unwrap(), !is_stopped);
            assert!(stop.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn a_port_that_is_busy_is_known_before_hosts_are_reached() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = taken.local_addr().unwrap();
        let error = refuse_busy_port(address).unwrap_err();
        assert!(error.to_string().starts_with(&format!("failed to listen on {address} for nodes: ")), "{error}");
        assert_eq!(error.hint.as_deref(), Some("`-- --listen 127.0.0.1:7700` takes another port"));
        drop(taken);
        assert!(refuse_busy_port(address).is_ok());
    }

    #[test]
    fn a_system_listens_where_all_hosts_reach_it() {
        assert_eq!(own_address(Some(Ipv4Addr::LOCALHOST.into())).unwrap(), Ipv4Addr::LOCALHOST);
        // 192.0.2.1 is a documentation address (RFC 5737), which no machine has.
        for seen in [Some(IpAddr::from([192, 0, 2, 1])), Some(Ipv6Addr::LOCALHOST.into()), None] {
            let error = own_address(seen).unwrap_err();
            assert!(error.hint.is_some_and(|hint| hint.starts_with("`-- --")), "{seen:?}");
        }
    }

    #[test]
    fn keys_are_for_their_owner_alone_and_go() {
        use std::os::unix::fs::PermissionsExt as _;
        let keys = Keys::write(&vec![("key.pem", "secret".to_owned())]).unwrap();
        let folder = keys.0.clone();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("key.pem"))), (0o700, 0o600));
        drop(keys);
        assert!(!folder.exists());
    }
}
