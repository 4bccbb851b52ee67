//! Sessions that get the port of one that has ended: the server still knows the message identifiers of that one, and takes a
//! message with one of them for a repetition (RFC 7252 §4.2).

use std::process::Command;

use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_broker::coap::CoapStatistics;
use pubmark_conformance::peer::{Peer, publisher};
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
/// One is the broker's.
const PORTS: &str = "20000 20002";

#[test]
fn a_session_with_the_port_of_another_repeats_none_of_its_identifiers() {
    // A thread of its own: it does not leave its network.
    let Some(statistics) = std::thread::spawn(publish_in_a_network_with_two_ports).join().unwrap() else { return };
    assert_count_eq!(statistics.repeated_requests, 0, "{statistics:?}");
    assert_count_eq!(statistics.published, SESSIONS * MESSAGES, "{statistics:?}");
}

/// `None` if this user may not create a network.
fn publish_in_a_network_with_two_ports() -> Option<CoapStatistics> {
    // SAFETY: no pointers are passed; the result is checked.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
        skip(format_args!("no network of its own: {}", std::io::Error::last_os_error()));
        return None;
    }
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", PORTS).unwrap();
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
    Some(broker.end())
}
