//! NATS.

use pubmark_adapters::nats::NatsClients;
use pubmark_conformance::peer::{RUN, credentials, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_model::secret::Secret;
use pubmark_protocol::clients::{SendOutcome, SessionConfig, SessionId, SessionOptions, Subscription};
use pubmark_protocol::events::{Cause, Reason, Token};
use pubmark_protocol::header;
use pubmark_protocol::nkey::NKey;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, Script};

const INFO: &[u8] = b"INFO {\"server_id\":\"x\",\"max_payload\":1000}\r\n";

/// An open session.
fn opened(config: SessionConfig) -> (Harness<NatsClients>, SessionId, Script) {
    let mut harness = Harness::new(false);
    let (id, mut script) = harness.accept(config);
    script.send_bytes(INFO);
    script.expect(&mut harness.peer, b"PING\r\n");
    script.send_bytes(b"PONG\r\n");
    harness.peer.wait("connected", |record| !record.connects(id).is_empty());
    (harness, id, script)
}

#[test]
fn packets_before_the_welcome_are_distinguished() {
    let end = |words: &[u8]| Harness::<NatsClients>::new(false).end_after(session("ends"), words);
    let with = |words: &str| [INFO, words.as_bytes()].concat();
    assert!(matches!(end(&with("-ERR 'Authorization Violation'\r\n")), Cause::NotAuthorized(_)));
    let full = end(&with("-ERR 'maximum connections exceeded'\r\n"));
    assert_eq!(full, Cause::Refused(Reason::words("maximum connections exceeded")));
    for wrong in ["HTTP/1.1 400 Bad Request\r\n", "INFO {}\r\n", "INFO nothing\r\n", "\x16\x03\x01"] {
        assert!(matches!(end(wrong.as_bytes()), Cause::Protocol(_)), "{wrong}");
    }
    assert!(matches!(end(&with("MSG a 1 0\r\n\r\n")), Cause::Protocol(_)), "a message before the welcome");
    assert!(matches!(end(&with("MSG a 1 99999999\r\n")), Cause::Protocol(_)), "larger than we take");
}

#[test]
fn tls_is_agreed_only_where_both_want_it_and_plaintext_cannot_be_injected() {
    let end = |tls, words: &str| Harness::<NatsClients>::new(tls).end_after(session("tls"), words.as_bytes());
    let none = end(true, "INFO {\"max_payload\":1}\r\n");
    assert_eq!(none, Cause::Tls("the server offers none".to_owned()));
    let required = "INFO {\"max_payload\":1,\"tls_required\":true}\r\n";
    assert!(matches!(end(false, required), Cause::Refused(reason) if reason.text.contains("TLS only")));
    let slipped_in = end(true, &format!("{required}PONG\r\n"));
    assert!(matches!(&slipped_in, Cause::Protocol(words) if words.contains("in the clear")), "{slipped_in:?}");
    let early = end(true, "PONG\r\n");
    assert!(matches!(&early, Cause::Protocol(words) if words.contains("before its welcome")), "{early:?}");
}

#[test]
fn a_later_info_of_the_server_gets_no_response() {
    let mut harness = Harness::<NatsClients>::new(false);
    let (id, mut script) = harness.accept(session("twice"));
    script.send_bytes(&INFO.repeat(2));
    let reason = script.expect(&mut harness.peer, b"PING\r\n");
    assert_count_eq!(reason.matches("CONNECT").count(), 1, "{reason}");
    script.send_bytes(b"PONG\r\nPING\r\n");
    assert_eq!(script.expect(&mut harness.peer, b"PONG\r\n"), "PONG\r\n");
    assert_eq!(harness.peer.record.connects(id).len(), 1);
}

/// The CONNECT of a session to a server that sends a nonce.
fn log_in(config: SessionConfig) -> String {
    let mut harness = Harness::<NatsClients>::new(false);
    let (_, mut script) = harness.accept(config);
    script.send_bytes(b"INFO {\"max_payload\":1000,\"nonce\":\"asked\"}\r\n");
    script.expect(&mut harness.peer, b"PING\r\n")
}

#[test]
fn an_nkey_signs_the_nonce_alone_or_beside_the_token_that_names_it() {
    // The seed in the documentation of NATS.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let key = NKey::of_seed(SEED).unwrap();
    let nkey = Some(Secret::new(SEED));
    let signature = format!("\"sig\":\"{}\"", key.sign("asked"));
    let public = format!("\"nkey\":\"{}\"", key.public());
    let has = |said: &str, words: [&str; 2], lacks: [&str; 2]| {
        assert!(
            words.iter().all(|word| said.contains(word)) && !lacks.iter().any(|word| said.contains(word)),
            "{said}"
        );
    };
    has(
        &log_in(SessionConfig { nkey: nkey.clone(), ..session("alone") }),
        [&public, &signature],
        ["jwt", "auth_token"],
    );
    let credentials = credentials("", "of.the.user");
    let named = log_in(SessionConfig { nkey: nkey.clone(), credentials: credentials.clone(), ..session("named") });
    has(&named, ["\"jwt\":\"of.the.user\"", &signature], ["nkey", "auth_token"]);
    let token = log_in(SessionConfig { credentials, ..session("token") });
    has(&token, ["\"auth_token\":\"of.the.user\""; 2], ["jwt", "sig"]);
    // A server that has no NKeys sends no nonce.
    let cause = Harness::<NatsClients>::new(false).end_after(SessionConfig { nkey, ..session("none") }, INFO);
    assert!(matches!(&cause, Cause::NotAuthorized(reason) if reason.text.contains("asks for no NKey")), "{cause:?}");
}

