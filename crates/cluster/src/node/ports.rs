//! Free ports of this machine at which clients can listen.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use crate::limits;
use crate::messages::{FreePorts, WantedPorts};

/// The requested ports that are free on this machine, or why clients cannot use the address.
pub(super) fn free(wanted: &WantedPorts) -> FreePorts {
    let (ports, failure) = match found(wanted) {
        Ok(ports) => (ports, String::new()),
        Err(why) => (vec![], why),
    };
    FreePorts { number: wanted.number, ports, failure }
}

fn found(wanted: &WantedPorts) -> Result<Vec<u32>, String> {
    let address: IpAddr = wanted.address.parse().map_err(|_| format!("`{}` is not an address", wanted.address))?;
    UdpSocket::bind((address, 0)).map_err(|error| format!("{address} is not an address of this machine: {error}"))?;
    if wanted.ports.len() > limits::PORTS {
        return Err(format!("{} ports were asked for at once, at most {}", wanted.ports.len(), limits::PORTS));
    }
    Ok(wanted.ports.iter().copied().filter(|port| is_free(address, *port)).collect())
}

/// Is the port free for TCP and for UDP, at all addresses? A client may listen at any address.
fn is_free(address: IpAddr, port: u32) -> bool {
    let any = if address.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let Ok(port @ 1..) = u16::try_from(port) else { return false };
    let place = SocketAddr::new(any, port);
    TcpListener::bind(place).is_ok() && UdpSocket::bind(place).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn asked(address: &str, ports: Vec<u32>) -> FreePorts {
        free(&WantedPorts { number: 3, address: address.to_owned(), ports })
    }

    #[test]
    fn occupied_ports_are_not_free() {
        let taken: Vec<UdpSocket> = (0..8).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u32> = taken.iter().map(|socket| socket.local_addr().unwrap().port().into()).collect();
        let found = asked("127.0.0.1", [&[0, 70_000][..], &ports].concat());
        assert_eq!((found.number, found.ports, found.failure.as_str()), (3, vec![], ""));
        drop(taken);
        // Another process may bind one of the ports meanwhile.
        let found = asked("127.0.0.1", ports.clone()).ports;
        assert!(!found.is_empty() && found.iter().all(|port| ports.contains(port)), "{found:?} of {ports:?}");
    }

    #[test]
    fn an_address_of_another_machine_is_refused() {
        // A documentation address (RFC 5737), which no machine has.
        let why = asked("192.0.2.1", vec![]).failure;
        assert!(why.starts_with("192.0.2.1 is not an address of this machine"), "{why}");
        assert_eq!(asked("here", vec![]).failure, "`here` is not an address");
        let many = asked("127.0.0.1", vec![1; limits::PORTS + 1]).failure;
        assert!(many.contains("were asked for at once"), "{many}");
    }
}
