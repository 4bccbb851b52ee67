//! Free ports on the loopback address, below the range that connections take theirs from; and how many that range has.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use crate::error::SystemError;

/// First port that is tried.
pub const FIRST: u16 = 20_000;
/// Last port that is tried: Linux gives connections theirs from 32768 on (`ip_local_port_range`).
pub const LAST: u16 = 32_767;

/// Ports that connections of one source address to one endpoint can have; `None` where the kernel does not say.
pub fn outgoing() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((last + 1).saturating_sub(first))
}

/// `count` different free ports. They are free now; a start that finds one taken after all tries others.
pub fn free(count: usize) -> Result<Vec<u16>, SystemError> {
    let candidates = LAST - FIRST + 1;
    // A random place to begin keeps two starts at the same time apart. Nothing measured depends on it.
    let begin = (RandomState::new().hash_one(0) % u64::from(candidates)) as u16;
    let found: Vec<u16> = (0..candidates)
        .map(|step| FIRST + (begin + step) % candidates)
        .filter(|port| is_free(*port))
        .take(count)
        .collect();
    if found.len() == count { Ok(found) } else { Err(SystemError::NoPort { first: FIRST, last: LAST }) }
}

/// For TCP and for UDP: one or the other is wanted.
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
}
