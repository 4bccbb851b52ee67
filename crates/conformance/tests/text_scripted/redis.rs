//! Redis publish/subscribe.

use pubmark_adapters::redis::RedisClients;
use pubmark_conformance::peer::{RUN, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SessionConfig, SessionId, Subscription};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, Script};

const HELLO: &[u8] = b"%1\r\n$5\r\nproto\r\n:3\r\n";

/// An open session.
fn opened(config: SessionConfig) -> (Harness<RedisClients>, SessionId, Script) {
    let mut harness = Harness::new(false);
    let (id, mut script) = harness.accept(config);
    script.expect(&mut harness.peer, b"\r\n");
    script.send_bytes(HELLO);
    harness.peer.wait("connected", |record| !record.connects(id).is_empty());
    (harness, id, script)
}

#[test]
fn packets_before_the_welcome_are_distinguished() {
    let end = |words: &[u8]| Harness::<RedisClients>::new(false).end_after(session("ends"), words);
    assert!(matches!(end(b"-WRONGPASS invalid username-password pair\r\n"), Cause::NotAuthorized(_)));
    assert!(matches!(
        end(b"-NOAUTH HELLO must be called with the client already authenticated\r\n"),
        Cause::NotAuthorized(_)
    ));
    let old = end(b"-ERR unknown command `HELLO`\r\n");
    assert_eq!(old, Cause::Refused(Reason::words("ERR unknown command `HELLO`")));
    for wrong in
        [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"+OK\r\n", b":1\r\n", b"$x\r\n", b"*99999999\r\n", b"\x16\x03\x01"]
    {
        assert!(matches!(end(wrong), Cause::Protocol(_)), "{}", wrong.escape_ascii());
    }
}

#[test]
fn a_log_in_and_a_name_go_with_hello() {
    let mut harness = Harness::<RedisClients>::new(false);
    let config = SessionConfig {
        credentials: pubmark_conformance::peer::credentials("me", "two words"),
        ..session("a name\nwith more")
    };
    let (_, mut script) = harness.accept(config);
    let reason = script.expect(&mut harness.peer, b"more\r\n");
    assert_eq!(
        reason,
        "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$9\r\ntwo words\r\n$7\r\nSETNAME\r\n$16\r\n\
         a-name-with-more\r\n"
    );
}

#[test]
fn each_subscription_has_one_response_and_a_refused_one_leaves_the_rest() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("open/#"), filter("secret"), filter("also")];
    let (mut harness, id, mut script) = opened(SessionConfig { subscriptions, ..session("some") });
    let reason = script.expect(&mut harness.peer, b"also\r\n");
    assert!(
        reason.contains("PSUBSCRIBE\r\n$6\r\nopen/*\r\n") && reason.contains("SUBSCRIBE\r\n$4\r\nopen\r\n"),
        "{reason}"
    );
    let answer =
        |kind: &str, word: &str| format!(">3\r\n${}\r\n{kind}\r\n${}\r\n{word}\r\n:1\r\n", kind.len(), word.len());
    script.send_bytes(answer("subscribe", "open").as_bytes());
    script.send_bytes(answer("psubscribe", "open/*").as_bytes());
    script.send_bytes(b"-NOPERM No permissions to access a channel\r\n");
    script.send_bytes(answer("subscribe", "also").as_bytes());
    harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    let replies = harness.peer.record.all(|event| match event {
        Event::Subscribed(of, index, granted) if *of == id => Some((*index, granted.is_ok())),
        _ => None,
    });
    assert_eq!(replies, [(0, true), (1, false), (2, true)]);
}

