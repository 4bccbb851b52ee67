//! JetStream.

use std::time::Duration;

use pubmark_adapters::jetstream::JetStreamClients;
use pubmark_conformance::peer::{RUN, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SessionConfig, SessionId, Subscription};
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, Script};

const INFO: &[u8] = b"INFO {\"server_id\":\"x\",\"max_payload\":1000,\"headers\":true}\r\n";

/// A response to the request whose last reply subject is found in `reason`.
fn answer(reason: &str, kind: &str, json: &str) -> String {
    let reply = reason.split_whitespace().rfind(|word| word.contains(&format!(".{kind}."))).unwrap();
    format!("MSG {reply} 1 {}\r\n{json}\r\n", json.len())
}

/// A session that has requested its streams, and the bytes that it sent.
pub fn requested_streams(config: SessionConfig) -> (Harness<JetStreamClients>, SessionId, Script, String) {
    let mut harness = Harness::new(false);
    let (id, mut script) = harness.accept(config);
    script.send_bytes(INFO);
    script.expect(&mut harness.peer, b"PING\r\n");
    script.send_bytes(b"PONG\r\n");
    let reason = script.expect(&mut harness.peer, b"}\r\n");
    (harness, id, script, reason)
}

/// An open session.
pub fn opened(config: SessionConfig) -> (Harness<JetStreamClients>, SessionId, Script) {
    let (mut harness, id, mut script, reason) = requested_streams(config);
    script.send_bytes(answer(&reason, "s", "{\"created\":\"2026-01-01T00:00:00Z\"}").as_bytes());
    harness.peer.wait("connected", |record| !record.connects(id).is_empty());
    (harness, id, script)
}

#[test]
fn a_stream_that_is_refused_is_a_session_that_is_refused() {
    let (mut harness, id, mut script, reason) = requested_streams(publisher("no-stream", "level/a", Qos::AtLeastOnce));
    assert!(reason.contains("$JS.API.STREAM.CREATE.PUBMARK_level") && reason.contains("\"level.>\""), "{reason}");
    let refusal = "{\"error\":{\"code\":400,\"err_code\":10065,\"description\":\"subjects overlap\"}}";
    script.send_bytes(answer(&reason, "s", refusal).as_bytes());
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Refused(reason)] if reason.text.contains("subjects overlap")), "{causes:?}");
}

#[test]
fn streams_are_in_files_unless_the_endpoint_says_otherwise() {
    for (settings, storage) in [(None, "file"), (Some("?storage=file"), "file"), (Some("?storage=memory"), "memory")] {
        let mut harness = Harness::<JetStreamClients>::with_settings(false, settings);
        let (_, mut script) = harness.accept(publisher("stores", "level/a", Qos::AtLeastOnce));
        script.send_bytes(INFO);
        script.expect(&mut harness.peer, b"PING\r\n");
        script.send_bytes(b"PONG\r\n");
        let request = script.expect(&mut harness.peer, b"}\r\n");
        assert!(request.contains(&format!("\"storage\":\"{storage}\"")), "{settings:?}: {request}");
    }
}

#[test]
fn a_server_without_jetstream_is_reported() {
    let (mut harness, id, mut script, reason) = requested_streams(publisher("off", "level/a", Qos::AtLeastOnce));
    let reply = reason.split_whitespace().find(|word| word.contains(".s.")).unwrap();
    script.send_bytes(format!("HMSG {reply} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n").as_bytes());
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(
        matches!(&causes[..], [Cause::Refused(reason)] if reason.text.contains("JetStream is disabled")),
        "{causes:?}"
    );
}

#[test]
fn a_consumer_that_is_refused_is_a_subscription_that_is_refused() {
    let (mut harness, id, mut script) = opened(subscriber("no-consumer", "level/#", Qos::AtLeastOnce));
    let reason = script.expect(&mut harness.peer, b"}}\r\n");
    assert!(reason.contains("\"filter_subjects\":[\"level\",\"level.>\"]"), "{reason}");
    let refusal = "{\"error\":{\"code\":400,\"err_code\":10026,\"description\":\"maximum consumers limit reached\"}}";
    script.send_bytes(answer(&reason, "c", refusal).as_bytes());
    harness.peer.wait("answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    assert_count_eq!(
        harness.peer.record.count(|event| matches!(event, Event::Subscribed(of, 0, Err(_)) if *of == id)),
        1
    );
}

