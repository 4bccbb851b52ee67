//! A network for a test, and the sockets in it.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use pubmark_links::network::{Network, Settings};
use pubmark_links::{addresses, privilege};
use pubmark_model::link::{Conditions, Delay, Link};
use pubmark_protocol::datagram;

pub const PATIENCE: Duration = Duration::from_secs(10);

/// Links of these conditions, each both ways, for a group each; `None`, with a skip, if links cannot be made.
pub fn network(conditions: &[Conditions]) -> Option<Network> {
    network_of(settings(conditions))
}

pub fn settings(conditions: &[Conditions]) -> Settings {
    let link = |(index, conditions): (usize, &Conditions)| Link::symmetric(&format!("link-{index}"), *conditions);
    Settings::new(conditions.iter().enumerate().map(link).collect(), 42)
}

pub fn network_of(settings: Settings) -> Option<Network> {
    if skip() {
        return None;
    }
    Some(Network::start(settings).unwrap())
}

/// Returns why links cannot be made here, if so.
pub fn skip() -> bool {
    let capabilities = privilege::probe();
    let reason = match capabilities.missing() {
        None if capabilities.privilege == privilege::Privilege::Administrator => return false,
        None => "a test runner has threads, so it cannot make a user namespace; run as root".to_owned(),
        Some(missing) => missing,
    };
    pubmark_testing::skip(reason);
    true
}

pub fn delayed(mean: Duration) -> Conditions {
    let delay = Delay { mean_ns: mean.as_nanos() as u64, ..Delay::default() };
    Conditions { delay, ..Conditions::default() }
}

/// A socket of group `group`, bound to its first address.
pub fn group_socket(network: &Network, group: usize, ipv6: bool) -> UdpSocket {
    let address: IpAddr =
        if ipv6 { addresses::group_v6(group, 0).into() } else { addresses::group_v4(group, 0).into() };
    prepared(network.group(group).unwrap().enter(|| UdpSocket::bind((address, 0))).unwrap().unwrap())
}

/// A socket of the core.
pub fn core_socket(network: &Network, ipv6: bool) -> UdpSocket {
    prepared(network.core().enter(|| UdpSocket::bind(core(ipv6, 0))).unwrap().unwrap())
}

pub fn core(ipv6: bool, port: u16) -> SocketAddr {
    let address: IpAddr = if ipv6 { addresses::CORE_V6.into() } else { addresses::CORE_V4.into() };
    SocketAddr::new(address, port)
}

pub fn prepared(socket: UdpSocket) -> UdpSocket {
    datagram::enlarge_receive_buffer(socket.as_fd(), 16 << 20).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Ends the network and checks that nothing was lost that no condition requires.
pub fn stop(network: Network) -> pubmark_links::network::Final {
    let last = network.stop().unwrap();
    assert_eq!(last.unexpected_drops(), 0, "{last:?}");
    for link in &last.snapshot.links {
        assert!(link.up.closed() && link.down.closed(), "{link:?}");
    }
    last
}
