//! The relay from emulated links to a system that already runs: where clients find it, and what it counted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubmark_engine::endpoints::Endpoints;
use pubmark_links::addresses::CORE_V4;
use pubmark_links::namespace::Namespace;
use pubmark_links::relay::{self, Carried, Counts, Relay, RelayError};
use pubmark_model::qos::Qos;
use pubmark_model::workload::Workload;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_record::record::Deviation;
use pubmark_systems::descriptors;
use serde::{Deserialize, Serialize};

use crate::endpoint;
use crate::error::{ErrorKind, RunError};
use crate::relay::RelayProcess;

/// Port of a URL that has none.
const HTTP_PORT: u16 = 80;
/// Time between two checks of the relay during a run.
const CHECK: Duration = Duration::from_millis(500);

/// Serves the run that is connected to standard input until that connection closes.
///
/// # Errors
/// Standard input is not a channel, or the kernel refuses a resource that the loop needs.
pub fn serve() -> std::io::Result<()> {
    let channel = std::io::stdin().as_fd().try_clone_to_owned()?;
    // Two descriptors for each connection: raise the limit as far as possible, as root above the hard limit. On a node
    // nobody has compared it with the number of connections. A connection without a descriptor is counted (`exhausted`), and V18 judges it.
    let _ = descriptors::raise_for(descriptors::reachable().unwrap_or(0));
    relay::serve(channel, |host, port| endpoint::address_of(host, port).map_err(|error| error.to_string()))
}

/// How a run to this system differs from one without a relay on `machine` ("this machine").
pub fn deviation(system: &str, machine: &str) -> Deviation {
    let detail = format!(
        "clients' connections end at a relay on {machine}, which opens its own to `{system}`: acknowledgements, windows and \
         congestion control of TCP are those of the links on one side and of {machine}'s network on the other"
    );
    Deviation { name: "relayed".to_owned(), detail }
}

/// How often a message passes the relay: once to the system and once to the subscriber; at QoS 2 twice as often,
/// because a broker may forward a message only when its sender has released it (MQTT 5.0 §4.3.3).
pub fn passes(workload: &Workload) -> u64 {
    if workload.devices.iter().any(|group| group.qos == Qos::ExactlyOnce) { 4 } else { 2 }
}

/// Histogram in a report: pairs of a time, ns, and its number of occurrences.
pub type Times = Vec<(u64, u64)>;

/// What a relay carried in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayReport {
    /// [`pubmark_record::links::RelayFigures::connections`].
    pub connections: u64,
    /// [`pubmark_record::links::RelayFigures::refused`].
    pub refused: u64,
    /// [`pubmark_record::links::RelayFigures::exhausted`].
    pub exhausted: u64,
    /// [`pubmark_record::links::RelayFigures::closed`].
    #[serde(default)]
    pub closed: u64,
    /// [`pubmark_record::links::RelayFigures::up`].
    pub up: DirectionReport,
    /// [`pubmark_record::links::RelayFigures::down`].
    pub down: DirectionReport,
    /// CPU time in the window, ns.
    pub cpu_ns: u64,
    /// [`pubmark_record::links::RelayFigures::realtime`].
    pub realtime: bool,
}

/// One direction through a relay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// [`pubmark_record::links::RelayTraffic::bytes`].
    pub bytes: u64,
    /// [`pubmark_record::links::RelayTraffic::added`].
    pub added: Times,
    /// [`pubmark_record::links::RelayTraffic::dropped`].
    pub dropped: u64,
}

/// A system behind a relay, with the addresses at which clients in the links' networks reach it.
#[derive(Debug)]
pub struct Relayed {
    process: Arc<RelayProcess>,
    /// Endpoints of devices, and of subscribers.
    endpoints: [Endpoints; 2],
    /// Address of the node_exporter of the system's machine.
    pub node_exporter: Option<String>,
    /// Connections and refusals at the start of the run.
    before: (u64, u64),
    watch: RelayWatch,
}