/// A persistent subscriber that has requested the deletion of its consumer, and that request.
fn deleting() -> (Harness<JetStreamClients>, SessionId, Script, String) {
    let config = SessionConfig { persistent: true, ..subscriber("keeps", "level/a", Qos::AtLeastOnce) };
    let (mut harness, id, mut script, request) = requested_streams(config);
    script.send_bytes(answer(&request, "s", "{\"created\":\"2026-01-01T00:00:00Z\"}").as_bytes());
    let request = script.expect(&mut harness.peer, b" 0\r\n\r\n");
    assert!(request.contains("$JS.API.CONSUMER.DELETE.PUBMARK_level.keeps-0 "), "{request}");
    assert!(harness.peer.record.connects(id).is_empty());
    (harness, id, script, request)
}

#[test]
fn consumers_of_an_earlier_run_are_deleted_before_the_first_opening_only() {
    let not_found = "{\"error\":{\"code\":404,\"err_code\":10014,\"description\":\"consumer not found\"}}";
    for deleted in ["{\"success\":true}", not_found] {
        let (mut harness, id, mut script, request) = deleting();
        script.send_bytes(answer(&request, "x", deleted).as_bytes());
        let request = script.expect(&mut harness.peer, b"}}\r\n");
        assert!(request.contains("$JS.API.CONSUMER.DURABLE.CREATE.PUBMARK_level.keeps-0 "), "{request}");
        assert!(!harness.peer.record.connects(id)[0].session_present);
        script.send_bytes(answer(&request, "c", "{\"name\":\"keeps-0\"}").as_bytes());
        script.expect(&mut harness.peer, b" 3\r\n");
        assert_eq!(grants(&harness, id), [Ok(Qos::AtLeastOnce)]);
        drop(script);
        harness.peer.wait("closed", |record| record.causes(id).len() == 1);
        let mut script = harness.accept_again(id);
        script.send_bytes(INFO);
        script.expect(&mut harness.peer, b"PING\r\n");
        script.send_bytes(b"PONG\r\n");
        let request = script.expect(&mut harness.peer, b"}\r\n");
        script.send_bytes(answer(&request, "s", "{\"created\":\"2026-01-01T00:00:00Z\"}").as_bytes());
        let request = script.expect(&mut harness.peer, b" 0\r\n\r\n");
        assert!(request.contains("$JS.API.CONSUMER.INFO.PUBMARK_level.keeps-0 "), "{request}");
        script.send_bytes(answer(&request, "i", "{\"name\":\"keeps-0\"}").as_bytes());
        harness.peer.wait("connected", |record| record.connects(id).len() == 2);
        assert!(harness.peer.record.connects(id)[1].session_present);
    }
}

#[test]
fn a_consumer_that_cannot_be_deleted_is_a_session_that_is_refused() {
    let (mut harness, id, mut script, request) = deleting();
    let refusal = "{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"temporarily unavailable\"}}";
    script.send_bytes(answer(&request, "x", refusal).as_bytes());
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Refused(reason)] if reason.text.contains("unavailable")), "{causes:?}");
}

/// A session whose consumer was made with the name `c1`, and the subscription to its end.
pub fn consuming(qos: Qos) -> (Harness<JetStreamClients>, SessionId, Script) {
    let (mut harness, id, mut script) = opened(subscriber("consumes", "level/a", qos));
    let reason = script.expect(&mut harness.peer, b"}}\r\n");
    script.send_bytes(answer(&reason, "c", "{\"name\":\"c1\"}").as_bytes());
    let watch = "SUB $JS.EVENT.ADVISORY.CONSUMER.DELETED.PUBMARK_level.c1 3\r\n";
    assert_eq!(script.expect(&mut harness.peer, b" 3\r\n"), watch);
    (harness, id, script)
}

/// How the system responded to the session's only subscription.
pub fn grants(harness: &Harness<JetStreamClients>, id: SessionId) -> Vec<Result<Qos, String>> {
    harness.peer.record.all(|event| match event {
        Event::Subscribed(of, 0, granted) if *of == id => Some(granted.clone().map_err(|reason| reason.text.into())),
        _ => None,
    })
}

