//! The process between emulated links and a system that runs already: started here, found by clients in place of the system, counted.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubmark_engine::endpoints::Endpoints;
use pubmark_links::addresses::CORE_V4;
use pubmark_links::lateness::Lateness;
use pubmark_links::namespace::Namespace;
use pubmark_links::relay::{self, Carried, Counts, Relay, RelayError};
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocols::Spoken;
use pubmark_record::distribution;
use pubmark_record::links::{RelayFigures, RelayTraffic};
use pubmark_record::record::Deviation;
use pubmark_systems::descriptors;

use crate::endpoint;
use crate::error::{ErrorKind, RunError};
use crate::host::Host;
use crate::target::{Target, Wanted};
use crate::workers;

/// The port of a URL without one.
const HTTP_PORT: u16 = 80;
/// Time to end in order, once nobody asks any more.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// A relay on the network that this process had when it was started.
#[derive(Debug)]
pub struct RelayProcess {
    relay: Option<Relay>,
    child: Child,
}

impl RelayProcess {
    /// Starts one from the host's program.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(host: &Host) -> Result<RelayProcess, RunError> {
        let failed = |error: &std::io::Error| {
            RunError::from_error(ErrorKind::Internal, error)
                .during("failed to start the relay between links and endpoint")
        };
        let [ours, theirs] = relay::pair().map_err(|error| failed(&error))?;
        let child = spawn(host.program.as_deref(), theirs).map_err(|error| failed(&error))?;
        // Made first, so that the child is ended whatever follows.
        let mut process = RelayProcess { relay: None, child };
        process.relay = Some(Relay::new(ours).map_err(|error| failed(&error))?);
        Ok(process)
    }

    fn relay(&self) -> Result<&Relay, RelayError> {
        self.relay.as_ref().ok_or_else(|| RelayError::Gone(std::io::ErrorKind::NotConnected.into()))
    }

    /// The address of a host as its network finds it.
    ///
    /// # Errors
    /// There is none.
    pub fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, RunError> {
        self.relay().and_then(|relay| relay.resolve(host, port)).map_err(|error| match error {
            RelayError::Refused(why) => RunError::input(why).hint("check the name, or write the address"),
            gone => RunError::from_error(ErrorKind::Internal, &gone),
        })
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        // It ends when its channel does.
        self.relay = None;
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < ENDS_WITHIN {
            std::thread::sleep(LOOK);
        }
        // Both fail where it has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: Option<&Path>, channel: OwnedFd) -> std::io::Result<Child> {
    let program = program.map_or_else(std::env::current_exe, |program| Ok(program.to_owned()))?;
    let mut command = Command::new(program);
    command.arg("relay").stdin(Stdio::from(channel)).stdout(Stdio::null());
    // An interruption from the terminal is for the run, which ends it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    workers::end_with_parent(&mut command);
    command.spawn()
}

/// Serves the run at the other end of standard input until that end closes.
///
/// # Errors
/// Standard input is no channel, or the kernel refuses what the loop needs.
pub fn serve() -> std::io::Result<()> {
    let channel = std::io::stdin().as_fd().try_clone_to_owned()?;
    // Two for each connection: as many as there may be. What is refused shows where a connection does not get one.
    let _ = descriptors::raise();
    relay::serve(channel, |host, port| endpoint::address_of(host, port).map_err(|error| error.to_string()))
}

/// A system behind a relay, as clients in the links' networks find it.
#[derive(Debug)]
pub struct Relayed {
    process: Arc<RelayProcess>,
    /// Where devices connect, and subscribers.
    endpoints: [Endpoint; 2],
    /// Where the exporter of the system's machine answers.
    pub node_exporter: Option<String>,
    /// Connections and refusals when the run began.
    before: (u64, u64),
}

