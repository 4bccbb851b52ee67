//! JetStream: messages and requests that the server refuses, because the client has no permission or there is no stream.

use std::time::{Duration, Instant};

use pubmark_adapters::jetstream::JetStreamClients;
use pubmark_conformance::peer::{publisher, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};

use crate::jetstream::{consuming, grants, opened, requested_streams};
use crate::script::{Harness, Script};

/// The acknowledgement of a message to the subject that came with it.
fn stored(reply: &str) -> String {
    format!("MSG {reply} 1 9\r\n{{\"seq\":1}}\r\n")
}

/// Sends `count` messages and returns the subjects for their acknowledgements.
fn published(
    harness: &mut Harness<JetStreamClients>,
    id: SessionId,
    script: &mut Script,
    messages: usize,
) -> Vec<String> {
    for _ in 0..messages {
        harness.peer.send(id, 24);
    }
    let sent = script.expect(&mut harness.peer, b"\r\n");
    let replies: Vec<String> = sent.split_whitespace().filter(|word| word.contains(".p.")).map(str::to_owned).collect();
    assert_count_eq!(replies.len(), messages, "{sent}");
    replies
}

/// The server's words about a message to `level/a` that it does not pass on.
const FORBIDDEN: &str = "Permissions Violation for Publish to \"level.a\"";

/// The error with these words.
fn error(words: &str) -> String {
    format!("-ERR '{words}'\r\n")
}

/// Numbers of the messages that have an outcome, in its order, and the words of refusals.
fn outcomes(harness: &Harness<JetStreamClients>) -> Vec<(u32, Option<String>)> {
    harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => {
            Some((token.sequence, outcome.clone().err().map(|reason| reason.text.into_owned())))
        }
        _ => None,
    })
}

