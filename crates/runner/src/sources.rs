//! Source addresses of connections: checks whether a run's source addresses exist and have enough ports.

use std::net::UdpSocket;

use pubmark_model::fleet::ConnectionCounts;

use crate::error::RunError;
use crate::spec::SourceAddresses;
use crate::target::CheckedTarget;

/// Refuses, before anything starts, addresses that this machine does not have, or that cannot reach the system.
pub fn check(sources: &SourceAddresses, wanted: &CheckedTarget) -> Result<(), RunError> {
    for source in sources.0.iter() {
        UdpSocket::bind((*source, 0)).map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::AddrNotAvailable => format!("this machine has no address `{source}`"),
                _ => format!("failed to use the source address `{source}`: {error}"),
            };
            RunError::input(why)
                .hint("`ip address` shows those it has; all of 127.0.0.0/8 are there, for systems on this machine")
        })?;
    }
    let Some(from) = sources.0.first() else { return Ok(()) };
    for to in wanted.addresses() {
        if to.is_ipv4() != from.is_ipv4() {
            let why = format!("a connection from `{from}` to `{to}` would have two families of addresses");
            return Err(RunError::input(why).hint(format!("source addresses like `{to}`")));
        }
        if let Some(local) = sources.0.iter().find(|source| source.is_loopback() && !to.is_loopback()) {
            return Err(RunError::input(format!("`{local}` reaches this machine only, the system is at `{to}`"))
                .hint("addresses of the interface that reaches the system: `ip address`"));
        }
    }
    Ok(())
}

/// Number of connections to the endpoint that gets most of them: each needs a port of its source address.
pub fn connections_to_one(connections: ConnectionCounts, wanted: &CheckedTarget) -> u64 {
    let brokers = wanted.brokers();
    let ConnectionCounts { devices, subscribers } = connections;
    // With independent brokers, each subscriber connects to every one.
    let listeners = if wanted.sessions_per_subscriber() > 1 { subscribers } else { subscribers.div_ceil(brokers) };
    let devices = devices.div_ceil(brokers);
    if wanted.has_one_endpoint() { devices + listeners } else { devices.max(listeners) }
}

/// How this machine gets more ports for its connections, if each source address has `each`.
pub(crate) fn more(connections: u64, each: u64) -> String {
    let needed = connections.div_ceil(each.max(1));
    format!(
        "`--source-addresses` with {needed} addresses of this machine, for instance `127.0.0.1-127.0.0.{}` for a system on it",
        needed.min(254)
    )
}
