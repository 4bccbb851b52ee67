//! Wires without netem, which not every kernel has: traffic, counters, and the error if netem is missing.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::*;
use crate::addresses::{CORE_V4, CORE_V6, group_v4, group_v6};
use crate::namespace::Namespace;
use crate::netlink::{Message, Netlink, Route, queue_part};
use crate::privilege::{self, Privilege};

#[test]
fn an_algorithm_that_the_kernel_lacks_is_named() {
    let refused = |code| LinkError::refused("set netem", io::Error::from_raw_os_error(code));
    assert!(unknown(refused(libc::ENOENT)).to_string().contains("no `sch_netem`"));
    assert!(unknown(refused(libc::EOPNOTSUPP)).to_string().contains("no `veth`"));
    assert!(matches!(unknown(refused(libc::EPERM)), LinkError::Refused { .. }));
}

/// Two places and the wire between them.
struct TestWire {
    group: Namespace,
    core: Namespace,
    wire: Wire,
}

/// A namespace that has these addresses.
fn place(name: &str, addresses: [IpAddr; 2]) -> (Namespace, Netlink) {
    let namespace = Namespace::create(name).unwrap();
    let netlink = namespace.enter(|| {
        let mut netlink = Netlink::open().unwrap();
        let loopback = Netlink::index("lo").unwrap();
        netlink.up(loopback).unwrap();
        netlink.add_address(loopback, addresses[0], 32).unwrap();
        netlink.add_address(loopback, addresses[1], 128).unwrap();
        netlink
    });
    (namespace, netlink.unwrap())
}

/// Group 4's wire; `None`, with a skip, if none can be made.
fn lay() -> Option<TestWire> {
    let found = privilege::probe();
    if found.privilege != Privilege::Administrator || found.kernel_netem.is_err_and(|why| why.contains("veth")) {
        pubmark_testing::skip("wires need root and pairs of interfaces (veth)");
        return None;
    }
    let own = [group_v4(4, 0).into(), group_v6(4, 0).into()];
    let (group, mut group_netlink) = place("group", own);
    let (core, mut core_netlink) = place("core", [CORE_V4.into(), CORE_V6.into()]);
    let all = [IpAddr::from([0; 4]), IpAddr::from([0; 16])].map(|destination| Route { destination, prefix: 0 });
    let back = own.map(route_to);
    let group_end = End { namespace: &group, netlink: &mut group_netlink, interface: "wan0", routes: &all };
    let core_end = End { namespace: &core, netlink: &mut core_netlink, interface: "hub4", routes: &back };
    let shape = Shape { mtu: 1_500, queue_packets: 1_000, ipv6: true };
    let wire = Wire::lay(4, group_end, core_end, shape).unwrap();
    // A plain queue instead of netem: its statistics are read in the same way.
    for interface in ["group", "core"] {
        let request = |netlink: &mut Netlink| {
            let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
            let message = Message::new(libc::RTM_NEWQDISC, flags, &queue_part(Netlink::index(interface)?));
            netlink.request(|| "set a queue".to_owned(), message.attribute(libc::TCA_KIND, b"pfifo\0"))
        };
        wire.within(request).unwrap();
    }
    Some(TestWire { group, core, wire })
}

#[test]
fn a_wire_carries_datagrams_and_counts_those_and_nothing_else() {
    let Some(TestWire { group, core, wire }) = lay() else { return };
    let ends: [(IpAddr, IpAddr); 2] =
        [(group_v4(4, 0).into(), CORE_V4.into()), (group_v6(4, 0).into(), CORE_V6.into())];
    for (number, (own, peer)) in ends.into_iter().enumerate() {
        let bind = |place: &Namespace, address| place.enter(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
        let (own, peer) = (bind(&group, own), bind(&core, peer));
        for socket in [&own, &peer] {
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
        for _ in 0..10 {
            own.send_to(&[7; 100], peer.local_addr().unwrap()).unwrap();
            let (length, from) = peer.recv_from(&mut [0; 200]).unwrap();
            assert_eq!((length, from), (100, own.local_addr().unwrap()));
            peer.send_to(&[8; 50], from).unwrap();
            assert_eq!(own.recv(&mut [0; 200]).unwrap(), 50);
        }
        let rounds = number as u64 + 1;
        // 28 bytes of headers over IPv4, 48 over IPv6.
        let headers = [280, 280 + 480][number];
        for (direction, payload) in [(Direction::Up, 1_000), (Direction::Down, 500)] {
            let counters = wire.counters(direction).unwrap();
            let bytes = rounds * payload + headers;
            assert_eq!((counters.arrived.packets, counters.arrived.bytes), (10 * rounds, bytes), "{direction:?}");
            assert_eq!(counters.delivered, counters.arrived, "{direction:?}");
            assert_eq!((counters.lost.packets, counters.waiting.packets), (0, 0));
            assert_eq!(wire.waiting(direction).unwrap(), 0);
        }
    }
    assert!(wire.interfaces().unwrap().iter().all(|counters| counters.dropped() == 0));
}

#[test]
fn a_stream_crosses_a_wire_in_packets_of_its_size() {
    let Some(TestWire { group, core, wire }) = lay() else { return };
    let listener = core.enter(|| TcpListener::bind((CORE_V4, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let mut sender = group.enter(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    sender.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let writing = std::thread::spawn(move || sender.write_all(&vec![1; 1 << 20]).unwrap());
    let mut received = Vec::new();
    receiver.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received.len(), 1 << 20);
    let up = wire.counters(Direction::Up).unwrap().arrived;
    // 1,448 bytes fit beside the headers; a packet of 64 KB would be lost as one.
    assert!(up.packets >= (1 << 20) / 1_448, "{up:?}");
    assert!(up.bytes >= (1 << 20) + up.packets * 40, "{up:?}");
}

#[test]
fn without_netem_a_network_by_the_kernel_is_an_error_that_says_so() {
    use crate::network::{BackEnd, Network, Settings};
    let found = privilege::probe();
    let link = Link::symmetric("any", pubmark_model::link::Conditions::default());
    let settings = Settings { back_end: BackEnd::KernelNetem, ..Settings::new(vec![link], 1) };
    match Network::start(settings) {
        Ok(network) => {
            assert_eq!(found.kernel_netem, Ok(()));
            network.stop().unwrap();
        }
        Err(error) if found.privilege == Privilege::Administrator => {
            assert!(error.to_string().contains(&found.kernel_netem.unwrap_err()), "{error}");
        }
        Err(_) => pubmark_testing::skip("namespaces need root"),
    }
}
