//! Packets through real sockets, namespaces and interfaces.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{core_socket, delayed, group_socket, network, network_of, settings, stop};
use pubmark_links::Direction;
use pubmark_links::network::Network;
use pubmark_links::star::{Observer, Passage};
use pubmark_model::link::{Conditions, Loss, Rate};
use pubmark_protocol::datagram;
use pubmark_testing::{assert_count, assert_count_eq};

const MS: Duration = Duration::from_millis(1);

/// Round trips of `count` datagrams one after the other, sorted.
fn round_trips(from: &UdpSocket, to: &UdpSocket, count: usize) -> Vec<Duration> {
    let target = to.local_addr().unwrap();
    let mut buffer = [0; 100];
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let start = Instant::now();
            from.send_to(b"ping", target).unwrap();
            let (length, sender) = to.recv_from(&mut buffer).unwrap();
            to.send_to(&buffer[..length], sender).unwrap();
            from.recv_from(&mut buffer).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    times
}

#[test]
fn five_milliseconds_each_way_are_ten_for_both() {
    let Some(network) = network(&[delayed(5 * MS)]) else { return };
    for ipv6 in [false, true].into_iter().filter(|ipv6| !ipv6 || network.has_ipv6()) {
        let times = round_trips(&group_socket(&network, 0, ipv6), &core_socket(&network, ipv6), 100);
        println!("IPv6 {ipv6}: least {:?}, median {:?}, most {:?}", times[0], times[50], times[99]);
        assert!(times[0] >= 10 * MS, "{:?}", times[0]);
        // Other work on the machine delays the threads of this test, so the upper limit has a margin.
        assert!(times[50] < 12 * MS, "{:?}", times[50]);
    }
    let last = stop(network);
    println!(
        "lateness p50 {:?}, p99 {:?} ns",
        last.snapshot.lateness.quantile_ns(0.5),
        last.snapshot.lateness.quantile_ns(0.99)
    );
}

/// Keeps the emulator's thread from its work after each packet.
struct Slow(Duration);

impl Observer for Slow {
    fn passed(&mut self, _passage: Passage<'_>) {
        std::thread::sleep(self.0);
    }
}

#[test]
fn packets_that_come_while_the_emulator_is_busy_wait_and_that_is_measured() {
    if common::skip() {
        return;
    }
    let network = Network::start_observed(settings(&[Conditions::default()]), Slow(1_000 * MS)).unwrap();
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    own.send_to(b"first", peer.local_addr().unwrap()).unwrap();
    let (_, from) = peer.recv_from(&mut [0; 10]).unwrap();
    // The emulator has written the first packet and is busy for 1 s, in which nothing else reads this one.
    peer.send_to(b"second", from).unwrap();
    own.recv(&mut [0; 10]).unwrap();
    let waits = stop(network).snapshot.read_wait;
    assert!(waits.count() >= 2, "{waits:?}");
    assert!(waits.largest_ns() >= 50_000_000, "{} ns", waits.largest_ns());
}

#[test]
fn the_counters_agree_with_the_sockets() {
    let lossy = Conditions { loss: Loss::Random(0.01), duplicate: 0.02, ..delayed(MS) };
    let Some(network) = network(&[lossy]) else { return };
    let (sender, receiver) = (group_socket(&network, 0, false), core_socket(&network, false));
    let target = receiver.local_addr().unwrap();
    let count = 20_000;
    let (received, bytes) = std::thread::scope(|scope| {
        let receiver = &receiver;
        let counting = scope.spawn(move || {
            let (mut packets, mut bytes, mut buffer) = (0u64, 0u64, [0; 2_000]);
            loop {
                let length = receiver.recv(&mut buffer).unwrap();
                if length == 0 {
                    return (packets, bytes);
                }
                packets += 1;
                bytes += length as u64 + 28;
            }
        });
        for number in 0..count {
            sender.send_to(&[7; 72], target).unwrap();
            if number % 100 == 99 {
                std::thread::sleep(MS);
            }
        }
        // The last ones are in flight; an empty datagram of the core's own ends the count.
        let deadline = Instant::now() + common::PATIENCE;
        while network.snapshot().links[0].up.waiting.packets > 0 {
            assert!(Instant::now() < deadline);
            std::thread::sleep(MS);
        }
        network.core().enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap().send_to(&[], target).unwrap();
        counting.join().unwrap()
    });
    assert_eq!(datagram::overflowed(receiver.as_fd()), Some(0));
    let up = stop(network).snapshot.links[0].up;
    assert_count_eq!((up.arrived.packets, up.arrived.bytes), (count, count * 100));
    assert_count_eq!((up.delivered.packets, up.delivered.bytes), (received, bytes), "{up:?}");
    // 99 % of binomial samples lie within 2.58 standard deviations; the seed makes the result the same each time.
    assert_count!(up.lost.packets.abs_diff(200) <= 37, "{up:?}");
    assert_count!(up.duplicated.packets.abs_diff(396) <= 51, "{up:?}");
}

