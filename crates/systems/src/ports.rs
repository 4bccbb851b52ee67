//! Free ports on the loopback address, below the range for outgoing connections; and the size of that range.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use crate::definition::DiscoveryPorts;
use crate::error::SystemError;

/// First port that is tried.
pub const FIRST: u16 = 20_000;
/// Last port that is tried: outgoing connections of Linux use ports from 32768 on (`ip_local_port_range`).
pub const LAST: u16 = 32_767;

/// Number of ports for connections from one source address to one endpoint; `None` if the kernel does not report it.
pub fn outgoing() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((last + 1).saturating_sub(first))
}

/// `count` ports to try on another machine; fewer if the range is smaller.
pub fn candidates(count: usize) -> Vec<u16> {
    all().take(count).collect()
}

/// All ports of the range, in order from a random one on, so that two starts at the same time use different ports. No
/// measurement depends on the random number.
fn all() -> impl Iterator<Item = u16> {
    let count = LAST - FIRST + 1;
    let begin = begin(count.into()) as u16;
    (0..count).map(move |step| FIRST + (begin + step) % count)
}

fn begin(count: u64) -> u64 {
    RandomState::new().hash_one(0) % count.max(1)
}

/// `count` different ports that are free now. If one is in use when a system starts, the start is tried again with
/// others.
pub fn free(count: usize) -> Result<Vec<u16>, SystemError> {
    let found: Vec<u16> = all().filter(|port| is_free(*port)).take(count).collect();
    if found.len() == count { Ok(found) } else { Err(SystemError::NoPort { first: FIRST, last: LAST }) }
}

/// A free discovery port of a system without a broker: no clients use it yet.
pub fn free_discovery_port(places: &DiscoveryPorts) -> Result<u16, SystemError> {
    let mut all = discovery_ports(places);
    let found = all.find(|(_, taken_at)| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, *taken_at)).is_ok());
    found.map(|(port, _)| port).ok_or_else(|| no_discovery_port(places))
}

/// All discovery ports in order from a random one on, each with the UDP port that is bound when clients use it.
pub fn discovery_ports(places: &DiscoveryPorts) -> impl Iterator<Item = (u16, u16)> {
    let DiscoveryPorts { first, step, count, taken_at } = *places;
    let begin = begin(count.into());
    (0..u64::from(count)).filter_map(move |place| {
        let place = (begin + place) % u64::from(count);
        let port = u16::try_from(u64::from(first) + place * u64::from(step)).ok()?;
        Some((port, port.checked_add(taken_at)?))
    })
}

/// The error when clients use every discovery port.
pub fn no_discovery_port(places: &DiscoveryPorts) -> SystemError {
    let last = places.first.saturating_add(places.step.saturating_mul(places.count.saturating_sub(1)));
    SystemError::NoPort { first: places.first, last }
}

/// Is the port free for TCP and for UDP? Systems use either.
fn is_free(port: u16) -> bool {
    let place = (Ipv4Addr::LOCALHOST, port);
    TcpListener::bind(place).is_ok() && UdpSocket::bind(place).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ_can_be_bound_and_are_below_the_ephemeral_range() {
        let ports = free(3).unwrap();
        let bound: Vec<TcpListener> =
            ports.iter().map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap()).collect();
        assert_eq!(bound.len(), 3);
        assert!(ports.iter().all(|port| (FIRST..=LAST).contains(port)));
    }

    #[test]
    fn a_used_discovery_port_is_not_used_again() {
        let port = free(1).unwrap()[0];
        let places = DiscoveryPorts { first: port - 10, step: 1, count: 1, taken_at: 10 };
        assert_eq!(free_discovery_port(&places).unwrap(), port - 10);
        let _met = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(matches!(free_discovery_port(&places), Err(SystemError::NoPort { .. })));
    }
}
