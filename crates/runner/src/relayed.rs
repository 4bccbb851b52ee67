//! The way from emulated links to a system that runs already: where clients find it, what the relay on the way counted.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use pubmark_links::addresses::CORE_V4;
use pubmark_links::lateness::Lateness;
use pubmark_links::namespace::Namespace;
use pubmark_links::relay::{self, Carried, Counts, Relay, RelayError};
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_model::qos::Qos;
use pubmark_model::workload::Workload;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocols::Spoken;
use pubmark_record::distribution;
use pubmark_record::links::{RelayFigures, RelayTraffic};
use pubmark_record::record::Deviation;
use pubmark_systems::descriptors;

use crate::endpoint;
use crate::error::{ErrorKind, RunError};
use crate::host::Host;
use crate::relay::RelayProcess;

/// The port of a URL without one.
const HTTP_PORT: u16 = 80;

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

/// How often a message passes the relay: to the system and on; at QoS 2 twice as often, as a broker may forward a message when its
/// sender has released it (MQTT 5.0 §4.3.3).
pub fn passes(workload: &Workload) -> u64 {
    if workload.devices.iter().any(|group| group.qos == Qos::ExactlyOnce) { 4 } else { 2 }
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
    /// Lets clients in the network of `core` reach a system that runs already, at these endpoints of devices and of subscribers.
    ///
    /// # Errors
    /// The relay cannot be started, the system does not take connections, or the exporter's host is not found.
    pub fn of(
        [endpoint, subscribe_endpoint]: [&Endpoint; 2],
        spoken: Spoken,
        node_exporter: Option<&str>,
        core: &Namespace,
        host: &Host,
    ) -> Result<Relayed, RunError> {
        let start = || RelayProcess::start(host.program.as_deref()).map(Arc::new);
        let process = host.relay.clone().map_or_else(start, Ok)?;
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
        let publish_at = Endpoint { address: listen(endpoint.address)?, ..endpoint.clone() };
        let subscribe_at = match subscribe_endpoint.address == endpoint.address {
            true => publish_at.address,
            false => listen(subscribe_endpoint.address)?,
        };
        let subscribe_at = Endpoint { address: subscribe_at, ..subscribe_endpoint.clone() };
        let through = |url: &str| -> Result<String, RunError> {
            let [before, name, behind] = parts(url);
            let (name, port) = host_and_port(name);
            Ok(format!("{before}{}{behind}", listen(process.resolve(name, port)?)?))
        };
        let node_exporter = node_exporter.map(through).transpose()?;
        let counts = relay.counts().map_err(failed)?;
        let before = (counts.connections, counts.refused);
        Ok(Relayed { process: Arc::clone(&process), endpoints: [publish_at, subscribe_at], node_exporter, before })
    }

    /// Where devices find the system, and where subscribers do.
    pub fn endpoints(&self) -> [Endpoint; 2] {
        self.endpoints.clone()
    }

    /// What differs from a run without the relay.
    pub fn deviation(&self) -> Deviation {
        let detail = format!(
            "clients' connections end at a relay on this machine, which opens its own to `{}`: acknowledgements, windows and \
             congestion control of TCP are those of the links on one side and of this machine's network on the other",
            self.endpoints[0].shown
        );
        Deviation { name: "relayed".to_owned(), detail }
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
            (Ok(_), Ok(_)) if held_ns == u64::MAX => {
                let gone = Some("it ended while stragglers were waited for".to_owned());
                return RelayFigures { gone, ..RelayFigures::default() };
            }
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