#[test]
fn the_interfaces_count_the_same_bytes() {
    let Some(network) = network(&[delayed(MS), Conditions::default()]) else { return };
    for group in [0, 1] {
        round_trips(&group_socket(&network, group, false), &core_socket(&network, false), 50);
    }
    let last = stop(network);
    for (link, interface) in last.snapshot.links.iter().zip(&last.groups) {
        assert_count_eq!(link.up.arrived.packets, 50);
        assert_count_eq!(link.up.arrived.bytes, 50 * 32);
        let noise = interface.sent_packets - link.up.arrived.packets;
        assert!(noise <= last.snapshot.strays.noise, "{interface:?}");
        assert_count_eq!(interface.received_bytes, link.down.delivered.bytes);
        assert_count_eq!((link.down.arrived, link.up.delivered), (link.up.arrived, link.down.delivered));
    }
}

#[test]
fn a_group_reaches_another_over_both_links() {
    let Some(network) = network(&[delayed(5 * MS), delayed(20 * MS)]) else { return };
    for ipv6 in [false, true].into_iter().filter(|ipv6| !ipv6 || network.has_ipv6()) {
        let times = round_trips(&group_socket(&network, 0, ipv6), &group_socket(&network, 1, ipv6), 20);
        assert!(times[0] >= 50 * MS && times[10] < 53 * MS, "{:?} {:?}", times[0], times[10]);
    }
    let links = stop(network).snapshot.links;
    assert_count_eq!(links[0].up.delivered, links[1].down.arrived);
    assert_count_eq!(links[1].up.delivered, links[0].down.arrived);
}

#[test]
fn lateness_is_measured_where_only_the_first_of_two_links_delays() {
    let Some(network) = network(&[delayed(5 * MS), Conditions::default()]) else { return };
    let (own, other) = (group_socket(&network, 0, false), group_socket(&network, 1, false));
    for _ in 0..20 {
        own.send_to(b"one way", other.local_addr().unwrap()).unwrap();
        other.recv(&mut [0; 10]).unwrap();
    }
    assert_count_eq!(stop(network).snapshot.lateness.count(), 20);
}

#[test]
fn multicast_reaches_the_core_and_every_other_group() {
    let Some(network) = network(&[delayed(MS), delayed(2 * MS), delayed(3 * MS)]) else { return };
    let group_v4 = Ipv4Addr::new(239, 255, 0, 1);
    let group_v6: Ipv6Addr = "ff15::1".parse().unwrap();
    let port = 17_400;
    for ipv6 in [false, true].into_iter().filter(|ipv6| !ipv6 || network.has_ipv6()) {
        let join = || {
            let any: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, port)).unwrap();
            if ipv6 {
                // Interface 2: the only one besides loopback.
                socket.join_multicast_v6(&group_v6, 2).unwrap();
            } else {
                let own = network_interface();
                socket.join_multicast_v4(&group_v4, &own).unwrap();
            }
            common::prepared(socket)
        };
        let listeners: Vec<UdpSocket> = [network.core()]
            .into_iter()
            .chain((1..3).map(|group| network.group(group).unwrap()))
            .map(|place| place.enter(join).unwrap())
            .collect();
        let sender = group_socket(&network, 0, ipv6);
        let target: SocketAddr = if ipv6 { (group_v6, port).into() } else { (group_v4, port).into() };
        for number in 0..10u8 {
            sender.send_to(&[number], target).unwrap();
            for listener in &listeners {
                let mut buffer = [0; 10];
                let (length, from) = listener.recv_from(&mut buffer).unwrap();
                assert_eq!((&buffer[..length], from), (&[number][..], sender.local_addr().unwrap()));
            }
        }
    }
    let links = stop(network).snapshot.links;
    let sent = links[0].up.arrived.packets;
    assert!(sent >= 10);
    assert_count_eq!(
        [links[0].down.arrived.packets, links[1].down.arrived.packets, links[2].down.arrived.packets],
        [0, sent, sent]
    );
}