/// Checks a relay during a run, in a thread of its own: a relay that is stopped does not respond, and the thread that leads the run
/// must not wait for it.
#[derive(Debug)]
struct RelayWatch {
    /// Why the relay is lost, once it is.
    lost: Arc<OnceLock<String>>,
    /// Dropped at the end of the run.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RelayWatch {
    fn start(process: &Arc<RelayProcess>) -> std::io::Result<RelayWatch> {
        let lost = Arc::new(OnceLock::new());
        let (running, over) = mpsc::channel::<()>();
        let (watched, found) = (Arc::clone(process), Arc::clone(&lost));
        let check = move || {
            while over.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = watched.relay().and_then(Relay::check) {
                    // A count may have failed before, for the same reason.
                    let _ = found.set(error.to_string());
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("relay-watch".to_owned()).spawn(check)?;
        Ok(RelayWatch { lost, running: Some(running), thread: Some(thread) })
    }

    /// The result of a request to the relay; one that failed means that it is lost.
    fn known<T>(&self, result: Result<T, RelayError>) -> Result<T, String> {
        result.map_err(|error| self.lost.get_or_init(|| error.to_string()).clone())
    }
}

impl Drop for RelayWatch {
    fn drop(&mut self) {
        self.running = None;
        // It may wait for a response for some seconds; it cannot panic.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Relayed {
    /// Lets clients in the network of `core` reach a system that already runs, at these endpoints of devices and of
    /// subscribers; for each side that opens connections (`connects`), the endpoint is tested.
    ///
    /// # Errors
    /// The relay has ended, the system does not accept connections, or the exporter's host cannot be resolved.
    pub fn of(
        sides: [&Endpoints; 2],
        connects: [bool; 2],
        node_exporter: Option<&str>,
        core: &Namespace,
        process: Arc<RelayProcess>,
    ) -> Result<Relayed, RunError> {
        let failed = |error: RelayError| crate::relay::failed(&error).during("failed to connect links to the endpoint");
        let relay = process.relay().map_err(failed)?;
        relay.forget().map_err(failed)?;
        for to in
            sides.iter().zip(connects).filter(|(_, connects)| *connects).flat_map(|(side, _)| side.endpoints().iter())
        {
            relay.try_connect(to.address).map_err(|error| match error {
                RelayError::Refused(_) => unreachable(&error, to),
                error => failed(error),
            })?;
        }
        let listen = |to: SocketAddr| relay.listen(core, CORE_V4.into(), to).map_err(failed);
        // Both sides connect to the same address if they use one protocol.
        let mut known: HashMap<SocketAddr, SocketAddr> = HashMap::new();
        let mut lead = |to: &Endpoint| -> Result<Endpoint, RunError> {
            let address = match known.entry(to.address) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => *entry.insert(listen(to.address)?),
            };
            Ok(Endpoint { address, ..to.clone() })
        };
        let [publish_at, subscribe_at] = sides;
        let endpoints = [publish_at.replaced(&mut lead)?, subscribe_at.replaced(&mut lead)?];
        let through = |url: &str| -> Result<String, RunError> {
            let [before, name, behind] = parts(url);
            let (name, port) = host_and_port(name);
            // Not `listen`: these requests are pubmark's own, and no traffic of the system.
            let at = relay.listen_for_own(core, CORE_V4.into(), process.resolve(name, port)?).map_err(failed)?;
            Ok(format!("{before}{at}{behind}"))
        };
        let node_exporter = node_exporter.map(through).transpose()?;
        let counts = relay.counts().map_err(failed)?;
        let before = (counts.connections, counts.refused);
        let watch = RelayWatch::start(&process).map_err(|error| {
            RunError::from_error(ErrorKind::Internal, &error).during("failed to start a thread that watches the relay")
        })?;
        Ok(Relayed { process, endpoints, node_exporter, before, watch })
    }

    /// Why the relay is lost: it ended, or it was silent for 3 s. `None` as long as it responds.
    pub fn lost(&self) -> Option<&str> {
        self.watch.lost.get().map(String::as_str)
    }

    /// Endpoints of devices, and of subscribers.
    pub fn endpoints(&self) -> [Endpoints; 2] {
        self.endpoints.clone()
    }

    /// Counts of the relay so far; `Err` has the reason why they are unknown.
    pub fn counts(&self) -> Result<Counts, String> {
        self.watch.known(self.process.relay().and_then(Relay::counts))
    }

    /// Bytes of connections and datagrams that wait in the relay and its sockets; `None` if it is lost.
    pub fn waiting_bytes(&self) -> Option<u64> {
        self.watch.known(self.process.relay().and_then(Relay::waiting_bytes)).ok()
    }

    /// What the relay carried between two counts, with the datagrams that it dropped until the end of the drain; `Err` has the
    /// reason why it is unknown.
    ///
    /// # Errors
    /// The relay ended before the run did.
    pub fn report(
        &self,
        [before, after]: [&Result<Counts, String>; 2],
        drained: Option<&Counts>,
        held_ns: u64,
    ) -> Result<RelayReport, String> {
        let (before, after) = (before.as_ref().map_err(Clone::clone)?, after.as_ref().map_err(Clone::clone)?);
        let drained = drained.unwrap_or(after);
        if held_ns == u64::MAX {
            return Err("it ended after the measured window".to_owned());
        }
        Ok(RelayReport {
            connections: after.connections - self.before.0,
            refused: after.refused - self.before.1,
            exhausted: drained.exhausted.max(after.exhausted),
            closed: drained.closed.max(after.closed),
            up: way(&before.up, &after.up, drained.up.dropped),
            down: way(&before.down, &after.down, drained.down.dropped),
            cpu_ns: after.cpu_ns - before.cpu_ns,
            realtime: after.realtime,
        })
    }
}

/// The error that each client would report without the relay.
fn unreachable(error: &RelayError, to: &Endpoint) -> RunError {
    RunError::from_error(ErrorKind::System, error)
        .during(format!("failed to connect to `{}`", to.shown))
        .hint("start the system, or check host and port of `--endpoint`")
}

fn way(before: &Carried, after: &Carried, dropped: u64) -> DirectionReport {
    DirectionReport {
        bytes: after.bytes - before.bytes,
        added: after.added.since(&before.added).buckets().collect(),
        // On a node two threads read the counters: in a run that is stopped, the end of the drain may have been read
        // before the edges of the window.
        dropped: dropped.max(after.dropped).saturating_sub(before.dropped),
    }
}

/// Splits a URL: the part before the host, host and port, the rest.
fn parts(url: &str) -> [&str; 3] {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |at| begin + at);
    let host = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    [&url[..host], &url[host..end], &url[end..]]
}

fn host_and_port(place: &str) -> (&str, u16) {
    let split = place.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = split.map_or((place, HTTP_PORT), |(host, port)| (host, port.parse().unwrap_or(HTTP_PORT)));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_relay_that_has_ended_is_no_fault_of_pubmark_and_not_the_systems() {
        let ended = Arc::new(RelayProcess::start(Some(Path::new("/bin/true"))).expect("a process"));
        let at = Endpoints::one(Endpoint {
            shown: "mqtt://127.0.0.1:1".to_owned(),
            address: ([127, 0, 0, 1], 1).into(),
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        });
        let core = Namespace::current().expect("this network");
        let error = Relayed::of([&at, &at], [true; 2], None, &core, ended).expect_err("there is no relay");
        assert_eq!(error.kind, ErrorKind::NodeLost, "{error}");
        assert!(error.hint.is_some_and(|hint| hint.starts_with("run again")), "{:?}", error.chain);
    }

    #[test]
    fn an_exporter_is_found_by_its_host_and_port() {
        let of = |url| {
            let [before, place, behind] = parts(url);
            (before, host_and_port(place), behind)
        };
        assert_eq!(of("http://ann:word@host:9100/metrics?x=1"), ("http://ann:word@", ("host", 9_100), "/metrics?x=1"));
        assert_eq!(of("host"), ("", ("host", 80), ""));
        assert_eq!(of("http://[::1]:9100"), ("http://", ("::1", 9_100), ""));
        assert_eq!(of("[fe80::1]/metrics"), ("", ("fe80::1", 80), "/metrics"));
    }
}
