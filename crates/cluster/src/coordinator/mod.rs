//! The coordinator's side: accepts nodes, starts workers on them, and detects lost nodes.

mod accept;
mod hub;
mod session;
mod tunnel;

use std::cmp::Ordering as Order;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubmark_engine::progress::Progress;
use pubmark_protocol::clock;
use pubmark_protocol::run_clock::{Mapping, RunClock};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;

pub use hub::{Event, NodeInfo, NodesRequired};
pub(crate) use session::words;

use crate::credentials::Credentials;
use crate::error::ClusterError;
use crate::limits;
use crate::messages::{Begin, CoordinatorMessage, LARGEST_BYTES, Report, ToNode, WantedPorts};
use crate::node::NodeKind;
use crate::stubs::control_server::ControlServer;
use hub::{Hub, Run};

/// Interval at which a waiting function checks whether it must stop.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait for reports of nodes after a run: the end of a worker, and readings of the clock.
const REPORTS: Duration = Duration::from_secs(10);

/// Bytes between the coordinator and a node, including those of TLS, excluding headers of TCP and lower layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To the node, since it joined.
    pub sent: u64,
    /// From the node, since it joined.
    pub received: u64,
    /// In both directions, between the two marks.
    pub between_marks: u64,
}

/// Results of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerReport {
    /// Indices of its shards.
    pub own: Vec<u32>,
    /// Its results; `None` if it was lost.
    pub report: Option<Report>,
    /// Why its node was lost; `None` if it was not, or if only the worker was.
    pub lost: Option<String>,
}

impl WorkerReport {
    /// Results of all workers of a node together; `None` if one of them was lost, because they would be incomplete.
    pub fn of_node(workers: &[WorkerReport]) -> Option<Report> {
        let all: Option<Vec<Report>> = workers.iter().map(|worker| worker.report.clone()).collect();
        all?.into_iter().reduce(|one, other| one.and(&other))
    }
}