/// The address by which the calling thread's interface is chosen: any will do where only one has a route for multicast.
fn network_interface() -> Ipv4Addr {
    Ipv4Addr::UNSPECIFIED
}

#[test]
fn a_group_that_is_cut_off_comes_back() {
    let Some(network) = network(&[Conditions::default()]) else { return };
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    round_trips(&own, &peer, 1);
    network.cut(0, true).unwrap();
    peer.set_read_timeout(Some(50 * MS)).unwrap();
    let deadline = Instant::now() + common::PATIENCE;
    while network.snapshot().links[0].up.lost_down.packets == 0 {
        own.send_to(b"lost", peer.local_addr().unwrap()).unwrap();
        assert!(Instant::now() < deadline);
    }
    while peer.recv(&mut [0; 10]).is_ok() {}
    own.send_to(b"lost", peer.local_addr().unwrap()).unwrap();
    assert_eq!(peer.recv(&mut [0; 10]).unwrap_err().kind(), ErrorKind::WouldBlock);
    network.cut(0, false).unwrap();
    while network.snapshot().links[0].up.delivered.packets < 3 {
        own.send_to(b"found", peer.local_addr().unwrap()).unwrap();
        assert!(Instant::now() < deadline);
    }
    assert!(network.cut(1, true).is_err(), "there is no such group");
    stop(network);
}

#[test]
fn a_series_of_rates_starts_on_command() {
    let rated = |bits_per_second| Conditions {
        rate: Some(Rate { bits_per_second, queue_bytes: 1 << 20 }),
        ..Conditions::default()
    };
    let mut settings = settings(&[rated(1_000_000)]);
    settings.links[0].up.push(pubmark_model::link::Step { at_ns: 200_000_000, conditions: rated(100_000) });
    let Some(network) = network_of(settings) else { return };
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    let start = pubmark_protocol::clock::monotonic_ns();
    network.begin(start).unwrap();

    for _ in 0..200 {
        own.send_to(&[0; 972], peer.local_addr().unwrap()).unwrap();
    }
    // 200 packets of 8,000 bits: 25 in the first 200 ms, then 12.5 a second.
    let mut arrivals = Vec::new();
    for _ in 0..30 {
        peer.recv(&mut [0; 2_000]).unwrap();
        arrivals.push(pubmark_protocol::clock::monotonic_ns() - start);
    }
    let (fast, slow) = (arrivals[23], arrivals[29] - arrivals[25]);
    assert!((190_000_000..230_000_000).contains(&fast), "{arrivals:?}");
    assert!((315_000_000..340_000_000).contains(&slow), "{arrivals:?}");
    let up = stop(network).snapshot.links[0].up;
    assert!(up.waiting.packets > 160, "{up:?}");
}

#[test]
fn malformed_packets_are_counted_and_do_no_harm() {
    let Some(network) = network(&[Conditions::default()]) else { return };
    let own = group_socket(&network, 0, false);
    let mut expected = 0;
    for nobody in ["198.18.200.2:9", "198.17.0.1:9", "8.8.8.8:9"] {
        own.send_to(b"?", nobody).unwrap();
        expected += 1;
    }
    if network.has_ipv6() {
        let own = group_socket(&network, 0, true);
        for nobody in ["[fd00:18:77::2]:9", "[2001:db8::1]:9"] {
            own.send_to(b"?", nobody).unwrap();
            expected += 1;
        }
    }
    let deadline = Instant::now() + common::PATIENCE;
    while network.snapshot().strays.unroutable < expected {
        assert!(Instant::now() < deadline, "{:?}", network.snapshot().strays);
        std::thread::sleep(MS);
    }
    round_trips(&own, &core_socket(&network, false), 1);
    let last = stop(network);
    assert_count_eq!(last.snapshot.links[0].up.arrived.packets, 1);
    assert_eq!(last.snapshot.strays.malformed, 0);
}

/// Reports the last byte of each packet that a link loses.
struct Losses(std::sync::mpsc::Sender<u8>);