#[test]
fn a_refusal_that_names_no_subscription_ends_the_connection() {
    let (mut harness, id, mut script) = opened(subscriber("whose", "a", Qos::BestEffort));
    script.expect(&mut harness.peer, b"PING\r\n");
    script.send_bytes(b"-ERR 'Permissions Violation for Subscription to \"other\"'\r\nPONG\r\n");
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    assert!(matches!(&harness.peer.record.causes(id)[..], [Cause::Server { .. }]));
    assert_count_eq!(harness.peer.record.count(|event| matches!(event, Event::Subscribed(..))), 0);
}

#[test]
fn a_refused_subscription_leaves_the_rest() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("open/#"), filter("secret"), filter("also/+")];
    let (mut harness, id, mut script) = opened(SessionConfig { subscriptions, ..session("some") });
    let reason = script.expect(&mut harness.peer, b"PING\r\n");
    assert_eq!(reason, "SUB open 1\r\nSUB open.> 2\r\nSUB secret 3\r\nSUB also.* 4\r\nPING\r\n");
    script.send_bytes(b"-ERR 'Permissions Violation for Subscription to \"secret\"'\r\nPONG\r\n");
    harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    let replies = harness.peer.record.all(|event| match event {
        Event::Subscribed(of, index, granted) if *of == id => Some((*index, granted.is_ok())),
        _ => None,
    });
    assert_eq!(replies, [(0, true), (1, false), (2, true)]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn subscriptions_beyond_the_servers_limit_are_the_last_ones() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("open"), filter("two/#"), filter("secret"), filter("last")];
    let (mut harness, id, mut script) = opened(SessionConfig { subscriptions, ..session("many") });
    script.expect(&mut harness.peer, b"PING\r\n");
    // It takes two of the five subjects. The next is `two.>`, and `last` stands behind one that is forbidden anyway.
    script.send_bytes(b"-ERR 'maximum subscriptions exceeded'\r\n");
    script.send_bytes(b"-ERR 'Permissions Violation for Subscription to \"secret\"'\r\n");
    script.send_bytes(b"-ERR 'maximum subscriptions exceeded'\r\nPONG\r\n");
    harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 4);
    let replies = harness.peer.record.all(|event| match event {
        Event::Subscribed(of, index, granted) if *of == id => Some((*index, granted.is_ok())),
        _ => None,
    });
    assert_eq!(replies, [(0, true), (1, false), (2, false), (3, false)]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_message_that_the_server_does_not_pass_on_leaves_the_connection() {
    let (mut harness, id, mut script) = opened(publisher("forbidden", "a/b", Qos::BestEffort));
    for _ in 0..2 {
        harness.peer.send(id, 24);
        script.expect(&mut harness.peer, b"\r\n");
        script.send_bytes(b"-ERR 'Permissions Violation for Publish to \"a.b\"'\r\n");
    }
    script.send_bytes(b"PING\r\n");
    script.expect(&mut harness.peer, b"PONG\r\n");
    assert_count_eq!(harness.peer.record.not_permitted, ["publishing to a subject"; 2]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_subscription_that_is_revoked_in_the_run_is_reported_once_and_the_connection_stays() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("open/#"), filter("secret"), filter("3")];
    let (mut harness, id, mut script) = opened(SessionConfig { subscriptions, ..session("revoked") });
    script.expect(&mut harness.peer, b"PING\r\n");
    script.send_bytes(b"PONG\r\n");
    harness.peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    // Each with the number of its subscription, as after a change of the server's configuration.
    for revoked in ["\"secret\" (sid \"3\")", "\"open\" (sid \"1\")", "\"open.>\" (sid \"2\")"] {
        script.send_bytes(format!("-ERR 'Permissions Violation for Subscription to {revoked}'\r\n").as_bytes());
    }
    script.send_bytes(b"PING\r\n");
    script.expect(&mut harness.peer, b"PONG\r\n");
    let replies = harness.peer.record.all(|event| match event {
        Event::Subscribed(of, index, granted) if *of == id => Some((*index, granted.is_ok())),
        _ => None,
    });
    assert_eq!(replies, [(0, true), (1, true), (2, true), (1, false), (0, false)]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_message_arrives_once_wherever_it_is_cut() {
    let (mut harness, id, mut script) = opened(subscriber("cut", "a", Qos::BestEffort));
    script.expect(&mut harness.peer, b"PING\r\n");
    script.send_bytes(b"PONG\r\n");
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    let message =
        [&b"HMSG a 1 12 36\r\nNATS/1.0\r\n\r\n"[..], &payload, b"\r\nMSG a 1 24\r\n", &payload, b"\r\n"].concat();
    script.send_split(&mut harness.peer, id, &message, 2);
    assert_count_eq!(harness.peer.record.foreign, 0);
}

#[test]
fn pings_are_answered_and_errors_end_the_connection_with_their_words() {
    let (mut harness, id, mut script) = opened(publisher("ping", "a/b", Qos::BestEffort));
    script.send_bytes(b"PING\r\n");
    assert_eq!(script.expect(&mut harness.peer, b"\r\n"), "PONG\r\n");
    assert_eq!(harness.peer.offer(id, 1_001), SendOutcome::TooLarge(1_000));
    script.send_bytes(b"INFO {\"max_payload\":2000}\r\nPING\r\n");
    script.expect(&mut harness.peer, b"PONG\r\n");
    assert_eq!(harness.peer.offer(id, 1_001), SendOutcome::Accepted, "the server changed its mind");
    script.send_bytes(b"-ERR 'Maximum Payload Violation'\r\n");
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let reason = Reason::words("Maximum Payload Violation");
    assert_eq!(harness.peer.record.causes(id), [Cause::Server { reason, too_large: true }]);
}

#[test]
fn a_server_that_pings_without_end_and_reads_no_pong_is_left() {
    let (mut harness, id, mut script) = opened(session("pinged"));
    let cause = script.repeat_unread(&mut harness.peer, id, b"PING\r\n");
    assert_eq!(cause, Cause::Dropped("ended by us: it does not read our answers".to_owned()));
}

/// Each PONG is read before the next PING: they are as many as would be too many at once.
#[test]
fn pongs_that_were_written_do_not_count() {
    let (mut harness, id, mut script) = opened(session("reads"));
    for _ in 0..20 {
        script.send_bytes(&b"PING\r\n".repeat(10_000));
        let ponged = b"PONG\r\n".repeat(10_000);
        script.expect(&mut harness.peer, &ponged);
    }
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_topic_without_a_subject_is_never_sent() {
    let mut harness = Harness::<NatsClients>::new(false);
    let cause = harness.end_after(publisher("dots", "a.b", Qos::BestEffort), INFO);
    assert!(matches!(&cause, Cause::Dropped(words) if words.contains("`a.b` has `.` in it")), "{cause:?}");
}

/// A session whose messages are requests, open and subscribed.
fn asking() -> (Harness<NatsClients>, SessionId, Script) {
    let options = SessionOptions { reply_topic: Some("answers/me".into()), ..SessionOptions::default() };
    let subscriptions = vec![Subscription { filter: "answers/me".into(), qos: Qos::BestEffort }];
    let config = SessionConfig { options, subscriptions, ..publisher("asks", "a/b", Qos::BestEffort) };
    let (mut harness, id, mut script) = opened(config);
    script.expect(&mut harness.peer, b"SUB answers.me.* 1\r\nPING\r\n");
    script.send_bytes(b"PONG\r\n");
    harness.peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    (harness, id, script)
}

#[test]
fn a_request_has_a_reply_subject_of_its_own_and_a_reply_is_known_by_it() {
    let (mut harness, id, mut script) = asking();
    let peer = &mut harness.peer;
    assert_eq!(peer.offer(id, 24), SendOutcome::Accepted);
    peer.flush(id);
    let reason = script.expect(peer, b"\r\n");
    assert!(reason.starts_with("PUB a.b answers.me.0-1 24\r\n"), "{reason}");
    let mut reply = Vec::new();
    header::write_reply(&mut reply, RUN, 7, 1, 0);
    for (subject, expected) in [
        ("answers.me.0-1", Some(Token { publication: 0, sequence: 1 })),
        ("answers.me.3-9", Some(Token { publication: 3, sequence: 9 })),
        ("answers.me.what", None),
        ("elsewhere", None),
    ] {
        script.send_bytes(format!("MSG {subject} 1 24\r\n").as_bytes());
        script.send_bytes(&reply);
        script.send_bytes(b"\r\n");
        peer.wait("the reply", |record| !record.replies.is_empty());
        assert_eq!(peer.record.replies.remove(0).request, expected, "{subject}");
    }
}

#[test]
fn a_request_without_a_listener_is_refused() {
    let (mut harness, id, mut script) = asking();
    let peer = &mut harness.peer;
    // The message has only headers (a status line and the empty line after it).
    script.send_bytes(b"HMSG answers.me.0-5 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
    let token = Token { publication: 0, sequence: 5 };
    let refused = |event: &Event| matches!(event, Event::Acknowledged(session, found, Err(_)) if (*session, *found) == (id, token));
    peer.wait("the refusal", |record| record.count(refused) == 1);
    assert_count_eq!(peer.record.replies, []);
}
