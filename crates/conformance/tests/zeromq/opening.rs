//! The start of a connection, with peers that violate the protocol.

use pubmark_conformance::peer::{credentials, publisher, session, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::events::{Cause, Reason};
use pubmark_wire::zmtp::{self, Mechanism, SocketType};

use crate::script::{Harness, command, greeting, ready, written};

/// The greeting up to the version: a peer's mechanism is known before ours is sent.
const FRONT: &[u8] = b"\xff\0\0\0\0\0\0\0\0\x7f\x03";

fn end(config: SessionConfig, words: &[&[u8]]) -> Cause {
    Harness::new(60).end_after(config, &words.concat())
}

fn receiver() -> SessionConfig {
    subscriber("hears", "a", Qos::BestEffort)
}

fn null() -> Vec<u8> {
    greeting(1, Mechanism::Null)
}

#[test]
fn a_handshake_without_a_log_in() {
    let mut harness = Harness::new(60);
    let (id, mut script) = harness.accept(session("null"));
    script.expect(&mut harness.peer, FRONT);
    script.send_bytes(&null());
    let rest = written(|out| zmtp::encode_greeting_rest(Mechanism::Null, out));
    assert_eq!(rest.len() + FRONT.len(), zmtp::GREETING_BYTES);
    script.expect(&mut harness.peer, &rest);
    script.expect(&mut harness.peer, b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB");
    assert_eq!(harness.peer.record.connects(id), []);
    script.send_bytes(&ready("XSUB"));
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
}

#[test]
fn a_handshake_with_a_log_in() {
    let mut harness = Harness::new(60);
    let config = SessionConfig { credentials: credentials("me", "two words"), ..receiver() };
    let (id, mut script) = harness.accept(config.clone());
    script.expect(&mut harness.peer, FRONT);
    script.send_bytes(&greeting(1, Mechanism::Plain));
    script.expect(&mut harness.peer, &written(|out| zmtp::encode_greeting_rest(Mechanism::Plain, out)));
    script.expect(&mut harness.peer, b"\x04\x13\x05HELLO\x02me\x09two words");
    script.send_bytes(&written(zmtp::encode_welcome));
    script.expect(&mut harness.peer, b"\x04\x1c\x08INITIATE\x0bSocket-Type\0\0\0\x03SUB");
    script.send_bytes(&ready("XPUB"));
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    let plain = greeting(1, Mechanism::Plain);
    let refused = |reason: &[u8]| end(config.clone(), &[&plain, &command("ERROR", reason)]);
    assert_eq!(refused(b"\x03400"), Cause::NotAuthorized(Reason::words("ERROR 400")));
    assert_eq!(refused(b"\0"), Cause::NotAuthorized(Reason::words("ERROR ")));
    assert_eq!(refused(b"\x03300"), Cause::Refused(Reason::words("ERROR 300")), "a fault of its own");
    let taken = written(zmtp::encode_welcome);
    let misspelt = end(config.clone(), &[&plain, b"\x04\x09^RROR\x03400"]);
    assert_eq!(misspelt, Cause::NotAuthorized(Reason::words("ERROR 400")), "as libzmq 4.3.4 writes it");
    let late = end(config.clone(), &[&plain, &taken, &command("ERROR", b"\x02no")]);
    assert_eq!(late, Cause::Refused(Reason::words("ERROR no")), "the log-in was taken");
    let skipped = end(config, &[&plain, &ready("XPUB")]);
    assert_eq!(skipped, Cause::Protocol("READY in place of its WELCOME".to_owned()));
}

#[test]
fn an_unsupported_mechanism_is_reported() {
    let plain = greeting(1, Mechanism::Plain);
    assert!(matches!(end(receiver(), &[&plain]), Cause::NotAuthorized(reason) if reason.text.contains("PLAIN")));
    let with_log_in = SessionConfig { credentials: credentials("me", "pw"), ..receiver() };
    assert!(matches!(end(with_log_in, &[&null()]), Cause::Refused(reason) if reason.text.contains("no log-in")));
    let mut curve = null();
    curve[12..17].copy_from_slice(b"CURVE");
    assert!(matches!(end(receiver(), &[&curve]), Cause::Refused(reason) if reason.text.contains("another mechanism")));
}

#[test]
fn a_log_in_that_plain_cannot_carry_is_refused_before_anything_is_sent() {
    let long = "x".repeat(256);
    for login in [credentials(&long, "pw"), credentials("me", &long)] {
        let cause = Harness::new(60).peer.fail_to_connect(SessionConfig { credentials: login, ..receiver() });
        assert!(matches!(&cause, Cause::Refused(reason) if reason.text.contains("255 B")), "{cause:?}");
    }
}

#[test]
fn a_session_that_publishes_and_subscribes_is_refused() {
    let config = SessionConfig { subscriptions: receiver().subscriptions, ..publisher("both", "a", Qos::BestEffort) };
    let cause = Harness::new(60).peer.fail_to_connect(config);
    assert!(matches!(&cause, Cause::Refused(reason) if reason.text.contains("publishes or subscribes")), "{cause:?}");
}

#[test]
fn a_peer_of_another_version_is_reported_at_the_first_wrong_byte() {
    for (words, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "flags 0x48"),
        (b"\x16\x03\x01\0\xa5", "flags 0x16"),
        // ZMTP 1.0: an empty identity. 2.0: its signature, revision 1, a socket type.
        (b"\x01\0", "a frame before its greeting"),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02", "version 1 of ZMTP"),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x00", "version 0 of ZMTP"),
        (b"\xff\0\0\0\0\0\0\x01\0\0", "without the signature"),
        (b"\x04\x05\x04PONG", "a frame before its greeting"),
    ] {
        let cause = end(receiver(), &[words]);
        assert!(matches!(&cause, Cause::Protocol(what) if what.contains(expected)), "{cause:?}");
    }
}