impl Relayed {
    /// Lets clients in the network of `core` reach a system that runs already; `None` for any other.
    ///
    /// # Errors
    /// The relay cannot be started, the system does not take connections, or the exporter's host is not found.
    pub fn of(
        wanted: &Wanted,
        spoken: Spoken,
        node_exporter: Option<&str>,
        core: &Namespace,
        host: &Host,
    ) -> Result<Option<Relayed>, RunError> {
        let Wanted::External { endpoint, subscribe_endpoint, .. } = wanted else { return Ok(None) };
        let process = host.relay.clone().map_or_else(|| RelayProcess::start(host).map(Arc::new), Ok)?;
        let failed = |error: RelayError| {
            RunError::from_error(ErrorKind::Internal, &error).during("failed to lead links to the endpoint")
        };
        let relay = process.relay().map_err(failed)?;
        relay.forget().map_err(failed)?;
        for (side, to) in [(spoken.publish, endpoint), (spoken.subscribe, subscribe_endpoint)] {
            if !side.capabilities.features.datagrams {
                relay.try_connect(to.address).map_err(|error| unreachable(&error, to))?;
            }
        }
        let listen = |to: SocketAddr| relay.listen(core, CORE_V4.into(), to).map_err(failed);
        let publish_at = Endpoint { address: listen(endpoint.address)?, ..(**endpoint).clone() };
        let subscribe_at = match subscribe_endpoint.address == endpoint.address {
            true => publish_at.address,
            false => listen(subscribe_endpoint.address)?,
        };
        let subscribe_at = Endpoint { address: subscribe_at, ..(**subscribe_endpoint).clone() };
        let through = |url: &str| -> Result<String, RunError> {
            let [before, name, behind] = parts(url);
            let (name, port) = host_and_port(name);
            Ok(format!("{before}{}{behind}", listen(process.resolve(name, port)?)?))
        };
        let node_exporter = node_exporter.map(through).transpose()?;
        let counts = relay.counts().map_err(failed)?;
        let before = (counts.connections, counts.refused);
        Ok(Some(Relayed {
            process: Arc::clone(&process),
            endpoints: [publish_at, subscribe_at],
            node_exporter,
            before,
        }))
    }

    /// Clients of the target go through the relay.
    pub fn redirect(&self, target: &mut Target) {
        let [publish_at, subscribe_at] = self.endpoints.clone();
        let detail = format!(
            "clients' connections end at a relay on this machine, which opens its own to `{}`: acknowledgements, windows and \
             congestion control of TCP are those of the links on one side and of this machine's network on the other",
            publish_at.shown
        );
        target.deviations.push(Deviation { name: "relayed".to_owned(), detail });
        (target.publish_at, target.subscribe_at) = (Endpoints::one(publish_at), Endpoints::one(subscribe_at));
    }

    /// What the relay has counted; `Err` says why nothing is known of it.
    pub fn counts(&self) -> Result<Counts, String> {
        self.process.relay().and_then(Relay::counts).map_err(|error| error.to_string())
    }

    /// For the record: what it carried between two counts.
    pub fn figures(
        &self,
        before: &Result<Counts, String>,
        after: &Result<Counts, String>,
        held_ns: u64,
    ) -> RelayFigures {
        let (before, after) = match (before, after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => {
                return RelayFigures { gone: Some(why.clone()), ..RelayFigures::default() };
            }
        };
        RelayFigures {
            connections: after.connections - self.before.0,
            refused: after.refused - self.before.1,
            up: traffic(&before.up, &after.up),
            down: traffic(&before.down, &after.down),
            longest_held_us: held_ns as f64 / 1e3,
            cpu_s: (after.cpu_ns - before.cpu_ns) as f64 / 1e9,
            realtime: after.realtime,
            gone: None,
        }
    }
}

/// Without the relay each client would say so.
fn unreachable(error: &RelayError, to: &Endpoint) -> RunError {
    RunError::from_error(ErrorKind::System, error)
        .during(format!("failed to connect to `{}`", to.shown))
        .hint("start the system, or check host and port of `--endpoint`")
}

fn traffic(before: &Carried, after: &Carried) -> RelayTraffic {
    RelayTraffic {
        bytes: after.bytes - before.bytes,
        added: distribution::summary(&times(&after.added.since(&before.added))),
        dropped: after.dropped - before.dropped,
    }
}

/// A histogram of the links as the record's figures are made from: a value of a bucket is at most 1/32 too large.
pub fn times(lateness: &Lateness) -> Distribution {
    let mut times = Distribution::new(Precision::Total);
    for (ns, count) in lateness.buckets() {
        times.record_many(ns, count);
    }
    times
}

/// Of a URL: what stands before the host, host and port, what follows.
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
    use super::*;

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
