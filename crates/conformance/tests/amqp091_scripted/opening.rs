//! From the protocol header to an open session.

use pubmark_conformance::peer::{credentials, publisher, session, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, SessionConfig};
use pubmark_protocol::events::Cause;

use crate::script::{Harness, Script, channel_ok, close, method, open_ok, start, tune};

fn refused(cause: &Cause, words: &str) -> bool {
    matches!(cause, Cause::Refused(reason) if reason.text.contains(words))
}

#[test]
fn first_packets_of_a_server_are_distinguished() {
    let end = |words: &[u8]| Harness::new().end_after(session("ends"), words);
    for wrong in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"\x16\x03\x01", b"\x20\x02\x00\x00", b"AMX"] {
        assert!(matches!(end(wrong), Cause::Protocol(_)), "{}", wrong.escape_ascii());
    }
    let other = end(b"AMQP\x00\x01\x00\x00");
    assert!(refused(&other, "AMQP 1.0.0"), "{other:?}");
    assert!(refused(&end(&start(8, "PLAIN")), "AMQP 0-8"));
    let certificates = end(&start(9, "EXTERNAL AMQPLAIN"));
    assert!(refused(&certificates, "`EXTERNAL AMQPLAIN`"), "{certificates:?}");
    // At the wrong stage, or on the wrong channel.
    for wrong in [tune(0, 0, 0), open_ok(), channel_ok(1), method(0, 20, 11, &[0; 4]), method(1, 60, 60, &[])] {
        assert!(matches!(end(&wrong), Cause::Protocol(_)), "{}", wrong.escape_ascii());
    }
}

/// The steps of a server up to the open session of a subscriber, and the client's method that each awaits.
type Step = (fn(&mut Harness, &mut Script), fn() -> Vec<u8>);
const STEPS: [Step; 4] = [
    (|_, _| {}, || start(9, "PLAIN AMQPLAIN")),
    (|harness, script| drop(script.expect(&mut harness.peer, 0, 10, 11)), || tune(2_047, 131_072, 60)),
    (
        |harness, script| {
            script.expect(&mut harness.peer, 0, 10, 31);
            script.expect(&mut harness.peer, 0, 10, 40);
        },
        open_ok,
    ),
    (|harness, script| drop(script.expect(&mut harness.peer, 1, 20, 10)), || channel_ok(1)),
];

/// Executes N of the steps, then sends these bytes.
fn end_at(steps: usize, words: Option<&[u8]>) -> Cause {
    let mut harness = Harness::new();
    let (id, mut script) = harness.accept(subscriber("steps", "a", Qos::BestEffort));
    for (await_client, sender) in &STEPS[..steps] {
        await_client(&mut harness, &mut script);
        script.send_bytes(&sender());
    }
    match words {
        Some(words) => script.send_bytes(words),
        None => drop(script),
    }
    harness.end_of(id)
}

#[test]
fn a_server_that_closes_at_any_step_is_understood() {
    for steps in 0..=STEPS.len() {
        let open = steps == STEPS.len();
        let refusal = end_at(steps, Some(&close(0, 530, "NOT_ALLOWED - vhost / not found", (10, 40))));
        match &refusal {
            Cause::Refused(reason) => assert!(!open && reason.text == "NOT_ALLOWED - vhost / not found"),
            Cause::Server { reason, too_large: false } => assert!(open && reason.text.starts_with("NOT_ALLOWED")),
            other => panic!("{other:?}"),
        }
        let login = end_at(steps, Some(&close(0, 403, "Login was refused", (0, 0))));
        assert_eq!(matches!(login, Cause::NotAuthorized(_)), !open, "{login:?}");
        let cut = end_at(steps, None);
        assert!(matches!(cut, Cause::Dropped(_)), "{cut:?}");
        for wrong in [close(1, 504, "", (0, 0)), start(9, "PLAIN"), method(3, 20, 11, &[0; 4])] {
            if steps > 0 && steps < 3 {
                assert!(matches!(end_at(steps, Some(&wrong)), Cause::Protocol(_)), "{steps}");
            }
        }
    }
}

