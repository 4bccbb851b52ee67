//! Frames at the wrong stage.

use pubmark_conformance::peer::{publisher, session, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::events::Cause;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, answer, body, content_header, deliver, frame, message, method, payload, short};

/// The text of the protocol error with which a consumer's connection ends after these bytes.
fn ends_with(bytes: &[u8]) -> String {
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("hostile", "a", Qos::AtLeastOnce));
    script.send_bytes(bytes);
    let cause = harness.end_of(id);
    let Cause::Protocol(words) = cause else { panic!("{cause:?} after {}", bytes.escape_ascii()) };
    script.expect_end();
    words
}

#[test]
fn parts_of_messages_in_a_wrong_order_are_no_message() {
    let half = [deliver(1, 1), content_header(24), body(&payload(1, 24)[..10])].concat();
    for (bytes, words) in [
        (content_header(24), "belongs to no message"),
        (body(b"x"), "belongs to no message"),
        ([deliver(1, 1), body(b"x")].concat(), "belongs to no message"),
        ([deliver(1, 1), deliver(1, 2)].concat(), "basic.deliver in the middle of a message"),
        ([half.clone(), deliver(1, 2)].concat(), "in the middle of a message"),
        ([half.clone(), content_header(24)].concat(), "belongs to no message"),
        ([half.clone(), body(b"")].concat(), "14 B are missing"),
        ([half.clone(), body(&[0; 15])].concat(), "15 B of a body of which 14 B are missing"),
        ([deliver(1, 1), content_header(9 << 20)].concat(), "exceeds the limit"),
        ([deliver(1, 1), content_header(u64::MAX)].concat(), "exceeds the limit"),
        ([deliver(1, 1), frame(2, 1, &[0, 61, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0])].concat(), "content header"),
        ([deliver(1, 1), frame(2, 1, &[0, 60])].concat(), "content header"),
        (frame(3, 2, b"x"), "kind Body on channel 2"),
        (frame(3, 0, b"x"), "kind Body on channel 0"),
        (deliver(2, 1), "basic.deliver on channel 2"),
        (deliver(9, 1), "basic.deliver on channel 9"),
        (frame(8, 1, b""), "kind Heartbeat on channel 1"),
    ] {
        let reason = ends_with(&bytes);
        assert!(reason.contains(words), "{reason:?} for {}", bytes.escape_ascii());
    }
}

#[test]
fn frames_that_are_none_end_the_connection() {
    let mut wrong_end = message(1, 1);
    *wrong_end.last_mut().unwrap() = 0;
    for (bytes, words) in [
        (wrong_end, "ends with 0x00 in place of 0xce"),
        (b"\x03\x00\x01\xff\xff\xff\xff".to_vec(), "exceeds the limit"),
        (frame(3, 1, &vec![0; 131_072]), "131072 B were agreed on"),
        (b"\x04".to_vec(), "0x04"),
        (b"AMQP\x00\x00\x09\x01".to_vec(), "a protocol header"),
        (method(1, 60, 60, b"\x05ab"), "basic.deliver with a wrong consumer-tag"),
        (method(1, 90, 11, b""), "method 90.11"),
        (frame(1, 1, b"\x00"), "number"),
        (method(1, 50, 21, b"\x00"), "queue.bind-ok with 1 B behind its arguments"),
    ] {
        let reason = ends_with(&bytes);
        assert!(reason.contains(words), "{reason:?} for {}", bytes.escape_ascii());
    }
}

#[test]
fn unexpected_responses_end_the_connection() {
    let returned = [&[1, 56][..], &short("NO_ROUTE"), &short("amq.topic"), &short("a")].concat();
    for (bytes, words) in [
        (method(1, 50, 21, b""), "queue.bind-ok on channel 1 in an open session"),
        (method(1, 60, 11, b""), "basic.qos-ok"),
        (method(1, 20, 11, &[0; 4]), "channel.open-ok"),
        (method(1, 85, 11, b""), "confirm.select-ok"),
        (method(1, 60, 50, &returned), "basic.return"),
        (method(0, 10, 41, b"\x00"), "connection.open-ok"),
        (method(0, 50, 21, b""), "queue.bind-ok on channel 0"),
        (method(1, 10, 61, b""), "connection.unblocked on channel 1"),
        (answer(80, 1, false), "basic.ack on channel 2"),
    ] {
        let reason = ends_with(&bytes);
        assert!(reason.contains(words), "{reason:?} for {}", bytes.escape_ascii());
    }
}

#[test]
fn a_message_without_a_consumer_is_refused() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.log_in(subscriber("early", "a", Qos::BestEffort));
    script.open_plain(&mut harness.peer);
    script.send_bytes(&message(1, 1));
    assert!(matches!(harness.end_of(id), Cause::Protocol(words) if words.contains("a consumer that does not exist")));
    let (id, mut script) = harness.log_in(session("deaf"));
    script.open_plain(&mut harness.peer);
    script.send_bytes(&message(1, 1));
    assert!(matches!(harness.end_of(id), Cause::Protocol(_)));
}

#[test]
fn confirms_of_unsent_messages_end_the_connection() {
    for (number, tag, multiple) in
        [(80, 1, false), (120, 1, false), (80, 0, true), (80, 0, false), (80, u64::MAX, true)]
    {
        let mut harness = Harness::new();
        let (id, mut script) = harness.confirmed(publisher("none", "a", Qos::AtLeastOnce));
        script.send_bytes(&answer(number, tag, multiple));
        assert!(matches!(harness.end_of(id), Cause::Protocol(words) if words.contains("does not await it")));
    }
    // Twice.
    let mut harness = Harness::new();
    let (id, mut script) = harness.confirmed(publisher("twice", "a", Qos::AtLeastOnce));
    harness.peer.send(id, 16);
    script.expect_message(&mut harness.peer);
    script.send_bytes(&[answer(80, 1, false), answer(80, 1, false)].concat());
    assert!(matches!(harness.end_of(id), Cause::Protocol(_)));
    assert_count_eq!(harness.peer.record.acknowledged(), 1);
    // Submitted, but not written.
    let mut harness = Harness::new();
    let (id, mut script) = harness.confirmed(publisher("unwritten", "a", Qos::AtLeastOnce));
    assert_eq!(harness.peer.offer(id, 16), pubmark_protocol::clients::SendOutcome::Accepted);
    script.send_bytes(&answer(80, 1, false));
    assert!(matches!(harness.end_of(id), Cause::Protocol(_)));
}

/// Its subscriber begins with each message when the one before it is done, so that each has an acknowledgement of its own.
#[test]
fn a_server_that_sends_messages_without_end_and_reads_no_acknowledgement_is_left() {
    let mut harness = Harness::new();
    let (id, mut script) = harness.consuming(subscriber("unread", "a", Qos::AtLeastOnce));
    let message = [deliver(1, 1), content_header(0)].concat();
    let cause = script.repeat_unread(&mut harness.peer, id, &message);
    assert_eq!(cause, Cause::Dropped("ended by us: it does not read our answers".to_owned()));
}