/// A coordinator with its nodes. Dropping it disconnects them with a `Goodbye` message.
pub struct Cluster {
    hub: Arc<Hub>,
    address: SocketAddr,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Opens the port, and sets the run's clock: every later time stamp of this process is in the run's time.
    ///
    /// # Errors
    /// The port cannot be opened, or the credentials are not usable.
    pub fn listen(address: SocketAddr, credentials: &Credentials, version: &str) -> Result<Cluster, ClusterError> {
        let system = |doing: &'static str| move |source: io::Error| ClusterError::System { doing, source };
        let acceptor = accept::acceptor(credentials)
            .map_err(|why| ClusterError::Credentials { path: credentials.folder.clone(), why })?;
        let listener = TcpListener::bind(address).map_err(|source| ClusterError::Listen { address, source })?;
        listener.set_nonblocking(true).map_err(system("set up the port for nodes"))?;
        let address = listener.local_addr().map_err(system("read the address for nodes"))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(system("start listening to nodes"))?;
        let hub = Arc::new(Hub::default());
        let service = session::Service {
            hub: Arc::clone(&hub),
            token: credentials.token.clone(),
            version: version.to_owned(),
            run_less_raw_ns: keep_clock(),
        };
        let (stop, stopped) = oneshot::channel();
        let handle = runtime.handle().clone();
        let of_thread = Arc::clone(&hub);
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (accepted, incoming) = mpsc::channel(1);
            tokio::spawn(accept::accept(listener, acceptor, of_thread, accepted));
            let service = ControlServer::new(service).max_decoding_message_size(LARGEST_BYTES);
            let served = Server::builder()
                .http2_keepalive_interval(Some(limits::INTRODUCTION))
                .http2_keepalive_timeout(Some(limits::INTRODUCTION))
                .add_service(service)
                .serve_with_incoming(ReceiverStream::new(incoming));
            tokio::select! {
                served = served => served.map_err(io::Error::other),
                _ = stopped => {
                    // Each connection is served by its own task, which sends `Goodbye` meanwhile.
                    tokio::time::sleep(limits::FAREWELL).await;
                    Ok(())
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("coordinator".to_owned())
            .spawn(move || {
                crate::machine::stay_ahead();
                // This is an error of the listening socket. The nodes are then detected as lost by their missing
                // heartbeats, and the run reports that.
                let _ = runtime.block_on(serve);
                // Connections that are still open are not waited for.
                runtime.shutdown_timeout(limits::GRACE);
            })
            .map_err(system("start listening to nodes"))?;
        Ok(Cluster { hub, address, runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Address at which nodes join.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for nodes and observers and numbers them by their names; calls `seen` for each one that joins or is
    /// refused.
    ///
    /// # Errors
    /// Too few joined in time, or `stop` was set.
    pub fn gather(
        &self,
        wanted: NodesRequired,
        limit: Duration,
        stop: &AtomicBool,
        seen: &mut dyn FnMut(&Event),
    ) -> Result<(), ClusterError> {
        let began = Instant::now();
        self.hub.change(|state| state.wanted = wanted.clone());
        loop {
            let (events, count, missing) =
                self.hub.change(|state| (state.take_events(), state.nodes.len(), state.missing()));
            events.iter().for_each(&mut *seen);
            let Some((wanted, what, came)) = missing else { break };
            if stop.load(Relaxed) {
                return Err(ClusterError::Interrupted);
            }
            if began.elapsed() >= limit {
                let refused = self.hub.state().refused.clone();
                return Err(ClusterError::Missing { wanted, what, came, refused, waited_s: limit.as_secs() });
            }
            self.hub.wait(LOOK, |state| (state.nodes.len() != count).then_some(()));
        }
        self.hub.change(|state| {
            let mut all: Vec<NodeInfo> = state.nodes.values().map(|slot| slot.info.clone()).collect();
            all.sort_by(|one, other| by_name(&one.name, &other.name));
            let of = |kind: NodeKind| all.iter().filter(|node| node.kind == kind).cloned().collect();
            state.order = of(NodeKind::Clients);
            state.observers = of(NodeKind::Observer);
            state.system_hosts = of(NodeKind::SystemHost);
        });
        Ok(())
    }

    /// The nodes in the order of their numbers; for a lost node, its data from when it joined.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        self.hub.state().order.clone()
    }

    /// The observers, in the order of their names.
    pub fn observers(&self) -> Vec<NodeInfo> {
        self.hub.state().observers.clone()
    }

    /// The nodes that start systems, in the order of their names.
    pub fn system_hosts(&self) -> Vec<NodeInfo> {
        self.hub.state().system_hosts.clone()
    }

    /// Name of a node by its number.
    pub fn name(&self, node: usize) -> String {
        self.hub.state().order.get(node).map(|node| node.name.clone()).unwrap_or_default()
    }

    /// Starts a worker on a node for the shards with the given indices; its counters will appear in `progress`. Bytes
    /// that are written into the returned stream reach the worker; dropping the stream ends the worker.
    ///
    /// # Errors
    /// The node was lost, or cannot start a worker; `stop` was set during the wait.
    pub fn begin(
        &self,
        node: usize,
        own: &[u32],
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> Result<UnixStream, ClusterError> {
        self.begin_on(self.name(node), own, progress, stop)
    }

    /// Returns those of the given ports that are free on a node, at an address for its clients; at most
    /// [`limits::PORTS`] are checked.
    ///
    /// # Errors
    /// The node was lost, does not have that address, or sent another response; `stop` was set during the wait.
    pub fn free_ports(
        &self,
        node: usize,
        address: IpAddr,
        ports: &[u16],
        stop: &AtomicBool,
    ) -> Result<Vec<u16>, ClusterError> {
        let name = self.name(node);
        let ports = &ports[..ports.len().min(limits::PORTS)];
        let gone = |why: &str| ClusterError::Lost { name: name.clone(), why: why.to_owned() };
        let asked = self.hub.change(|state| {
            let lanes = state.nodes.get(&name).map(|slot| slot.lanes.clone())?;
            let number = state.ports.0.wrapping_add(1);
            state.ports = (number, name.clone(), None);
            let ports = ports.iter().copied().map(u32::from).collect();
            let wanted = WantedPorts { number, address: address.to_string(), ports };
            lanes.say(ToNode { message: Some(CoordinatorMessage::WantedPorts(wanted)) });
            Some(())
        });
        let left = || self.hub.state().lost.get(&name).cloned();
        if asked.is_none() {
            return Err(gone(left().as_deref().unwrap_or("it never joined")));
        }
        let until = Instant::now() + limits::BEGIN;
        let answer = loop {
            let answer = self.hub.wait(LOOK, |state| match state.nodes.contains_key(&name) {
                true => state.ports.2.take().map(Some),
                false => Some(None),
            });
            if stop.load(Relaxed) {
                return Err(ClusterError::Interrupted);
            }
            if answer.is_some() || Instant::now() >= until {
                break answer;
            }
        };
        match answer {
            Some(Some(free)) if free.failure.is_empty() => {
                named(&free.ports, ports).ok_or_else(|| gone("it answered more ports than it was asked about"))
            }
            Some(Some(free)) => Err(ClusterError::Address { name: name.clone(), why: free.failure }),
            Some(None) => Err(gone(left().as_deref().unwrap_or("it left"))),
            None => Err(gone(&format!("it did not say within {} s which ports are free", limits::BEGIN.as_secs()))),
        }
    }

    /// Starts the worker of a node without clients, which is an observer or starts systems. Bytes that are written into
    /// the returned stream reach the worker; dropping the stream ends the worker.
    ///
    /// # Errors
    /// The node was lost, or cannot start the worker; `stop` was set during the wait.
    pub fn begin_without_clients(&self, name: &str, stop: &AtomicBool) -> Result<UnixStream, ClusterError> {
        let progress =
            Progress::new(1).map_err(|source| ClusterError::System { doing: "make room for counters", source })?;
        self.begin_on(name.to_owned(), &[], &Arc::new(progress), stop)
    }

    fn begin_on(
        &self,
        name: String,
        own: &[u32],
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> Result<UnixStream, ClusterError> {
        let (ours, theirs) = UnixStream::pair()
            .and_then(|(ours, theirs)| theirs.set_nonblocking(true).map(|()| (ours, theirs)))
            .map_err(|source| ClusterError::System { doing: "make a channel to a worker", source })?;
        let shards = progress.shards().len() as u32;
        let (to_driver, for_driver) = mpsc::channel(tunnel::PIECES);
        let started = self.hub.change(|state| {
            let lanes = state.nodes.get(&name).map(|slot| slot.lanes.clone())?;
            // Numbers are not reused, because an earlier worker may still send messages.
            let number = state.next_run;
            state.next_run = number.wrapping_add(1);
            let (progress, own) = (Arc::clone(progress), own.to_vec());
            let begin = Begin { number, shards, own: own.clone() };
            let run = Run {
                node: name.clone(),
                progress,
                own,
                began: None,
                to_driver: Some(to_driver),
                report: None,
                lost: None,
            };
            state.runs.insert(number, run);
            state.without_worker.remove(&name);
            lanes.say(ToNode { message: Some(CoordinatorMessage::Begin(begin)) });
            Some((number, lanes))
        });
        let gone = |why: &str| ClusterError::Lost { name: name.clone(), why: why.to_owned() };
        let Some((number, lanes)) = started else {
            let state = self.hub.state();
            return Err(gone(state.lost.get(&name).map_or("it never joined", String::as_str)));
        };
        self.runtime.spawn(tunnel::carry(theirs, number, lanes, for_driver));
        let until = Instant::now() + limits::BEGIN;
        let began = loop {
            let began = self.hub.wait(LOOK, |state| state.runs.get(&number)?.began.clone());
            if stop.load(Relaxed) {
                return Err(ClusterError::Interrupted);
            }
            if began.is_some() || Instant::now() >= until {
                break began;
            }
        };
        match began {
            Some(Ok(())) => Ok(ours),
            Some(Err(why)) => Err(ClusterError::Worker { name, why }),
            None => Err(gone(&format!("it did not start a worker within {} s", limits::BEGIN.as_secs()))),
        }
    }

    /// From now on nodes send counters ten times a second, or stop sending them.
    pub fn watch(&self, on: bool) {
        self.hub.broadcast(|| CoordinatorMessage::Watch(on));
    }

    /// The measurement starts (0) or ends (1) now: see [`Traffic::between_marks`].
    pub fn mark(&self, edge: usize) {
        for slot in self.hub.state().nodes.values_mut() {
            slot.marks[edge] = Some(slot.bytes());
        }
    }

    /// Traffic of each node, by its number; `None` for a lost node.
    pub fn traffic(&self) -> Vec<Option<Traffic>> {
        let state = self.hub.state();
        let of = |node: &NodeInfo| {
            let slot = state.nodes.get(&node.name)?;
            let [begin, end] = slot.marks;
            Some(Traffic {
                sent: slot.carried.sent.load(Relaxed),
                received: slot.carried.received.load(Relaxed),
                between_marks: begin.zip(end).map_or(0, |(begin, end)| end - begin),
            })
        };
        state.order.iter().map(of).collect()
    }

    /// Forgets the workers on nodes with clients that were started so far, and the marks of their measurement: a launch
    /// that failed leaves workers whose results nobody collects, and their clock, usage and traffic are not those of the
    /// next run.
    pub fn forget_workers(&self) {
        self.hub.change(|state| {
            state.take_runs();
            state.nodes.values_mut().for_each(|slot| slot.marks = [None; 2]);
        });
    }

    /// Results of the workers that were started since the last call, or since [`Cluster::forget_workers`]: by the number
    /// of their node, in the order in which they were started. Waits for the workers that have not ended yet.
    pub fn reports(&self) -> Vec<Vec<WorkerReport>> {
        let all_there = |state: &mut hub::State| {
            // Workers of nodes without clients end later, and send no report.
            let missing = |run: &Run| state.has_clients(run) && run.report.is_none() && run.lost.is_none();
            (!state.runs.values().any(missing)).then_some(())
        };
        self.hub.wait(REPORTS, all_there);
        self.hub.change(|state| {
            let runs = state.take_runs();
            let of = |node: &NodeInfo| {
                let its = runs.values().filter(|run| run.node == node.name);
                let report = |run: &Run| WorkerReport {
                    own: run.own.clone(),
                    report: run.report.clone(),
                    lost: run.lost.clone(),
                };
                its.map(report).collect()
            };
            state.order.iter().map(of).collect()
        })
    }

    /// Why a node was lost, or has no worker any more, by the node's number; `None` if neither is the case. A node that
    /// joined again stays lost to the workers that it had, until their results are taken.
    pub fn lost(&self, node: usize) -> Option<String> {
        let name = self.name(node);
        let state = self.hub.state();
        let of_workers = state.runs.values().filter(|run| run.node == name).find_map(|run| run.lost.as_ref());
        of_workers.or_else(|| state.lost.get(&name)).or_else(|| state.without_worker.get(&name)).cloned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.hub.broadcast(|| CoordinatorMessage::Goodbye("the coordinator has ended".to_owned()));
        if let Some(stop) = self.stop.take() {
            // This fails if the thread has ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sets the run's clock of this process: its `CLOCK_MONOTONIC_RAW` plus a constant, so that the run's time starts equal
/// to `CLOCK_MONOTONIC`. Returns the constant, ns.
fn keep_clock() -> i64 {
    let kept: &'static RunClock = Box::leak(Box::default());
    let (local_ns, run_ns) = (clock::raw_ns(), clock::monotonic_ns());
    kept.set(Mapping { local_ns, run_ns, rate_ppb: 0 });
    clock::follow(kept);
    run_ns.wrapping_sub(local_ns) as i64
}

/// The requested ports in a response, without duplicates; `None` if the response is longer than the request.
fn named(answer: &[u32], asked: &[u16]) -> Option<Vec<u16>> {
    if answer.len() > asked.len() {
        return None;
    }
    let answer: BTreeSet<u32> = answer.iter().copied().collect();
    Some(asked.iter().copied().filter(|port| answer.contains(&u32::from(*port))).collect())
}

/// Order of names by which `node-9` comes before `node-10`; nodes are numbered in it.
pub fn by_name(one: &str, other: &str) -> Order {
    key(one).cmp(&key(other)).then_with(|| one.cmp(other))
}

/// A name, split into its stem and the number at its end.
fn key(name: &str) -> (&str, Option<u64>) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (stem, name[stem.len()..].parse().ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::credentials::ends_valid;
    use crate::lanes::lanes;
    use crate::messages::Join;
    use crate::node::{self, CoordinatorAddress, NodeSettings};
    use pubmark_model::placement::Labels;
    use std::os::fd::OwnedFd;
    use std::process::Child;
    use std::time::SystemTime;

    /// The error that a node with these credentials gets, and the refusal that the coordinator reports.
    fn refusals(coordinator: &Credentials, node: &Credentials) -> (String, String) {
        let cluster = Cluster::listen("127.0.0.1:0".parse().unwrap(), coordinator, "1").unwrap();
        let settings = NodeSettings {
            join: CoordinatorAddress::At(cluster.address().to_string()),
            credentials: node.clone(),
            name: "node".to_owned(),
            version: "1".to_owned(),
            host: "test".to_owned(),
            kernel: String::new(),
            cores: 1,
            memory_bytes: 0,
            awake: false,
            kind: NodeKind::Clients,
            address: None,
            labels: Labels::new(),
            no_links: None,
            no_kernel_netem: None,
            machine: |_| None,
            counts: false,
            once: true,
            clock_error: None,
        };
        let stop = AtomicBool::new(false);
        let none = |_: OwnedFd, _: OwnedFd| -> io::Result<Child> { Err(io::Error::other("no worker")) };
        // The coordinator gives up by itself; a node that waits without end makes the test time out.
        let heard = std::thread::scope(|scope| {
            let joins = scope.spawn(|| node::attend(&settings, &none, &stop, &mut |_| {}));
            let until = Instant::now() + Duration::from_secs(20);
            while !joins.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            stop.store(true, Relaxed);
            joins.join().unwrap()
        });
        let wanted = NodesRequired { nodes: 1, ..NodesRequired::default() };
        let missing = cluster.gather(wanted, Duration::ZERO, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
        let ClusterError::Missing { refused, .. } = missing else { panic!("{missing}") };
        let said = refused.first().map(ToString::to_string).unwrap_or_default();
        (heard.map_or_else(|error| error.to_string(), |()| "it waited for ever".to_owned()), said)
    }

    #[test]
    fn a_node_whose_certificate_is_of_no_use_stops_and_both_sides_say_why() {
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let today = (now - day, now + day);
        let [coordinator, expired] = ends_valid(today, (now - day * 9, now - day * 3));
        let (heard, said) = refusals(&coordinator, &expired);
        assert!(heard.contains("does not take this node's certificate") && heard.contains("xpired"), "{heard}");
        assert!(said.contains("its certificate expired 3 days ago"), "{said}");
        let (heard, said) = refusals(&coordinator, &coordinator);
        assert!(heard.contains("does not take this node's certificate"), "{heard}");
        assert!(said.contains("the coordinator's folder is not for nodes"), "{said}");
        let [old, node] = ends_valid((now - day * 9, now - day * 3), today);
        let (heard, said) = refusals(&old, &node);
        assert!(heard.contains("its certificate is out of date"), "{heard}");
        assert!(said.contains("does not trust this coordinator's certificate"), "{said}");
    }

    #[test]
    fn a_node_that_joins_again_stays_lost_to_the_workers_that_it_had() {
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let [credentials, _] = ends_valid((now - day, now + day), (now - day, now + day));
        let cluster = Cluster::listen("127.0.0.1:0".parse().unwrap(), &credentials, "1").unwrap();
        let (lanes, _outbound) = lanes();
        let join = || {
            let join = Join { name: "a".to_owned(), ..Join::default() };
            let info = NodeInfo::of(join, Labels::new(), cluster.address());
            let slot = hub::Slot { info, lanes: lanes.clone(), carried: Arc::default(), marks: [None; 2], bound_ns: 0 };
            cluster.hub.join(slot).unwrap();
        };
        let wanted = NodesRequired { nodes: 1, ..NodesRequired::default() };
        cluster.hub.change(|state| state.wanted = wanted.clone());
        join();
        cluster.gather(wanted, Duration::ZERO, &AtomicBool::new(false), &mut |_| {}).unwrap();
        let run = Run {
            node: "a".to_owned(),
            progress: Arc::new(Progress::new(1).unwrap()),
            own: vec![0],
            began: Some(Ok(())),
            to_driver: None,
            report: None,
            lost: None,
        };
        cluster.hub.change(|state| state.runs.insert(0, run));
        cluster.hub.leave("a", "silent");
        join();
        assert_eq!(cluster.lost(0).as_deref(), Some("silent"));
        let began = Instant::now();
        let lost = WorkerReport { own: vec![0], report: None, lost: Some("silent".to_owned()) };
        assert_eq!(cluster.reports(), [vec![lost]]);
        assert!(began.elapsed() < REPORTS / 2, "a report that cannot come is not waited for");
        assert_eq!(cluster.lost(0), None, "it can take part in the next run");
    }

    #[test]
    fn an_answer_has_each_requested_port_once_and_no_other() {
        assert_eq!(named(&[5, 5, 5], &[3, 4, 5]), Some(vec![5]));
        assert_eq!(named(&[5, 70_000, 3], &[3, 4, 5]), Some(vec![3, 5]), "in the order of the question");
        assert_eq!(named(&[65_541], &[5]), Some(vec![]), "65,541 is not 5");
        assert_eq!(named(&[3, 4, 5, 5], &[3, 4, 5]), None);
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names = ["node-10", "edge", "node-9", "node-9a", "node-", "1"];
        names.sort_by(|one, other| by_name(one, other));
        assert_eq!(names, ["1", "edge", "node-", "node-9", "node-10", "node-9a"]);
    }
}
