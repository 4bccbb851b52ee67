//! Subscriptions and messages, with peers that violate the protocol, flood and stall.

use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SendOutcome, SessionConfig, SessionId, Subscription};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_testing::assert_count_eq;
use pubmark_wire::zmtp::{self, Mechanism};

use crate::script::{Harness, Script, command, greeting, message, ready, written};

/// Bytes of a client's greeting and READY.
const OPENING_BYTES: usize = zmtp::GREETING_BYTES + 27;
/// The PING after subscriptions, and its PONG.
const PING: &[u8] = b"\x04\x11\x04PING\0\0subscribed";
const PONG: &[u8] = b"\x04\x0f\x04PONGsubscribed";

/// A session after its handshake.
fn up(minor: u8, config: SessionConfig) -> (Harness, SessionId, Script) {
    up_with_keep_alive(60, minor, config)
}

fn up_with_keep_alive(keep_alive_s: u16, minor: u8, config: SessionConfig) -> (Harness, SessionId, Script) {
    let mut harness = Harness::new(keep_alive_s);
    let kind = if config.subscriptions.is_empty() { "XSUB" } else { "XPUB" };
    let (id, mut script) = harness.accept(config);
    script.send_bytes(&[greeting(minor, Mechanism::Null), ready(kind)].concat());
    script.receive(&mut harness.peer, OPENING_BYTES);
    (harness, id, script)
}

fn sender() -> SessionConfig {
    publisher("says", "a/b", Qos::BestEffort)
}

fn asks(prefix: &str) -> Vec<u8> {
    written(|out| zmtp::encode_subscribe(prefix.as_bytes(), out))
}

fn subscribed(peer: &Peer, id: SessionId) -> usize {
    peer.record.count(|event| matches!(event, Event::Subscribed(of, _, Ok(Qos::BestEffort)) if *of == id))
}

/// Passes a message to the adapter that may have no subscriber.
fn send_bytes(peer: &mut Peer, id: SessionId) {
    assert_eq!(peer.offer(id, 24), SendOutcome::Accepted);
    peer.flush(id);
}

fn connected(harness: &mut Harness, id: SessionId) {
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
}

#[test]
fn a_subscriber_subscribes_to_prefixes_and_a_pong_confirms_them() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("a/+"), filter("b"), filter("a/+/c")];
    let (mut harness, id, mut script) = up(1, SessionConfig { subscriptions, ..session("asks") });
    script.expect(&mut harness.peer, &[&b"\x04\x0c\x09SUBSCRIBEa/\x04\x0b\x09SUBSCRIBEb"[..], PING].concat());
    script.send_bytes(b"\x04\x05\x04PONG");
    harness.peer.linger(20);
    assert_eq!(subscribed(&harness.peer, id), 0, "that answers another PING");
    script.send_bytes(PONG);
    harness.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    script.send_bytes(PONG);
    script.send_bytes(&message("b", 1));
    harness.peer.wait("it", |record| record.sequences(id) == [1]);
    assert_eq!(subscribed(&harness.peer, id), 3, "once is enough");
}

#[test]
fn with_a_peer_of_3_0_subscriptions_are_messages_and_nothing_is_pinged() {
    let (mut harness, id, mut script) = up_with_keep_alive(1, 0, subscriber("old", "a/#", Qos::BestEffort));
    script.expect(&mut harness.peer, b"\0\x02\x01a");
    harness.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    harness.peer.linger(2_500);
    assert_eq!(harness.peer.record.causes(id), [], "it need not know PING, so its silence says nothing");
}

#[test]
fn a_topic_that_only_shares_a_prefix_is_counted_and_not_delivered() {
    let (mut harness, id, mut script) = up(1, subscriber("alike", "a/+", Qos::BestEffort));
    let words = [message("a/b", 1), message("a/b/c", 2), message("ab", 3), message("a/", 4), message("a/x", 5)];
    script.send_bytes(&words.concat());
    harness.peer.wait("three", |record| record.sequences(id).len() == 3);
    assert_count_eq!(harness.peer.record.sequences(id), [1, 4, 5]);
    assert_count_eq!((harness.peer.record.discarded, harness.peer.record.foreign), (2, 0));
}

#[test]
fn messages_of_other_programs_are_foreign_and_a_command_may_stand_between_frames() {
    let (mut harness, id, mut script) = up(1, subscriber("shapes", "#", Qos::BestEffort));
    let ours = message("a", 1);
    let (topic, payload) = ours.split_at(3);
    script.send_bytes(b"\0\x05alone\x01\x01a\x01\x01b\0\x01c\x01\x01a\0\0");
    script.send_bytes(&[topic, b"\x04\x09\x04PING\0\0hi", payload].concat());
    harness.peer.wait("ours", |record| record.sequences(id) == [1]);
    assert_count_eq!(harness.peer.record.foreign, 3);
    let behind = written(|out| {
        zmtp::encode_subscribe(b"", out);
        out.extend_from_slice(PING);
    });
    script.expect(&mut harness.peer, &[&behind[..], b"\x04\x07\x04PONGhi"].concat());
}

