//! Subscriptions against a server with arbitrary notifications.

use std::time::Duration;

use pubmark_conformance::peer::{RUN, publisher, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Reason, Unread};
use pubmark_protocol::header;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, number};

use crate::script::{ClientMessage, Harness, response};

fn payload(sequence: u32, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    header::write(&mut out, bytes, RUN, 7, sequence, 1);
    let body: Vec<u8> = (0..bytes - out.len()).map(|index| (index % 251) as u8).collect();
    out.extend(body);
    out
}

/// A subscription that was granted; the request for it.
fn observed(qos: Qos) -> (Harness, SessionId, ClientMessage) {
    let mut harness = Harness::new();
    let id = harness.open(subscriber("hears", "a/+", qos));
    let request = harness.grant();
    harness.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    (harness, id, request)
}

fn notification(request: &ClientMessage, kind: Kind, message_id: u16, number: u8, payload: &[u8]) -> Vec<u8> {
    response(kind, Code::CONTENT, message_id, request.token(), &[(number::OBSERVE, &[number])], payload)
}

fn grants(harness: &Harness) -> Vec<Result<Qos, Reason>> {
    harness.peer.record.all(|event| match event {
        Event::Subscribed(_, _, granted) => Some(granted.clone()),
        _ => None,
    })
}

#[test]
fn a_subscription_is_requested_at_its_level_until_it_has_a_response() {
    for (qos, kind) in [(Qos::BestEffort, Kind::NonConfirmable), (Qos::AtLeastOnce, Kind::Confirmable)] {
        let mut harness = Harness::new();
        harness.open(subscriber("asks", "a/+", qos));
        let (first, second) = (harness.receive(), harness.receive());
        assert_eq!((first.message().kind, second.message().kind), (kind, kind));
        let same = first.id() == second.id();
        assert_eq!(same, kind == Kind::Confirmable, "a repetition of the message layer has the same identifier");
        let path: Vec<&[u8]> = first.message().options.all(number::URI_PATH).collect();
        assert_eq!(path, [&b"ps"[..], b"a", b"+"]);
        harness.grant();
        harness.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
        assert_eq!(grants(&harness), [Ok(qos)]);
    }
}

