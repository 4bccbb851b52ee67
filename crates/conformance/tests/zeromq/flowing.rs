//! Subscriptions and messages, with peers that lie, flood and stop.

use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SendOutcome, SessionConfig, SessionId, Subscription};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_testing::assert_count_eq;
use pubmark_wire::zmtp::{self, Mechanism};

use crate::script::{Meeting, Script, command, greeting, message, ready, written};

/// Bytes of a client's greeting and READY.
const OPENING_BYTES: usize = zmtp::GREETING_BYTES + 27;
/// The PING behind subscriptions, and what answers it.
const PING: &[u8] = b"\x04\x11\x04PING\0\0subscribed";
const PONG: &[u8] = b"\x04\x0f\x04PONGsubscribed";

/// A session whose handshake is over.
fn up(minor: u8, config: SessionConfig) -> (Meeting, SessionId, Script) {
    up_with_keep_alive(60, minor, config)
}

fn up_with_keep_alive(keep_alive_s: u16, minor: u8, config: SessionConfig) -> (Meeting, SessionId, Script) {
    let mut meeting = Meeting::new(keep_alive_s);
    let kind = if config.subscriptions.is_empty() { "XSUB" } else { "XPUB" };
    let (id, mut script) = meeting.accept(config);
    script.say(&[greeting(minor, Mechanism::Null), ready(kind)].concat());
    script.hear(&mut meeting.peer, OPENING_BYTES);
    (meeting, id, script)
}

fn says() -> SessionConfig {
    publisher("says", "a/b", Qos::BestEffort)
}

fn asks(prefix: &str) -> Vec<u8> {
    written(|out| zmtp::encode_subscribe(prefix.as_bytes(), out))
}

fn subscribed(peer: &Peer, id: SessionId) -> usize {
    peer.record.count(|event| matches!(event, Event::Subscribed(of, _, Ok(Qos::BestEffort)) if *of == id))
}

/// Hands over a message that nobody may want.
fn say(peer: &mut Peer, id: SessionId) {
    assert_eq!(peer.offer(id, 24), SendOutcome::Accepted);
    peer.flush(id);
}

fn connected(meeting: &mut Meeting, id: SessionId) {
    meeting.peer.wait("connected", |record| record.connects(id).len() == 1);
}

#[test]
fn a_subscriber_asks_for_prefixes_and_a_pong_says_that_they_were_read() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("a/+"), filter("b"), filter("a/+/c")];
    let (mut meeting, id, mut script) = up(1, SessionConfig { subscriptions, ..session("asks") });
    script.expect(&mut meeting.peer, &[&b"\x04\x0c\x09SUBSCRIBEa/\x04\x0b\x09SUBSCRIBEb"[..], PING].concat());
    script.say(b"\x04\x05\x04PONG");
    meeting.peer.linger(20);
    assert_eq!(subscribed(&meeting.peer, id), 0, "that answers another PING");
    script.say(PONG);
    meeting.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    script.say(PONG);
    script.say(&message("b", 1));
    meeting.peer.wait("it", |record| record.sequences(id) == [1]);
    assert_eq!(subscribed(&meeting.peer, id), 3, "once is enough");
}

#[test]
fn with_a_peer_of_3_0_subscriptions_are_messages_and_nothing_is_pinged() {
    let (mut meeting, id, mut script) = up_with_keep_alive(1, 0, subscriber("old", "a/#", Qos::BestEffort));
    script.expect(&mut meeting.peer, b"\0\x02\x01a");
    meeting.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    meeting.peer.linger(2_500);
    assert_eq!(meeting.peer.record.causes(id), [], "it need not know PING, so its silence says nothing");
}

#[test]
fn what_only_begins_alike_is_counted_and_not_delivered() {
    let (mut meeting, id, mut script) = up(1, subscriber("alike", "a/+", Qos::BestEffort));
    let words = [message("a/b", 1), message("a/b/c", 2), message("ab", 3), message("a/", 4), message("a/x", 5)];
    script.say(&words.concat());
    meeting.peer.wait("three", |record| record.sequences(id).len() == 3);
    assert_count_eq!(meeting.peer.record.sequences(id), [1, 4, 5]);
    assert_count_eq!((meeting.peer.record.passed_over, meeting.peer.record.foreign), (2, 0));
}

#[test]
fn messages_of_other_programs_are_foreign_and_a_command_may_stand_between_frames() {
    let (mut meeting, id, mut script) = up(1, subscriber("shapes", "#", Qos::BestEffort));
    let ours = message("a", 1);
    let (topic, payload) = ours.split_at(3);
    script.say(b"\0\x05alone\x01\x01a\x01\x01b\0\x01c\x01\x01a\0\0");
    script.say(&[topic, b"\x04\x09\x04PING\0\0hi", payload].concat());
    meeting.peer.wait("ours", |record| record.sequences(id) == [1]);
    assert_count_eq!(meeting.peer.record.foreign, 3);
    let behind = written(|out| {
        zmtp::encode_subscribe(b"", out);
        out.extend_from_slice(PING);
    });
    script.expect(&mut meeting.peer, &[&behind[..], b"\x04\x07\x04PONGhi"].concat());
}

