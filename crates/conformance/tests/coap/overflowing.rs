//! Datagrams that arrive faster than the client reads them: the kernel drops them, and the client says how many.

use pubmark_conformance::peer::publisher;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, Goodbye};
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::Kind;

use crate::script::Harness;

/// 16 MB, many times what the buffer of a socket without subscriptions holds.
const DATAGRAMS: u64 = 2_000;
const BYTES: usize = 8_000;

/// The client's thread is this one, so nothing is read meanwhile. The bytes are no CoAP message (version 0): the client ignores
/// those that it reads.
fn overflow(harness: &Harness) {
    (0..DATAGRAMS).for_each(|_| harness.send_bytes(&[0; BYTES]));
}

#[test]
fn datagrams_that_find_the_buffer_full_are_reported_once() {
    let mut harness = Harness::new();
    let session = harness.open(publisher("full", "a", Qos::BestEffort));
    overflow(&harness);
    harness.peer.wait("the report", |record| record.overflowed > 0);
    harness.ignore(50);
    let reported = harness.peer.record.overflowed;
    assert_count!(reported < DATAGRAMS, "{reported}: some were read");
    harness.peer.leave(session, Goodbye::Cut);
    assert_count_eq!(harness.peer.record.overflowed, reported, "not again at the end");
}

#[test]
fn a_socket_that_is_closed_unread_reports_them_and_the_next_one_begins_at_none() {
    let mut harness = Harness::new();
    let session = harness.open(publisher("unread", "a", Qos::BestEffort));
    overflow(&harness);
    harness.peer.leave(session, Goodbye::Cut);
    let reported = harness.peer.record.overflowed;
    assert_count!(reported > 0 && reported < DATAGRAMS, "{reported}");
    harness.peer.clients.connect(session, &mut harness.peer.record);
    let ping = harness.receive();
    harness.send_empty(Kind::Reset, ping.id());
    harness.peer.wait("connected again", |record| record.connects(session).len() == 2);
    harness.peer.leave(session, Goodbye::Cut);
    assert_count_eq!(harness.peer.record.overflowed, reported);
    // The new socket's count begins at 0, so the old one's does not hide the next drops.
    harness.peer.clients.connect(session, &mut harness.peer.record);
    let ping = harness.receive();
    harness.send_empty(Kind::Reset, ping.id());
    harness.peer.wait("connected once more", |record| record.connects(session).len() == 3);
    overflow(&harness);
    harness.peer.leave(session, Goodbye::Cut);
    assert_count!(harness.peer.record.overflowed > reported, "{reported}");
}