#[test]
fn messages_arrive_wherever_they_are_cut() {
    let (mut harness, id, mut script) = up(1, subscriber("cut", "a", Qos::BestEffort));
    let payload = &message("a", 2)[5..];
    let long = [&b"\x03\0\0\0\0\0\0\0\x01a\x02\0\0\0\0\0\0\0\x18"[..], payload].concat();
    let words = [&message("a", 1)[..], b"\x04\x06\x04PONGx", &long].concat();
    for cut in 1..words.len() {
        script.send_bytes(&words[..cut]);
        harness.peer.linger(1);
        script.send_bytes(&words[cut..]);
        harness.peer.wait("both", |record| record.sequences(id).len() == 2 * cut);
    }
    assert_count_eq!((harness.peer.record.foreign, harness.peer.record.discarded), (0, 0));
}

#[test]
fn a_message_cut_off_with_its_connection_does_not_reach_into_the_next() {
    let (mut harness, id, mut script) = up(1, subscriber("again", "a", Qos::BestEffort));
    script.send_bytes(b"\x01\x01a");
    harness.peer.linger(5);
    harness.peer.leave(id, Goodbye::Cut);
    let mut script = harness.accept_again(id);
    script.send_bytes(&[greeting(1, Mechanism::Null), ready("PUB"), message("a", 1)].concat());
    harness.peer.wait("it", |record| record.sequences(id) == [1]);
}

#[test]
fn a_publisher_sends_subscribed_messages_and_counts_the_others() {
    let (mut harness, id, mut script) = up(1, sender());
    script.send_bytes(&asks("x"));
    connected(&mut harness, id);
    send_bytes(&mut harness.peer, id);
    assert_count_eq!((harness.peer.record.written(), harness.peer.record.withheld), (1, 1));
    script.send_bytes(&asks("a"));
    script.send_bytes(&asks("a/b"));
    harness.peer.linger(5);
    harness.peer.send(id, 24);
    let received = script.receive(&mut harness.peer, 7 + 24);
    assert!(received.starts_with(b"\x01\x03a/b\0\x18"), "{}", received.escape_ascii());
    script.send_bytes(&command("CANCEL", b"a"));
    script.send_bytes(&command("JOIN", b"a group, which is none of its business"));
    harness.peer.linger(5);
    harness.peer.send(id, 300);
    let received = script.receive(&mut harness.peer, 14 + 300);
    assert!(received.starts_with(b"\x01\x03a/b\x02\0\0\0\0\0\0\x01\x2c"), "{}", received.escape_ascii());
    // As libzmq forwards subscriptions of its application: in the form of 3.0, whatever the version.
    script.send_bytes(b"\0\x04\0a/b");
    harness.peer.linger(5);
    send_bytes(&mut harness.peer, id);
    assert_count_eq!((harness.peer.record.written(), harness.peer.record.withheld), (4, 2));
    script.send_bytes(b"\0\x01\x01");
    harness.peer.linger(5);
    harness.peer.send(id, 24);
    script.receive(&mut harness.peer, 7 + 24);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_publisher_is_connected_with_the_first_subscription_or_without_one_after_a_while() {
    let (mut harness, id, mut script) = up(1, sender());
    harness.peer.linger(20);
    assert_eq!((harness.peer.record.connects(id).len(), harness.peer.offer(id, 24)), (0, SendOutcome::WouldBlock));
    script.send_bytes(b"\0\x02\x01a");
    connected(&mut harness, id);
    assert_count_eq!(harness.peer.record.count(|event| *event == Event::Writable(id)), 1);
    // A new connection: subscriptions of the earlier one are no longer valid.
    harness.peer.leave(id, Goodbye::Graceful);
    let mut script = harness.accept_again(id);
    script.send_bytes(&[greeting(1, Mechanism::Null), ready("SUB")].concat());
    harness.peer.wait("connected", |record| record.connects(id).len() == 2);
    send_bytes(&mut harness.peer, id);
    assert_count_eq!(harness.peer.record.withheld, 1);
    // The next connection starts its own wait.
    harness.peer.leave(id, Goodbye::Cut);
    let (mut harness, id, _script) = up(1, sender());
    harness.peer.leave(id, Goodbye::Cut);
    let mut script = harness.accept_again(id);
    harness.peer.linger(500);
    assert_eq!(harness.peer.record.connects(id), [], "it has not even greeted");
    script.send_bytes(&[greeting(1, Mechanism::Null), ready("SUB"), asks("")].concat());
    connected(&mut harness, id);
}

#[test]
fn subscribed_and_withheld_messages_stay_in_order() {
    let mut config = sender();
    config
        .publications
        .push(pubmark_protocol::clients::Publication { topic: "b".into(), ..config.publications[0].clone() });
    let (mut harness, id, mut script) = up(1, config);
    script.send_bytes(&asks("b"));
    connected(&mut harness, id);
    for publication in [0, 1, 0, 0, 1, 0] {
        assert_eq!(harness.peer.offer_to(id, publication, 24), SendOutcome::Accepted);
    }
    harness.peer.flush(id);
    let sequences = harness.peer.record.all(|event| match event {
        Event::Written(_, token, start_ns, end_ns) => Some((token.sequence, start_ns <= end_ns && *start_ns > 0)),
        _ => None,
    });
    assert_count_eq!(sequences, (1..=6).map(|sequence| (sequence, true)).collect::<Vec<_>>());
    assert_count_eq!(harness.peer.record.withheld, 4);
    script.receive(&mut harness.peer, 2 * (3 + 2 + 24));
}

#[test]
fn a_peer_that_stops_reading_is_back_pressure_and_nothing_is_dropped() {
    let (mut harness, id, mut script) = up(1, sender());
    script.send_bytes(&asks(""));
    connected(&mut harness, id);
    let mut sent = 0;
    while harness.peer.offer(id, 50_000) == SendOutcome::Accepted {
        harness.peer.flush(id);
        sent += 1;
        assert!(sent < 10_000, "it takes what nobody reads");
    }
    assert!(harness.peer.record.written() < sent);
    script.receive(&mut harness.peer, sent * (5 + 9 + 50_000));
    harness.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == 1);
    assert_count_eq!((harness.peer.record.written(), harness.peer.record.withheld), (sent, 0));
}

