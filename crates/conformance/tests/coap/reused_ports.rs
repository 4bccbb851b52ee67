//! Sessions that get the port of one that has ended. The server still knows the message identifiers of that one, and takes a
//! message with one of them for a repetition (RFC 7252 §4.2); and it may still notify it (RFC 7641 §4.5).

use std::process::Command;

use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_broker::coap::CoapStatistics;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Goodbye;
use pubmark_testing::{assert_count_eq, skip};
use pubmark_wire::coap::Times;

use crate::lossy::Running;
use crate::requests::endpoint;

/// Sessions, one after another, each with a port of two. With identifiers drawn at random, each pair of sessions at a port has
/// one identifier in common with a probability of 1.5 %, and there are 380 pairs.
const SESSIONS: u64 = 40;
const MESSAGES: u64 = 500;

#[test]
fn a_session_with_the_port_of_another_repeats_none_of_its_identifiers() {
    let Some(statistics) = in_a_network_with_three_ports(publish_from_two_ports) else { return };
    assert_count_eq!(statistics.repeated_requests, 0, "{statistics:?}");
    assert_count_eq!(statistics.published, SESSIONS * MESSAGES, "{statistics:?}");
}

fn publish_from_two_ports() -> CoapStatistics {
    let broker = Running::start(Times::STANDARD);
    let mut peer: Peer<CoapClients<Standard>> = Peer::open(endpoint(broker.address));
    for session in 0..SESSIONS {
        let sender = peer.join(publisher(&format!("sender-{session}"), "a", Qos::AtLeastOnce));
        for _ in 0..MESSAGES {
            peer.send(sender, 20);
        }
        peer.wait("acknowledged", |record| record.acknowledged() as u64 == MESSAGES);
        peer.leave(sender, Goodbye::Cut);
        peer.record.events.clear();
    }
    broker.end()
}

#[test]
fn a_subscriber_with_the_port_of_another_gets_nothing_of_its_subscription() {
    for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
        let Some((sequences, statistics)) = in_a_network_with_three_ports(move || subscribe_from_one_port(qos)) else {
            return;
        };
        assert_count_eq!(sequences, [2, 4], "{qos}: {statistics:?}");
        assert_count_eq!(statistics.observers_rejecting, 1, "{qos}: {statistics:?}");
    }
}

/// What the second subscriber gets: messages with even numbers are on its topic. The first one ended without a word.
fn subscribe_from_one_port(qos: Qos) -> (Vec<u32>, CoapStatistics) {
    let broker = Running::start(Times::STANDARD);
    let mut peer: Peer<CoapClients<Standard>> = Peer::open(endpoint(broker.address));
    let mut config = publisher("sender", "first", qos);
    config.publications.extend(publisher("sender", "second", qos).publications);
    let sender = peer.join(config);
    let first = peer.join(subscriber("first", "first", qos));
    peer.leave(first, Goodbye::Cut);
    let second = peer.join(subscriber("second", "second", qos));
    for publication in [0, 1, 0, 1] {
        peer.send_to(sender, publication, 100);
        peer.linger(20);
    }
    (peer.record.sequences(second), broker.end())
}

/// Does `work` where clients have two ports, as one is the broker's; `None` if this user may not create a network.
fn in_a_network_with_three_ports<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // A thread of its own: it does not leave its network.
    let thread = std::thread::spawn(|| {
        // SAFETY: no pointers are passed; the result is checked.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
            skip(format_args!("no network of its own: {error}"));
            return None;
        }
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "20000 20002").unwrap();
        Some(work())
    });
    thread.join().unwrap()
}
