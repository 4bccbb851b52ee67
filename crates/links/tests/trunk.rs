//! Groups in networks of their own that reach each other through the trunk.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use common::{delayed, network_of, prepared, settings, skip, stop};
use pubmark_links::addresses::group_v4;
use pubmark_links::network::{BackEnd, Network, Settings};
use pubmark_links::trunk::{self, TrunkCounters, TrunkEnd};
use pubmark_links::verify::{self, Outcome, Property};
use pubmark_model::link::{Conditions, Rate};
use pubmark_testing::assert_count_eq;

const DELAY: Duration = Duration::from_millis(5);
const KEY: trunk::Key = trunk::Key::new([3; 16]);

/// Ends of a trunk with this many groups. If another process takes a port before it is opened, others are tried.
fn ends(groups: u16) -> Vec<Arc<TrunkEnd>> {
    // Ports below those that the kernel gives to outgoing connections.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let port = || 20_000 + (std::process::id() as u16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
    loop {
        let places: Vec<SocketAddr> = (0..groups).map(|_| (Ipv4Addr::LOCALHOST, port()).into()).collect();
        let opened: Result<Vec<_>, _> = (0..groups).map(|own| TrunkEnd::open(KEY, own, places.clone())).collect();
        if let Ok(opened) = opened {
            return opened;
        }
    }
}

fn with_trunk(end: Arc<TrunkEnd>) -> Settings {
    Settings { mtu: trunk::MTU, trunk: Some(end), ..settings(&[delayed(DELAY)]) }
}

fn networks(groups: u16) -> Option<Vec<Network>> {
    ends(groups).into_iter().map(|end| network_of(with_trunk(end))).collect()
}

/// A socket of the only group of a network, whose address is that of its number.
fn socket(network: &Network) -> UdpSocket {
    let bind = || UdpSocket::bind((network.address(0), 0));
    prepared(network.group(0).unwrap().enter(bind).unwrap().unwrap())
}

/// Ends a network; what its trunk counted.
fn counted(network: Network) -> TrunkCounters {
    stop(network).snapshot.trunk.unwrap().counters
}

#[test]
fn a_packet_crosses_the_link_of_its_sender_and_that_of_its_receiver() {
    let Some(networks) = networks(2) else { return };
    let [one, other] = [0, 1].map(|number| socket(&networks[number]));
    assert_eq!(other.local_addr().unwrap().ip(), group_v4(1, 0));
    let (mut buffer, sent) = ([0; 4_096], [7; 4_000]);
    for _ in 0..20 {
        let began = Instant::now();
        // Larger than the MTU: the group's kernel sends fragments.
        one.send_to(&sent, other.local_addr().unwrap()).unwrap();
        let (length, sender) = other.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], sender), (&sent[..], one.local_addr().unwrap()));
        assert!(began.elapsed() >= 2 * DELAY, "{:?}", began.elapsed());
        other.send_to(b"back", sender).unwrap();
        assert_eq!(one.recv_from(&mut buffer).unwrap(), (4, other.local_addr().unwrap()));
        assert!(began.elapsed() >= 4 * DELAY, "{:?}", began.elapsed());
    }
    for network in &networks {
        assert!(network.is_running());
    }
    let [one, other] = <[Network; 2]>::try_from(networks).unwrap().map(counted);
    // Four fragments each way there, one back.
    assert_count_eq!((one.sent.packets, other.sent.packets), (80, 20));
    assert_count_eq!((one.sent, other.sent), (other.received, one.received));
    for counters in [one, other] {
        assert_count_eq!((counters.missing, counters.unsent, counters.refused), (0, 0, 0));
    }
}

#[test]
fn what_is_sent_to_a_multicast_group_comes_to_every_other_network_once() {
    let Some(networks) = networks(3) else { return };
    let to = SocketAddr::from(([239, 255, 0, 1], 7_400));
    let listening = |network: &Network| {
        let std::net::IpAddr::V4(own) = network.address(0) else { panic!("it is of IPv6") };
        let bind = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, to.port()))?;
            socket.join_multicast_v4(&Ipv4Addr::new(239, 255, 0, 1), &own)?;
            socket.set_multicast_loop_v4(false)?;
            std::io::Result::Ok(socket)
        };
        prepared(network.group(0).unwrap().enter(bind).unwrap().unwrap())
    };
    let sockets: Vec<UdpSocket> = networks.iter().map(listening).collect();
    let sender = socket(&networks[0]);
    sender.send_to(b"hello", to).unwrap();
    let mut buffer = [0; 100];
    for receiver in &sockets[1..] {
        assert_eq!(receiver.recv_from(&mut buffer).unwrap(), (5, sender.local_addr().unwrap()));
        receiver.set_read_timeout(Some(10 * DELAY)).unwrap();
        assert!(receiver.recv_from(&mut buffer).is_err(), "it came twice");
    }
    let counters: Vec<TrunkCounters> = networks.into_iter().map(counted).collect();
    assert_count_eq!(counters.iter().map(|counters| counters.sent.packets).collect::<Vec<_>>(), [2, 0, 0]);
    assert_count_eq!(counters.iter().map(|counters| counters.received.packets).collect::<Vec<_>>(), [0, 1, 1]);
}

#[test]
fn a_rate_is_probed_with_packets_that_the_network_carries_in_one_piece() {
    let rate = Some(Rate { bits_per_second: 20_000_000, queue_bytes: 1 << 20 });
    let limited = Settings { mtu: trunk::MTU, ..settings(&[Conditions { rate, ..Conditions::default() }]) };
    let Some(network) = network_of(Settings { trunk: Some(ends(1).swap_remove(0)), ..limited }) else { return };
    for found in verify::verify(&network).unwrap() {
        // A probe in two fragments would be one more packet on the link than were sent.
        let unexpected = found.checks.iter().find(|check| check.property == Property::Unexpected).unwrap();
        assert_eq!(unexpected.outcome, Outcome::Met, "{found:?}");
    }
}

#[test]
fn settings_that_a_trunk_does_not_carry_are_refused() {
    if skip() {
        return;
    }
    let end = ends(1).swap_remove(0);
    let refused = |settings: Settings| Network::start(settings).unwrap_err().to_string();
    let larger = Settings { mtu: 1_500, ..with_trunk(Arc::clone(&end)) };
    assert!(refused(larger).contains("bytes of a packet (MTU): 1500 was asked for, 1280 to 1280 can be"));
    let two = Settings { links: settings(&[delayed(DELAY); 2]).links, ..with_trunk(Arc::clone(&end)) };
    assert!(refused(two).starts_with("groups with links beside a trunk"));
    let by_kernel = Settings { back_end: BackEnd::KernelNetem, ..with_trunk(end) };
    assert!(refused(by_kernel).contains("does not lead to groups in networks of other processes"));
}