#[test]
fn a_peer_that_is_silent_is_noticed_and_one_that_pings_is_answered() {
    let (mut harness, id, mut script) = up_with_keep_alive(1, 1, subscriber("silent", "a", Qos::BestEffort));
    script.expect(&mut harness.peer, &[b"\x04\x0b\x09SUBSCRIBEa", PING].concat());
    script.send_bytes(&[PONG, b"\x04\x0c\x04PING\0\x0ahello"].concat());
    script.expect(&mut harness.peer, b"\x04\x0a\x04PONGhello");
    script.expect(&mut harness.peer, b"\x04\x07\x04PING\0\0");
    assert_eq!(harness.cause(id), Cause::Silent);
}

#[test]
fn a_flood_of_pings_that_does_not_read_its_answers_is_ended() {
    let (mut harness, id, mut script) = up(1, subscriber("flood", "a", Qos::BestEffort));
    let pings = b"\x04\x17\x04PING\x00\x000123456789abcdef".repeat(100);
    let reason = script.send_repeatedly(&mut harness.peer, &pings, 100_000);
    assert!(reason < 100_000);
    let cause = harness.cause(id);
    assert!(matches!(&cause, Cause::Dropped(what) if what.contains("does not read our answers")), "{cause:?}");
}

#[test]
fn subscriptions_without_end_cost_a_publisher_nothing() {
    let (mut harness, id, mut script) = up(1, sender());
    let flood: Vec<u8> = (0..1_000).flat_map(|number| asks(&format!("a/{number}"))).collect();
    let before = harness.peer.clients.unsent_bytes();
    assert_eq!(script.send_repeatedly(&mut harness.peer, &flood, 200), 200);
    script.send_bytes(&[&asks("a/b")[..], b"\x04\x07\x04PING\0\0"].concat());
    script.expect(&mut harness.peer, b"\x04\x05\x04PONG");
    harness.peer.send(id, 24);
    script.receive(&mut harness.peer, 7 + 24);
    assert_eq!((harness.peer.record.causes(id), harness.peer.clients.unsent_bytes()), (vec![], before));
}

#[test]
fn unexpected_packets_end_the_connection() {
    let huge = [&[2][..], &(9u64 << 20).to_be_bytes()].concat();
    let cases: [(&[u8], &str); 9] = [
        (&huge, "exceeds the limit"),
        (&[&[3][..], &u64::MAX.to_be_bytes()].concat(), "exceeds the limit"),
        (b"\x05\x01a", "flags 0x05"),
        (b"\x10", "flags 0x10"),
        (&greeting(1, Mechanism::Null), "a second greeting"),
        (&ready("XPUB"), "READY out of its turn"),
        (&command("SUBSCRIBE", b"a"), "SUBSCRIBE out of its turn"),
        (&command("PING", b"\0"), "PING with data that are none"),
        (b"\x04\0", "without a name"),
    ];
    for (words, expected) in cases {
        let (mut harness, id, mut script) = up(1, subscriber("wrong", "a", Qos::BestEffort));
        script.send_bytes(words);
        let cause = harness.cause(id);
        assert!(matches!(&cause, Cause::Protocol(what) if what.contains(expected)), "{expected}: {cause:?}");
    }
    let (mut harness, id, mut script) = up(1, sender());
    script.send_bytes(&command("ERROR", b"\x04busy"));
    assert_eq!(harness.cause(id), Cause::Server { reason: Reason::words("ERROR busy"), too_large: false });
}