impl Observer for Losses {
    fn passed(&mut self, _passage: Passage<'_>) {}

    fn lost(&mut self, packet: &[u8], _group: usize, _direction: Direction, _at_ns: u64) {
        let _ = self.0.send(packet.last().copied().unwrap_or_default());
    }
}

#[test]
fn an_observer_sees_what_is_lost_from_the_queue_of_a_link_that_breaks() {
    if common::skip() {
        return;
    }
    let (reports_to, reports) = std::sync::mpsc::channel();
    // Half a minute a packet.
    let slow = Conditions { rate: Some(Rate { bits_per_second: 8, queue_bytes: 1 << 20 }), ..Conditions::default() };
    let network = Network::start_observed(settings(&[slow]), Losses(reports_to)).unwrap();
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    for number in 1..=3u8 {
        own.send_to(&[number], peer.local_addr().unwrap()).unwrap();
    }
    let deadline = Instant::now() + common::PATIENCE;
    while network.snapshot().links[0].up.waiting.packets < 3 {
        assert!(Instant::now() < deadline, "{:?}", network.snapshot());
        std::thread::sleep(MS);
    }
    network.cut(0, true).unwrap();
    let lost = [1, 2, 3].map(|_| reports.recv_timeout(common::PATIENCE).unwrap());
    assert_eq!(lost, [1, 2, 3]);
    stop(network);
}

/// Fails at the first packet, as an emulator would that meets what it should never meet.
struct Failing;

impl Observer for Failing {
    fn passed(&mut self, _passage: Passage<'_>) {
        // Without the hook, which may take long to write a trace.
        std::panic::resume_unwind(Box::new("the observer of a test fails"));
    }
}

#[test]
fn an_emulator_that_ended_by_itself_shows_its_counters_and_says_why() {
    if common::skip() {
        return;
    }
    let network = Network::start_observed(settings(&[delayed(MS), delayed(MS)]), Failing).unwrap();
    assert!(network.is_running());
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    own.send_to(b"last", peer.local_addr().unwrap()).unwrap();
    let deadline = Instant::now() + common::PATIENCE;
    while network.is_running() {
        assert!(Instant::now() < deadline, "{:?}", network.snapshot());
        std::thread::sleep(MS);
    }
    assert_eq!(network.snapshot().links.len(), 2);
    let why = network.stop().unwrap_err().to_string();
    assert_eq!(why, "the emulator of the links has stopped: its thread panicked");
}

/// Reports each packet: (last byte, group, direction, in, out).
struct Reporter(std::sync::mpsc::Sender<(u8, usize, Direction, u64, u64)>);

impl Observer for Reporter {
    fn passed(&mut self, passage: Passage<'_>) {
        let last = passage.packet.last().copied().unwrap_or_default();
        let _ = self.0.send((last, passage.group, passage.direction, passage.in_ns, passage.out_ns));
    }
}

#[test]
fn an_observer_sees_each_packet_on_each_link() {
    if common::skip() {
        return;
    }
    let (reports_to, reports) = std::sync::mpsc::channel();
    let conditions = [delayed(3 * MS), delayed(7 * MS)];
    let network = Network::start_observed(settings(&conditions), Reporter(reports_to)).unwrap();
    let (own, other, peer) =
        (group_socket(&network, 0, false), group_socket(&network, 1, false), core_socket(&network, false));
    for (number, target) in [(1u8, &peer), (2, &other)] {
        let before = pubmark_protocol::clock::monotonic_ns();
        own.send_to(&[number], target.local_addr().unwrap()).unwrap();
        target.recv(&mut [0; 10]).unwrap();
        let next = || reports.recv_timeout(common::PATIENCE).unwrap();
        let (seen, group, direction, in_ns, out_ns) = next();
        assert_eq!((seen, group, direction), (number, 0, Direction::Up));
        assert!(in_ns >= before && out_ns >= in_ns + 3_000_000, "{before} {in_ns} {out_ns}");
        if number == 2 {
            let (seen, group, direction, second_ns, out_ns) = next();
            assert_eq!((seen, group, direction), (number, 1, Direction::Down));
            assert_eq!(second_ns, in_ns + 3_000_000, "the second link counts from the first one's due time");
            assert!(out_ns >= second_ns + 7_000_000);
        }
    }
    stop(network);
}