/// Waits until the client has handled all that was sent to it, and lives.
fn handled(harness: &mut Harness<JetStreamClients>, id: SessionId, script: &mut Script) {
    script.send_bytes(b"PING\r\n");
    script.expect(&mut harness.peer, b"PONG\r\n");
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_message_that_the_server_does_not_pass_on_is_refused_and_the_connection_stays() {
    let config = SessionConfig { in_flight_window: 2, ..publisher("forbidden", "level/a", Qos::AtLeastOnce) };
    let (mut harness, id, mut script) = opened(config);
    published(&mut harness, id, &mut script, 2);
    script.send_bytes(error(FORBIDDEN).repeat(2).as_bytes());
    handled(&mut harness, id, &mut script);
    let refused = |number: u32| (number, Some(FORBIDDEN.to_owned()));
    assert_count_eq!(outcomes(&harness), [refused(1), refused(2)]);
    // They are no longer in flight, so that others can be sent.
    let replies = published(&mut harness, id, &mut script, 2);
    script.send_bytes(format!("{}{}", error(FORBIDDEN), stored(&replies[1])).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_count_eq!(outcomes(&harness)[2..], [(4, None), refused(3)], "the fourth was permitted again");
    assert_count_eq!(harness.peer.record.not_permitted.len(), 0);
}

#[test]
fn messages_that_were_stored_before_the_right_was_taken_are_not_refused() {
    let (mut harness, id, mut script) = opened(publisher("revoked", "level/a", Qos::AtLeastOnce));
    let replies = published(&mut harness, id, &mut script, 4);
    script.send_bytes(error(FORBIDDEN).repeat(2).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_count_eq!(outcomes(&harness), [], "it can be any two of them");
    script.send_bytes(stored(&replies[0]).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_count_eq!(outcomes(&harness), [(1, None)]);
    script.send_bytes(stored(&replies[1]).as_bytes());
    handled(&mut harness, id, &mut script);
    let refused = |number: u32| (number, Some(FORBIDDEN.to_owned()));
    assert_count_eq!(outcomes(&harness)[1..], [(2, None), refused(3), refused(4)]);
}

#[test]
fn a_message_before_a_stored_one_was_refused() {
    let (mut harness, id, mut script) = opened(publisher("between", "level/a", Qos::AtLeastOnce));
    let replies = published(&mut harness, id, &mut script, 4);
    script.send_bytes(format!("{}{}", error(FORBIDDEN), stored(&replies[0])).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_count_eq!(outcomes(&harness), [(1, None)]);
    script.send_bytes(format!("{}{}", stored(&replies[2]), stored(&replies[3])).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_count_eq!(outcomes(&harness)[1..], [(3, None), (2, Some(FORBIDDEN.to_owned())), (4, None)]);
}

#[test]
fn a_full_window_is_refused_without_a_search_of_it_for_each_error() {
    const WINDOW: u16 = u16::MAX;
    // A search for each error takes several times as long.
    const LIMIT: Duration = Duration::from_secs(10);
    // Fewer than fill a socket.
    const AT_A_TIME: usize = 512;
    let config = SessionConfig { in_flight_window: WINDOW, ..publisher("full", "level/a", Qos::AtLeastOnce) };
    let (mut harness, id, mut script) = opened(config);
    let mut sent = 0;
    while sent < usize::from(WINDOW) {
        let is_accepted = harness.peer.offer(id, 24) == SendOutcome::Accepted;
        sent += usize::from(is_accepted);
        if !is_accepted || sent.is_multiple_of(AT_A_TIME) || sent == usize::from(WINDOW) {
            harness.peer.flush(id);
            handled(&mut harness, id, &mut script);
        }
    }
    let began = Instant::now();
    let mut left = usize::from(WINDOW);
    while left > 0 {
        let errors = left.min(AT_A_TIME);
        script.send_bytes(error(FORBIDDEN).repeat(errors).as_bytes());
        handled(&mut harness, id, &mut script);
        left -= errors;
    }
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    let numbers: Vec<u32> = outcomes(&harness).into_iter().map(|(number, _)| number).collect();
    assert_count!(numbers.iter().copied().eq(1..=u32::from(WINDOW)), "{} outcomes", numbers.len());
}

#[test]
fn a_message_without_acknowledgement_that_is_not_passed_on_leaves_the_connection() {
    let (mut harness, id, mut script) = opened(publisher("level-0", "level/a", Qos::BestEffort));
    harness.peer.send(id, 24);
    script.expect(&mut harness.peer, b"\r\n");
    script.send_bytes(error(FORBIDDEN).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_count_eq!(harness.peer.record.not_permitted, ["publishing to a subject"]);
    assert_count_eq!(outcomes(&harness), []);
}

#[test]
fn a_subscriber_that_may_not_acknowledge_is_told_and_its_connection_stays() {
    let (mut harness, id, mut script) = consuming(Qos::AtLeastOnce);
    let words = "Permissions Violation for Publish to \"$JS.ACK.S.C.1.42.1.1700000000.0\"";
    script.send_bytes(error(words).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_eq!(harness.peer.record.not_permitted, ["acknowledging messages"]);
    assert_eq!(grants(&harness, id), [Ok(Qos::AtLeastOnce)]);
}

#[test]
fn a_consumer_that_may_not_be_requested_is_a_subscription_that_is_refused() {
    let (mut harness, id, mut script) = opened(subscriber("no-right", "level/a", Qos::AtLeastOnce));
    script.expect(&mut harness.peer, b"}}\r\n");
    let words = "Permissions Violation for Publish to \"$JS.API.CONSUMER.CREATE.PUBMARK_level\"";
    script.send_bytes(error(words).as_bytes());
    handled(&mut harness, id, &mut script);
    assert_eq!(grants(&harness, id), [Err(words.to_owned())]);
}

#[test]
fn a_stream_that_may_not_be_requested_is_a_session_that_is_refused() {
    let (mut harness, id, mut script, _) = requested_streams(publisher("no-right", "level/a", Qos::AtLeastOnce));
    let words = "Permissions Violation for Publish to \"$JS.API.STREAM.CREATE.PUBMARK_level\"";
    script.send_bytes(error(words).as_bytes());
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Refused(reason)] if reason.text == words), "{causes:?}");
}

#[test]
fn a_message_that_no_stream_takes_is_refused_and_the_connection_stays() {
    let (mut harness, id, mut script) = opened(publisher("unstored", "level/a", Qos::AtLeastOnce));
    let replies = published(&mut harness, id, &mut script, 2);
    script.send_bytes(format!("HMSG {} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", replies[0]).as_bytes());
    script.send_bytes(stored(&replies[1]).as_bytes());
    handled(&mut harness, id, &mut script);
    let words = "503: no responders: no stream stores the subject, or JetStream is disabled";
    assert_count_eq!(outcomes(&harness), [(1, Some(words.to_owned())), (2, None)]);
}