#[test]
fn a_consumer_that_is_deleted_in_the_run_is_a_subscription_that_is_revoked() {
    let advisory = "MSG $JS.EVENT.ADVISORY.CONSUMER.DELETED.PUBMARK_level.c1 3 2\r\n{}\r\n";
    let status = "HMSG level.a 2 33 33\r\nNATS/1.0 409 Consumer Deleted\r\n\r\n\r\n";
    for (words, reason) in [(advisory, "consumer deleted"), (status, "409 Consumer Deleted")] {
        let (mut harness, id, mut script) = consuming(Qos::AtLeastOnce);
        script.send_bytes(words.as_bytes());
        // The same once more changes nothing, and neither does a heartbeat.
        script.send_bytes(advisory.as_bytes());
        script.send_bytes(b"HMSG level.a 2 31 31\r\nNATS/1.0 100 Idle Heartbeat\r\n\r\n\r\nPING\r\n");
        script.expect(&mut harness.peer, b"PONG\r\n");
        assert_eq!(grants(&harness, id), [Ok(Qos::AtLeastOnce), Err(reason.to_owned())]);
        assert_eq!(harness.peer.record.causes(id), []);
    }
}

#[test]
fn an_acknowledgement_that_no_consumer_takes_is_not_confirmed_and_revokes_nothing() {
    let (mut harness, id, mut script) = consuming(Qos::ExactlyOnce);
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    let message = [&b"MSG level.a 2 $JS.ACK.S.C.1.42.1.1700000000.0 24\r\n"[..], &payload, b"\r\n"].concat();
    script.send_bytes(&message);
    let reason = script.expect(&mut harness.peer, b"+ACK\r\n");
    let confirmed = reason.split_whitespace().find(|word| word.contains(".k.")).unwrap();
    script.send_bytes(format!("HMSG {confirmed} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n").as_bytes());
    script.send_bytes(&message);
    script.send_bytes(b"PING\r\n");
    script.expect(&mut harness.peer, b"PONG\r\n");
    assert_eq!(grants(&harness, id), [Ok(Qos::ExactlyOnce)]);
    assert_count_eq!(harness.peer.record.sequences(id).len(), 1, "the second copy is recognised");
    script.send_bytes(format!("MSG {confirmed} 1 0\r\n\r\n").as_bytes());
    script.send_bytes(&message);
    harness.peer.wait("the number again, of a new stream", |record| record.sequences(id).len() == 2);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_server_that_forbids_the_report_of_a_deleted_consumer_ends_nothing_and_it_is_reported_once() {
    let (mut harness, id, mut script) = consuming(Qos::AtLeastOnce);
    let subject = "$JS.EVENT.ADVISORY.CONSUMER.DELETED.PUBMARK_level.c1";
    let refusal = format!("-ERR 'Permissions Violation for Subscription to \"{subject}\"'\r\n");
    script.send_bytes(format!("{refusal}{refusal}PING\r\n").as_bytes());
    script.expect(&mut harness.peer, b"PONG\r\n");
    assert_eq!(grants(&harness, id), [Ok(Qos::AtLeastOnce)]);
    assert_eq!(harness.peer.record.causes(id), []);
    assert_eq!(harness.peer.record.not_permitted, ["reports of deleted consumers"]);
}

#[test]
fn a_slow_subscriber_asks_for_no_more_than_it_begins_in_time() {
    for (processing_ms, filters, ack_wait_s, most) in
        [(0, 1, 5, 65_536), (5, 1, 5, 500), (5, 2, 5, 250), (3_000, 1, 6, 1), (1_000, 4, 8, 1)]
    {
        let subscription = |number| Subscription { filter: format!("level/{number}").into(), qos: Qos::AtLeastOnce };
        let mut config = SessionConfig { subscriptions: (0..filters).map(subscription).collect(), ..session("slow") };
        config.options.processing = Duration::from_millis(processing_ms);
        let (mut harness, _, mut script) = opened(config);
        let requests = script.expect(&mut harness.peer, b"}}\r\n");
        let window = format!("\"ack_wait\":{ack_wait_s}000000000,\"max_ack_pending\":{most}}}}}");
        assert_count_eq!(requests.matches(&window).count(), filters, "{processing_ms} ms: {requests}");
    }
}

#[test]
fn a_server_that_sends_messages_without_end_and_reads_no_acknowledgement_is_left() {
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let (mut harness, id, mut script) = consuming(qos);
        let message = b"MSG level.a 2 $JS.ACK.S.C.1.42.1.1700000000.0 1\r\nx\r\n";
        let cause = script.repeat_unread(&mut harness.peer, id, message);
        assert_eq!(cause, Cause::Dropped("ended by us: it does not read our answers".to_owned()), "{qos:?}");
    }
}