#[test]
fn a_refused_subscription_is_reported() {
    for (code, options, expected) in
        [(Code::NOT_FOUND, &[][..], "4.04 Not Found"), (Code::CONTENT, &[], "2.05 Content without observing")]
    {
        let mut harness = Harness::new();
        let id = harness.open(subscriber("refused", "a", Qos::AtLeastOnce));
        let request = harness.receive();
        harness.reply(&request, code, options, b"state");
        harness.peer.wait("answered", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
        let reason = grants(&harness).remove(0).unwrap_err().to_string();
        assert!(reason.starts_with(expected), "{reason}");
        assert_count_eq!((harness.peer.record.causes(id), harness.peer.record.arrived.len()), (vec![], 0));
    }
}

#[test]
fn older_notifications_and_copies_are_not_delivered() {
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    for (message_id, number) in [(10, 2), (10, 2), (11, 4), (12, 3), (13, 4), (14, 5)] {
        harness.send_bytes(&notification(&request, Kind::Confirmable, message_id, number, &payload(number.into(), 24)));
        assert!(harness.receive().is_empty(Kind::Acknowledgement, message_id), "acknowledged whatever it is");
    }
    assert_count_eq!(harness.peer.record.sequences(id), [2, 4, 5]);
    assert!(
        harness.peer.record.arrived.iter().all(|one| one.kernel_ns.is_none_or(|stamp| stamp <= one.at_ns + 50_000))
    );
}

/// The error is found by reading after the first acknowledgement, by sending the second one, or by sending a message.
#[test]
fn notifications_that_arrived_before_the_servers_socket_was_closed_are_delivered() {
    for messages in 0..3 {
        let mut harness = Harness::new();
        let publications = publisher("hears", "b", Qos::BestEffort).publications;
        let id = harness.open(SessionConfig { publications, ..subscriber("hears", "a/+", Qos::AtLeastOnce) });
        let request = harness.grant();
        harness.peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
        for number in 2..5_u8 {
            let payload = payload(number.into(), 24);
            harness.send_bytes(&notification(&request, Kind::Confirmable, number.into(), number, &payload));
        }
        harness.vanish();
        for _ in 0..messages {
            assert_eq!(harness.peer.offer(id, 24), SendOutcome::Accepted);
            harness.peer.flush(id);
        }
        harness.peer.wait("told", |record| record.causes(id).len() == 1);
        assert_count_eq!(harness.peer.record.sequences(id), [2, 3, 4], "after {messages} messages");
        let cause = &harness.peer.record.causes(id)[0];
        assert!(matches!(cause, Cause::Dropped(words) if words.contains("refused")), "{cause:?}");
    }
}

#[test]
fn a_lower_granted_level_is_reported_once() {
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    for number in 2..5 {
        let message_id = number.into();
        harness.send_bytes(&notification(
            &request,
            Kind::NonConfirmable,
            message_id,
            number,
            &payload(number.into(), 24),
        ));
    }
    harness.peer.wait("all", |record| record.sequences(id).len() == 3);
    assert_eq!(grants(&harness), [Ok(Qos::AtLeastOnce), Ok(Qos::BestEffort)]);
}

#[test]
fn garbage_and_cut_notifications_leave_the_session_as_it_is() {
    let (mut harness, id, request) = observed(Qos::BestEffort);
    let whole = notification(&request, Kind::NonConfirmable, 50, 9, &payload(9, 24));
    let payload_at = whole.len() - 24;
    // After the token it is a valid message with another meaning.
    for length in (0..payload_at).filter(|length| *length != 4 + request.token().len()) {
        harness.send_bytes(&whole[..length]);
    }
    harness.send_bytes(&[0x40, 0x45, 0, 9, 0xff]);
    assert!(harness.receive().is_empty(Kind::Reset, 9), "the sender of a confirmable message gets a Reset");
    harness.send_bytes(&[0x40, 1, 0, 8]);
    assert!(harness.receive().is_empty(Kind::Reset, 8), "we serve nobody");
    harness.send_bytes(&[0x40, 0, 0, 7]);
    assert!(harness.receive().is_empty(Kind::Reset, 7), "a ping is answered");
    harness.send_bytes(&notification(&request, Kind::NonConfirmable, 60, 20, &payload(20, 24)));
    harness.peer.wait("the next", |record| record.sequences(id) == [20]);
    assert_count_eq!(
        (harness.peer.record.causes(id), harness.peer.record.foreign),
        (vec![], 1),
        "one was cut before its payload"
    );
}

fn block(number: u32, more: bool) -> [u8; 1] {
    [Block { number, more, exponent: 6 }.value() as u8]
}

/// Notifies of the first block and responds to the request for the rest with these tags.
fn fetch(harness: &mut Harness, request: &ClientMessage, number: u8, tags: &[&[u8]]) {
    let body = payload(number.into(), 1_024 * tags.len() - 500);
    let options = [(number::ETAG, tags[0]), (number::OBSERVE, &[number][..]), (number::BLOCK2, &block(0, true)[..])];
    let first = response(Kind::Confirmable, Code::CONTENT, number.into(), request.token(), &options, &body[..1_024]);
    harness.send_bytes(&first);
    assert!(harness.receive().is_empty(Kind::Acknowledgement, number.into()));
    for (index, tag) in tags.iter().enumerate().skip(1) {
        let request = harness.receive();
        let wanted = request.message().options.get(number::BLOCK2).and_then(Block::read).unwrap();
        assert_eq!((wanted.number, request.message().options.get(number::OBSERVE)), (index as u32, None));
        let part = &body[index * 1_024..body.len().min((index + 1) * 1_024)];
        let value = block(index as u32, index + 1 < tags.len());
        harness.reply(&request, Code::CONTENT, &[(number::ETAG, tag), (number::BLOCK2, &value)], part);
        harness.peer.linger(5);
    }
}

#[test]
fn blocks_are_put_together_as_long_as_they_belong_together() {
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    fetch(&mut harness, &request, 2, &[b"x", b"x", b"x"]);
    harness.peer.wait("the first", |record| record.sequences(id) == [2]);
    assert_count!(harness.peer.record.arrived[0].intact && harness.peer.record.arrived[0].payload_bytes == 2_572);
    // The resource changed meanwhile: the remaining blocks belong to another representation.
    fetch(&mut harness, &request, 3, &[b"y", b"z"]);
    harness.peer.linger(50);
    assert!(harness.try_receive().is_none(), "it is not asked for again");
    fetch(&mut harness, &request, 4, &[b"", b""]);
    harness.peer.wait("the third", |record| record.sequences(id) == [2, 4]);
}

/// Each block waits for our request.
#[test]
fn a_late_read_of_a_block_counts_for_its_message_whatever_arrives_before_the_next_block() {
    const LATE: Duration = Duration::from_millis(40);
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    let body = payload(2, 2_572);
    let options = [(number::OBSERVE, &[2][..]), (number::BLOCK2, &block(0, true)[..])];
    let first = response(Kind::Confirmable, Code::CONTENT, 2, request.token(), &options, &body[..1_024]);
    harness.send_bytes(&first);
    std::thread::sleep(LATE);
    assert!(harness.receive().is_empty(Kind::Acknowledgement, 2));
    for (index, part) in (1..).zip([&body[1_024..2_048], &body[2_048..]]) {
        let request = harness.receive();
        harness.send_bytes(&[0x40, 0, 0, index as u8]);
        assert!(harness.receive().is_empty(Kind::Reset, index as u16), "a ping");
        harness.reply(&request, Code::CONTENT, &[(number::BLOCK2, &block(index, index < 2))], part);
    }
    harness.peer.wait("the message", |record| record.sequences(id) == [2]);
    let unread = &harness.peer.record.arrived[0].unread;
    assert!(Unread::all_between_ns(unread, 0, u64::MAX) > LATE.as_nanos() as u64 / 2, "{unread:?}");
}

#[test]
fn a_newer_notification_ends_the_fetch_of_an_older_one() {
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    let options = [(number::OBSERVE, &[2][..]), (number::BLOCK2, &block(0, true)[..])];
    let body = payload(2, 1_024);
    harness.send_bytes(&response(Kind::Confirmable, Code::CONTENT, 2, request.token(), &options, &body));
    harness.receive();
    let fetch = harness.receive();
    harness.send_bytes(&notification(&request, Kind::Confirmable, 3, 3, &payload(3, 24)));
    harness.peer.wait("the newer", |record| record.sequences(id) == [3]);
    harness.reply(&fetch, Code::CONTENT, &[(number::BLOCK2, &block(1, false))], b"rest");
    harness.ignore(100);
    assert_count_eq!((harness.peer.record.sequences(id), harness.peer.record.foreign), (vec![3], 0));
}

#[test]
fn a_subscription_that_the_server_ends_ends_the_session() {
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    harness.send_bytes(&response(Kind::Confirmable, Code::NOT_FOUND, 5, request.token(), &[], b""));
    assert!(harness.receive().is_empty(Kind::Acknowledgement, 5));
    let reason = Reason::words("subscription `a/+` ended: 4.04 Not Found");
    assert_eq!(harness.peer.record.causes(id), [Cause::Server { reason, too_large: false }]);
}

#[test]
fn a_session_that_disconnects_sends_a_disconnect() {
    let (mut harness, id, request) = observed(Qos::AtLeastOnce);
    harness.peer.leave(id, Goodbye::Graceful);
    let reason = harness.receive();
    let message = reason.message();
    assert_eq!((message.kind, message.token), (Kind::NonConfirmable, request.token()));
    assert_eq!(message.options.get(number::OBSERVE), Some(&[1][..]));
}