#[test]
fn messages_arrive_wherever_they_are_cut() {
    let (mut meeting, id, mut script) = up(1, subscriber("cut", "a", Qos::BestEffort));
    let payload = &message("a", 2)[5..];
    let long = [&b"\x03\0\0\0\0\0\0\0\x01a\x02\0\0\0\0\0\0\0\x18"[..], payload].concat();
    let words = [&message("a", 1)[..], b"\x04\x06\x04PONGx", &long].concat();
    for cut in 1..words.len() {
        script.say(&words[..cut]);
        meeting.peer.linger(1);
        script.say(&words[cut..]);
        meeting.peer.wait("both", |record| record.sequences(id).len() == 2 * cut);
    }
    assert_count_eq!((meeting.peer.record.foreign, meeting.peer.record.passed_over), (0, 0));
}

#[test]
fn a_message_cut_off_with_its_connection_does_not_reach_into_the_next() {
    let (mut meeting, id, mut script) = up(1, subscriber("again", "a", Qos::BestEffort));
    script.say(b"\x01\x01a");
    meeting.peer.linger(5);
    meeting.peer.leave(id, Goodbye::Cut);
    let mut script = meeting.accept_again(id);
    script.say(&[greeting(1, Mechanism::Null), ready("PUB"), message("a", 1)].concat());
    meeting.peer.wait("it", |record| record.sequences(id) == [1]);
}

#[test]
fn a_publisher_sends_what_is_wanted_and_counts_what_is_not() {
    let (mut meeting, id, mut script) = up(1, says());
    script.say(&asks("x"));
    connected(&mut meeting, id);
    say(&mut meeting.peer, id);
    assert_count_eq!((meeting.peer.record.written(), meeting.peer.record.withheld), (1, 1));
    script.say(&asks("a"));
    script.say(&asks("a/b"));
    meeting.peer.linger(5);
    meeting.peer.send(id, 24);
    let heard = script.hear(&mut meeting.peer, 7 + 24);
    assert!(heard.starts_with(b"\x01\x03a/b\0\x18"), "{}", heard.escape_ascii());
    script.say(&command("CANCEL", b"a"));
    script.say(&command("JOIN", b"a group, which is none of its business"));
    meeting.peer.linger(5);
    meeting.peer.send(id, 300);
    let heard = script.hear(&mut meeting.peer, 14 + 300);
    assert!(heard.starts_with(b"\x01\x03a/b\x02\0\0\0\0\0\0\x01\x2c"), "{}", heard.escape_ascii());
    // As libzmq hands on what its application did: in the form of 3.0, whatever the version.
    script.say(b"\0\x04\0a/b");
    meeting.peer.linger(5);
    say(&mut meeting.peer, id);
    assert_count_eq!((meeting.peer.record.written(), meeting.peer.record.withheld), (4, 2));
    script.say(b"\0\x01\x01");
    meeting.peer.linger(5);
    meeting.peer.send(id, 24);
    script.hear(&mut meeting.peer, 7 + 24);
    assert_eq!(meeting.peer.record.causes(id), []);
}

#[test]
fn a_publisher_is_connected_with_the_first_subscription_or_without_one_after_a_while() {
    let (mut meeting, id, mut script) = up(1, says());
    meeting.peer.linger(20);
    assert_eq!((meeting.peer.record.connects(id).len(), meeting.peer.offer(id, 24)), (0, SendOutcome::WouldBlock));
    script.say(b"\0\x02\x01a");
    connected(&mut meeting, id);
    assert_eq!(meeting.peer.record.count(|event| *event == Event::Writable(id)), 1);
    // A new connection: what the earlier one wanted is not wanted any more.
    meeting.peer.leave(id, Goodbye::Graceful);
    let mut script = meeting.accept_again(id);
    script.say(&[greeting(1, Mechanism::Null), ready("SUB")].concat());
    meeting.peer.wait("connected", |record| record.connects(id).len() == 2);
    say(&mut meeting.peer, id);
    assert_count_eq!(meeting.peer.record.withheld, 1);
    // The time that the first connection waited is none of the next one's.
    meeting.peer.leave(id, Goodbye::Cut);
    let (mut meeting, id, _script) = up(1, says());
    meeting.peer.leave(id, Goodbye::Cut);
    let mut script = meeting.accept_again(id);
    meeting.peer.linger(500);
    assert_eq!(meeting.peer.record.connects(id), [], "it has not even greeted");
    script.say(&[greeting(1, Mechanism::Null), ready("SUB"), asks("")].concat());
    connected(&mut meeting, id);
}