#[test]
fn a_subscription_of_two_words_is_refused_if_either_is() {
    let (mut harness, id, mut script) = opened(subscriber("half", "open/#", Qos::BestEffort));
    script.expect(&mut harness.peer, b"open/*\r\n");
    script
        .send_bytes(b"-NOPERM No permissions to access a channel\r\n>3\r\n$10\r\npsubscribe\r\n$6\r\nopen/*\r\n:1\r\n");
    harness.peer.wait("the answer", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
    let refused = |event: &Event| matches!(event, Event::Subscribed(of, 0, Err(_)) if *of == id);
    assert_count_eq!(harness.peer.record.count(refused), 1);
}

#[test]
fn a_subscription_that_the_server_ends_is_reported_and_the_connection_stays() {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
    let subscriptions = vec![filter("open/#"), filter("also")];
    let (mut harness, id, mut script) = opened(SessionConfig { subscriptions, ..session("ended") });
    script.expect(&mut harness.peer, b"also\r\n");
    let push =
        |kind: &str, word: &str| format!(">3\r\n${}\r\n{kind}\r\n${}\r\n{word}\r\n:1\r\n", kind.len(), word.len());
    // The first word of a subscription of two ends before the second is confirmed; another one later; one that never was.
    for (kind, word) in [
        ("subscribe", "open"),
        ("unsubscribe", "open"),
        ("psubscribe", "open/*"),
        ("subscribe", "also"),
        ("unsubscribe", "also"),
        ("punsubscribe", "also"),
    ] {
        script.send_bytes(push(kind, word).as_bytes());
    }
    harness.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    let replies = harness.peer.record.all(|event| match event {
        Event::Subscribed(of, index, granted) if *of == id => Some((*index, granted.clone())),
        _ => None,
    });
    let ended = || Err(Reason::words("unsubscribe by the server"));
    assert_eq!(replies, [(0, ended()), (1, Ok(Qos::BestEffort)), (1, ended())]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn an_unrequested_confirmation_grants_nothing() {
    for other in ["$9\r\nsubscribe\r\n$1\r\nz", "$10\r\npsubscribe\r\n$1\r\na"] {
        let (mut harness, id, mut script) = opened(subscriber("other", "a", Qos::BestEffort));
        script.expect(&mut harness.peer, b"$1\r\na\r\n");
        script.send_bytes(format!(">3\r\n{other}\r\n:1\r\n").as_bytes());
        harness.peer.wait("closed", |record| !record.causes(id).is_empty());
        let causes = harness.peer.record.causes(id);
        let is_named =
            |cause: &Cause| matches!(cause, Cause::Protocol(words) if words.contains("which was not asked for"));
        assert!(is_named(&causes[0]), "{causes:?}");
        assert_count_eq!(harness.peer.record.count(|event| matches!(event, Event::Subscribed(..))), 0);
    }
}

#[test]
fn a_message_arrives_once_wherever_it_is_cut() {
    let (mut harness, id, mut script) = opened(subscriber("cut", "a", Qos::BestEffort));
    script.expect(&mut harness.peer, b"$1\r\na\r\n");
    script.send_bytes(b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    let message = [
        &b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$24\r\n"[..],
        &payload,
        b"\r\n>4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$24\r\n",
        &payload,
        b"\r\n",
    ]
    .concat();
    script.send_split(&mut harness.peer, id, &message, 2);
    assert_count_eq!(harness.peer.record.foreign, 0);
}

#[test]
fn a_refused_message_is_reported_and_the_connection_stays() {
    let (mut harness, id, mut script) = opened(publisher("refused", "a", Qos::BestEffort));
    for _ in 0..3 {
        harness.peer.send(id, 16);
    }
    script.send_bytes(b":1\r\n-NOPERM No permissions to access a channel\r\n:1\r\n");
    harness.peer.wait("refused", |record| !record.refused().is_empty());
    harness.peer.linger(20);
    let outcomes = harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.is_ok())),
        _ => None,
    });
    assert_eq!(outcomes, [(2, false)]);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn an_error_that_answers_no_message_ends_the_connection_with_the_servers_text() {
    let (mut harness, id, mut script) = opened(publisher("refused", "a", Qos::BestEffort));
    harness.peer.send(id, 16);
    script.send_bytes(b":1\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(
        matches!(&causes[..], [Cause::Server { reason, too_large: false }] if reason.text.starts_with("OOM")),
        "{causes:?}"
    );
}