#[test]
fn a_message_is_settled_only_by_its_own_response() {
    let (mut harness, id, mut script) = opened(publisher("acks", "level/a", Qos::AtLeastOnce));
    for _ in 0..2 {
        harness.peer.send(id, 24);
    }
    let reason = script.expect(&mut harness.peer, b"\r\n");
    let replies: Vec<&str> = reason.split_whitespace().filter(|word| word.contains(".p.")).collect();
    assert_eq!(replies.len(), 2, "{reason}");
    let full = "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages exceeded\"}}";
    script.send_bytes(format!("MSG {} 1 {}\r\n{full}\r\n", replies[1], full.len()).as_bytes());
    script.send_bytes(format!("MSG {} 1 9\r\n{{\"seq\":1}}\r\n", replies[0]).as_bytes());
    harness.peer.wait("both", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 2);
    let outcomes = harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.is_ok())),
        _ => None,
    });
    assert_eq!(outcomes, [(2, false), (1, true)]);
    // A copy of it settles nothing.
    script.send_bytes(format!("MSG {} 1 9\r\n{{\"seq\":1}}\r\n", replies[0]).as_bytes());
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    assert!(matches!(harness.peer.record.causes(id)[..], [Cause::Protocol(_)]));
}

#[test]
fn a_response_to_an_earlier_connection_is_ignored() {
    let (mut harness, id, mut script) = opened(publisher("late", "level/a", Qos::AtLeastOnce));
    harness.peer.send(id, 24);
    let reason = script.expect(&mut harness.peer, b"\r\n");
    let old = reason.split_whitespace().find(|word| word.contains(".p.")).unwrap().to_owned();
    harness.peer.leave(id, Goodbye::Cut);
    let mut script = harness.accept_again(id);
    script.send_bytes(INFO);
    script.expect(&mut harness.peer, b"PING\r\n");
    script.send_bytes(b"PONG\r\n");
    let reason = script.expect(&mut harness.peer, b"}\r\n");
    script.send_bytes(answer(&reason, "s", "{}").as_bytes());
    harness.peer.wait("connected", |record| record.connects(id).len() == 2);
    harness.peer.send(id, 24);
    script.send_bytes(format!("MSG {old} 1 9\r\n{{\"seq\":1}}\r\n").as_bytes());
    harness.peer.wait("closed", |record| record.causes(id).len() == 2);
    assert_count_eq!(harness.peer.record.acknowledged(), 0);
}

#[test]
fn exactly_once_a_second_copy_is_acknowledged_and_not_delivered() {
    let (mut harness, id, mut script) = opened(subscriber("twice", "level/a", Qos::ExactlyOnce));
    let reason = script.expect(&mut harness.peer, b"}}\r\n");
    script.send_bytes(answer(&reason, "c", "{}").as_bytes());
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    let message = |number: u32| {
        let front = format!("MSG level.a 2 $JS.ACK.S.C.1.{number}.1.1700000000.0 24\r\n");
        [front.as_bytes(), &payload, b"\r\n"].concat()
    };
    script.send_bytes(&message(42));
    script.send_bytes(&message(42));
    script.send_bytes(&message(43));
    harness.peer.wait("two", |record| record.sequences(id).len() == 2);
    harness.peer.linger(20);
    assert_count_eq!(harness.peer.record.sequences(id).len(), 2);
    let reason = script.expect(&mut harness.peer, b"+ACK\r\n");
    assert_count_eq!(reason.matches("+ACK").count(), 3, "{reason}");
    // Confirmed: the number may be used again (by a new stream).
    let confirmed = reason.split_whitespace().find(|word| word.ends_with(".42") && word.contains(".k.")).unwrap();
    script.send_bytes(format!("MSG {confirmed} 1 0\r\n\r\n").as_bytes());
    script.send_bytes(&message(42));
    harness.peer.wait("three", |record| record.sequences(id).len() == 3);
}

#[test]
fn packets_that_a_server_may_not_send_end_the_connection() {
    for wrong in ["MSG a 9 1\r\nx\r\n", "MSG a 0 1\r\nx\r\n", "MSG a 2 1\r\nx\r\n", "MSG _INBOX.x 1 2\r\n{}\r\n"] {
        let (mut harness, id, mut script) = opened(subscriber("wrong", "level/a", Qos::AtLeastOnce));
        script.expect(&mut harness.peer, b"}}\r\n");
        script.send_bytes(wrong.as_bytes());
        harness.peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(harness.peer.record.causes(id)[..], [Cause::Protocol(_)]), "{wrong}");
    }
    let early = Harness::<JetStreamClients>::new(false).end_after(session("early"), b"PONG\r\n");
    assert!(matches!(early, Cause::Protocol(_)), "{early:?}");
}