#[test]
fn a_session_opens_however_its_packets_are_split() {
    let all: Vec<Vec<u8>> = STEPS.iter().map(|(_, sender)| sender()).collect();
    let longest = all.iter().map(Vec::len).max().unwrap();
    for cut in 1..longest {
        let mut harness = Harness::new();
        let (id, mut script) = harness.accept(subscriber("cut", "a", Qos::BestEffort));
        for (await_client, sender) in STEPS {
            await_client(&mut harness, &mut script);
            let words = sender();
            let (first, rest) = words.split_at(cut.min(words.len()));
            script.send_bytes(first);
            harness.peer.linger(1);
            script.send_bytes(rest);
        }
        harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    }
}

#[test]
fn the_smaller_limits_hold() {
    for (theirs, ours) in
        [((2_047, 4_096, 10), (2, 4_096, 10)), ((0, 0, 0), (2, 131_072, 60)), ((2, 1 << 20, 600), (2, 131_072, 60))]
    {
        let mut harness = Harness::new();
        let (_, mut script) = harness.accept(publisher("limits", "a", Qos::AtLeastOnce));
        script.send_bytes(&start(9, "PLAIN"));
        script.expect(&mut harness.peer, 0, 10, 11);
        script.send_bytes(&tune(theirs.0, theirs.1, theirs.2));
        let agreed = script.expect(&mut harness.peer, 0, 10, 31);
        let (channels, frames, heartbeat): (u16, u32, u16) = ours;
        assert_eq!(agreed, [&channels.to_be_bytes()[..], &frames.to_be_bytes(), &heartbeat.to_be_bytes()].concat());
        assert_eq!(script.expect(&mut harness.peer, 0, 10, 40), b"\x01/\x00\x00");
    }
    let end = |limits: Vec<u8>| {
        let mut harness = Harness::new();
        let (id, mut script) = harness.accept(publisher("limits", "a", Qos::AtLeastOnce));
        script.send_bytes(&start(9, "PLAIN"));
        script.expect(&mut harness.peer, 0, 10, 11);
        script.send_bytes(&limits);
        harness.end_of(id)
    };
    assert!(matches!(end(tune(0, 4_095, 0)), Cause::Protocol(words) if words.contains("4095 B")));
    let channels = end(tune(1, 0, 0));
    assert!(refused(&channels, "channels up to 1, 2 is needed"), "{channels:?}");
    let further = end(method(0, 10, 20, &[0; 4]));
    assert!(refused(&further, "more than a password"), "{further:?}");
}

#[test]
fn the_log_in_is_the_sessions_or_rabbitmqs_own() {
    for (login, expected) in
        [(credentials("me", "two words"), &b"\x00me\x00two words"[..]), (None, b"\x00guest\x00guest")]
    {
        let mut harness = Harness::new();
        let (_, mut script) = harness.accept(SessionConfig { credentials: login, ..session("a name") });
        script.send_bytes(&start(9, "PLAIN"));
        let reason = script.expect(&mut harness.peer, 0, 10, 11);
        let response = [&b"\x05PLAIN"[..], &(expected.len() as u32).to_be_bytes(), expected, b"\x05en_US"].concat();
        assert!(reason.ends_with(&response), "{}", reason.escape_ascii());
        for word in [&b"\x0fconnection_nameS\x00\x00\x00\x06a name"[..], b"\x12connection.blockedt\x01"] {
            assert!(reason.windows(word.len()).any(|part| part == word), "{}", reason.escape_ascii());
        }
    }
}

#[test]
fn an_inexpressible_topic_is_never_sent() {
    let mut harness = Harness::new();
    let long = "l".repeat(256);
    let kept = SessionConfig { persistent: true, ..subscriber(&long, "a", Qos::BestEffort) };
    let dots = publisher("dots", "a.b", Qos::BestEffort);
    let stars = subscriber("stars", "a/b*", Qos::BestEffort);
    let endless = publisher("endless", &long, Qos::BestEffort);
    for (config, words) in [
        (dots, "`a.b` has `.`"),
        (stars, "`a/b*` has `*`"),
        (endless, "256 B"),
        (kept, "too long for the name of a queue"),
    ] {
        let id = harness.peer.clients.add_session(config);
        harness.peer.clients.connect(id, &mut harness.peer.record);
        let cause = harness.end_of(id);
        assert!(matches!(&cause, Cause::Dropped(reason) if reason.contains(words)), "{cause:?}");
    }
}