#[test]
fn frames_other_than_ready_end_the_connection() {
    let oversized = [&[6][..], &(1u64 << 40).to_be_bytes()].concat();
    let endless = command("READY", &b"\x01x\0\0\0\x01y".repeat(9_000));
    assert!(endless.len() < zmtp::LONGEST_COMMAND_BYTES, "properties that go on as long as is taken, and none of use");
    let cases: [(&[u8], &str); 12] = [
        (&null(), "a second greeting"),
        (b"\0\0", "a message before its READY"),
        (b"\x01\x01a", "a message before its READY"),
        (&oversized, "exceeds the limit"),
        (&endless, "without a Socket-Type"),
        (&command("READY", b""), "without a Socket-Type"),
        (&command("READY", b"\x0bSocket-Type\xff\xff\xff\xffXPUB"), "READY with data that are none"),
        (&command("READY", b"\0\0\0\0\0"), "READY with data that are none"),
        (&command("", b""), "without a name"),
        (&command("SUBSCRIBE", b"a"), "SUBSCRIBE in place of its READY"),
        (&command("WELCOME", b""), "WELCOME in place of its READY"),
        (&command("PING", b"\0\0"), "PING in place of its READY"),
    ];
    for (words, expected) in cases {
        let cause = end(receiver(), &[&null(), words]);
        assert!(matches!(&cause, Cause::Protocol(what) if what.contains(expected)), "{expected}: {cause:?}");
    }
    assert_eq!(
        end(receiver(), &[&null(), &command("ERROR", b"\x04busy")]),
        Cause::Refused(Reason::words("ERROR busy"))
    );
}

#[test]
fn a_socket_of_another_type_is_reported() {
    for (config, kind, expected) in [
        (receiver(), "XSUB", "where publishers connect"),
        (receiver(), "SUB", "where publishers connect"),
        (publisher("says", "a", Qos::BestEffort), "XPUB", "where subscribers connect"),
        (publisher("says", "a", Qos::BestEffort), "PUB", "where subscribers connect"),
        (receiver(), "ROUTER", "not one of publish/subscribe"),
    ] {
        let cause = end(config, &[&null(), &ready(kind)]);
        assert!(matches!(&cause, Cause::Refused(reason) if reason.text.contains(expected)), "{kind}: {cause:?}");
    }
    assert!(SocketType::Xsub.subscribes());
}

#[test]
fn a_peer_that_closes_before_its_ready_is_reported() {
    let mut harness = Harness::new(60);
    let (id, script) = harness.accept(receiver());
    drop(script);
    let cause = harness.cause(id);
    assert!(matches!(&cause, Cause::Dropped(words) if words.contains("before its READY")), "{cause:?}");
}

#[test]
fn a_handshake_may_be_cut_anywhere() {
    let words = [null(), ready("XPUB")].concat();
    for cut in 1..words.len() {
        let mut harness = Harness::new(60);
        let (id, mut script) = harness.accept(receiver());
        script.send_bytes(&words[..cut]);
        harness.peer.linger(1);
        script.send_bytes(&words[cut..]);
        harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    }
}