#[test]
fn what_is_wanted_and_what_is_not_stays_in_order() {
    let mut config = says();
    config
        .publications
        .push(pubmark_protocol::clients::Publication { topic: "b".into(), ..config.publications[0].clone() });
    let (mut meeting, id, mut script) = up(1, config);
    script.say(&asks("b"));
    connected(&mut meeting, id);
    for publication in [0, 1, 0, 0, 1, 0] {
        assert_eq!(meeting.peer.offer_to(id, publication, 24), SendOutcome::Accepted);
    }
    meeting.peer.flush(id);
    let sequences = meeting.peer.record.all(|event| match event {
        Event::Written(_, token, start_ns, end_ns) => Some((token.sequence, start_ns <= end_ns && *start_ns > 0)),
        _ => None,
    });
    assert_count_eq!(sequences, (1..=6).map(|sequence| (sequence, true)).collect::<Vec<_>>());
    assert_count_eq!(meeting.peer.record.withheld, 4);
    script.hear(&mut meeting.peer, 2 * (3 + 2 + 24));
}

#[test]
fn a_peer_that_stops_reading_is_back_pressure_and_nothing_is_dropped() {
    let (mut meeting, id, mut script) = up(1, says());
    script.say(&asks(""));
    connected(&mut meeting, id);
    let mut sent = 0;
    while meeting.peer.offer(id, 50_000) == SendOutcome::Accepted {
        meeting.peer.flush(id);
        sent += 1;
        assert!(sent < 10_000, "it takes what nobody reads");
    }
    assert!(meeting.peer.record.written() < sent);
    script.hear(&mut meeting.peer, sent * (5 + 9 + 50_000));
    meeting.peer.wait("writable", |record| record.count(|event| *event == Event::Writable(id)) == 1);
    assert_count_eq!((meeting.peer.record.written(), meeting.peer.record.withheld), (sent, 0));
}

#[test]
fn a_peer_that_is_silent_is_noticed_and_one_that_pings_is_answered() {
    let (mut meeting, id, mut script) = up_with_keep_alive(1, 1, subscriber("silent", "a", Qos::BestEffort));
    script.expect(&mut meeting.peer, &[b"\x04\x0b\x09SUBSCRIBEa", PING].concat());
    script.say(&[PONG, b"\x04\x0c\x04PING\0\x0ahello"].concat());
    script.expect(&mut meeting.peer, b"\x04\x0a\x04PONGhello");
    script.expect(&mut meeting.peer, b"\x04\x07\x04PING\0\0");
    assert_eq!(meeting.cause(id), Cause::Silent);
}

#[test]
fn a_flood_of_pings_that_does_not_read_its_answers_is_ended() {
    let (mut meeting, id, mut script) = up(1, subscriber("flood", "a", Qos::BestEffort));
    let pings = b"\x04\x17\x04PING\x00\x000123456789abcdef".repeat(100);
    let reason = script.say_on(&mut meeting.peer, &pings, 100_000);
    assert!(reason < 100_000);
    let cause = meeting.cause(id);
    assert!(matches!(&cause, Cause::Protocol(what) if what.contains("PINGs before our answers")), "{cause:?}");
}

#[test]
fn subscriptions_without_end_cost_a_publisher_nothing() {
    let (mut meeting, id, mut script) = up(1, says());
    let flood: Vec<u8> = (0..1_000).flat_map(|number| asks(&format!("a/{number}"))).collect();
    let before = meeting.peer.clients.unsent_bytes();
    assert_eq!(script.say_on(&mut meeting.peer, &flood, 200), 200);
    script.say(&[&asks("a/b")[..], b"\x04\x07\x04PING\0\0"].concat());
    script.expect(&mut meeting.peer, b"\x04\x05\x04PONG");
    meeting.peer.send(id, 24);
    script.hear(&mut meeting.peer, 7 + 24);
    assert_eq!((meeting.peer.record.causes(id), meeting.peer.clients.unsent_bytes()), (vec![], before));
}

#[test]
fn what_may_not_come_ends_the_connection() {
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
        let (mut meeting, id, mut script) = up(1, subscriber("wrong", "a", Qos::BestEffort));
        script.say(words);
        let cause = meeting.cause(id);
        assert!(matches!(&cause, Cause::Protocol(what) if what.contains(expected)), "{expected}: {cause:?}");
    }
    let (mut meeting, id, mut script) = up(1, says());
    script.say(&command("ERROR", b"\x04busy"));
    assert_eq!(meeting.cause(id), Cause::Server { reason: Reason::words("ERROR busy"), too_large: false });
}
