//! AMQP servers that lie, of both versions.

use crate::case::Ends::{NeverValid, NobodyIn};
use crate::case::{Case, Table, case};
use crate::server::Step::{Close, Over, Reset, Slowly, Wait};
use crate::server::{Step, hear, say};

const OLD: Table = Table {
    scheme: "amqp",
    arguments: &["fan-in", "--protocol", "amqp091", "--qos", "0", "--set", "publishers=2", "--set", "rate=20/s"],
};
const NEW: Table = Table {
    scheme: "amqp",
    arguments: &["fan-in", "--protocol", "amqp10", "--qos", "0", "--set", "publishers=2", "--set", "rate=20/s"],
};

/// Responses that servers of either version may send, and that belong to neither.
fn strangers() -> Vec<Case> {
    vec![
        case("says nothing", NobodyIn, vec![]),
        case("closes at once", NobodyIn, vec![Close]),
        case("resets at once", NobodyIn, vec![hear("AMQP"), Reset]),
        case("speaks HTTP", NobodyIn, vec![say("HTTP/1.1 400 Bad Request\r\n\r\n")]),
        case("speaks TLS", NobodyIn, vec![say(b"\x16\x03\x01\x02\x00")]),
        case("speaks another version", NobodyIn, vec![hear("AMQP"), say(b"AMQP\x07\x09\x09\x09")]),
        case("speaks another version for ever", NobodyIn, vec![Over(100_000, b"AMQP\x07\x09\x09\x09".to_vec())]),
        case("zeros", NobodyIn, vec![hear("AMQP"), say([0; 10_000])]),
        case("ones", NobodyIn, vec![hear("AMQP"), say([0xff; 10_000])]),
    ]
}

/// A frame of 0-9-1.
fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&[kind][..], &channel.to_be_bytes(), &length, payload, &[0xce]].concat()
}

fn method(channel: u16, class: u16, number: u16, arguments: &[u8]) -> Vec<u8> {
    frame(1, channel, &[&class.to_be_bytes()[..], &number.to_be_bytes(), arguments].concat())
}

fn long(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn start(mechanisms: &str) -> Vec<u8> {
    method(0, 10, 10, &[&[0, 9][..], &long(""), &long(mechanisms), &long("en_US")].concat())
}

fn tune(channel_max: u16, frame_max: u32, heartbeat_s: u16) -> Vec<u8> {
    method(0, 10, 30, &[&channel_max.to_be_bytes()[..], &frame_max.to_be_bytes(), &heartbeat_s.to_be_bytes()].concat())
}

/// A server of 0-9-1 that accepts the log-in, and begins its response with these bytes.
fn tuned(bytes: Vec<u8>) -> Vec<Step> {
    vec![hear("AMQP"), say(start("PLAIN")), hear(b"\xce"), say(bytes)]
}

/// A server that opens the connection, and the following steps.
fn opened(steps: Vec<Step>) -> Vec<Step> {
    let opening = [tuned(tune(2_047, 131_072, 60)), vec![hear(b"\xce"), hear(b"\xce"), say(method(0, 10, 41, &[0]))]];
    [opening.concat(), steps].concat()
}

/// What random bytes of 0-9-1 are behind, and made from: a channel that is opened, a message.
pub fn random_old() -> (Vec<Step>, Vec<u8>) {
    let delivered = method(1, 60, 60, b"\x01c\0\0\0\0\0\0\0\x01\0\0\x0afan-in.0-0");
    let header = frame(2, 1, &[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0]);
    (opened(vec![]), [method(1, 20, 11, &[0; 4]), delivered, header, frame(3, 1, b"abc")].concat())
}

fn close(code: u16, text: &[u8]) -> Vec<u8> {
    method(0, 10, 50, &[&code.to_be_bytes()[..], &[text.len() as u8], text, &[0; 4]].concat())
}

#[test]
fn servers_of_0_9_1_that_lie() {
    let first = |bytes: Vec<u8>| vec![hear("AMQP"), say(bytes)];
    let mut cases = strangers();
    cases.extend([
        case("no mechanism of ours", NobodyIn, first(start("GSSAPI"))),
        case("a table longer than the frame", NobodyIn, first(method(0, 10, 10, &[0, 9, 0xff, 0xff, 0xff, 0xff]))),
        case("a frame of 4 GB announced", NobodyIn, first(vec![1, 0, 0, 0xff, 0xff, 0xff, 0xff])),
        case("a frame without its end", NobodyIn, first([&start("PLAIN")[..20], &[0; 500]].concat())),
        case("a frame of an unknown kind", NobodyIn, first(frame(77, 0, b"abc"))),
        case("an empty method", NobodyIn, first(frame(1, 0, b""))),
        case("a method that is none", NobodyIn, first(method(0, 999, 999, &[]))),
        case("start byte by byte", NobodyIn, vec![hear("AMQP"), Slowly(start("PLAIN"))]),
        case("tune before start", NobodyIn, first(tune(0, 0, 0))),
        case("closes at the log-in", NobodyIn, tuned(close(403, b"ACCESS_REFUSED"))),
        case("closes with text that is none", NobodyIn, tuned(close(320, b"\xff\xfe\xfd"))),
        case("frames of 1 byte", NobodyIn, tuned(tune(2_047, 1, 60))),
        case("heartbeats each second, and none of its own", NeverValid, opened(vec![])),
        case(
            "one channel only",
            NeverValid,
            [tuned(tune(1, 131_072, 60)), vec![hear(b"\xce"), say(method(0, 10, 41, &[0]))]].concat(),
        ),
        case("heartbeats for ever", NeverValid, opened(vec![Over(200_000, frame(8, 0, b""))])),
        case("a message on a channel that is closed", NeverValid, opened(vec![say(method(9, 60, 60, &[0; 20]))])),
        case("a body without a header", NeverValid, opened(vec![say(frame(3, 1, b"abc"))])),
        case(
            "a header of 2^63 bytes",
            NeverValid,
            opened(vec![say(frame(2, 1, &[0, 60, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]))]),
        ),
        case(
            "acknowledges what was not sent",
            NeverValid,
            opened(vec![say(method(1, 60, 80, &[0, 0, 0, 0, 0, 0, 0, 9, 1]))]),
        ),
        case("closes in the middle", NeverValid, opened(vec![Wait(600), say(close(320, b"CONNECTION_FORCED"))])),
    ]);
    OLD.run_all(&cases);
}

/// The bytes with which the two layers of 1.0 begin.
const SASL: &[u8] = b"AMQP\x03\x01\0\0";
const AMQP: &[u8] = b"AMQP\0\x01\0\0";
/// `sasl-mechanisms` with only ANONYMOUS, and `sasl-outcome` with success.
const MECHANISMS: &[u8] = b"\xc0\x0e\x01\xe0\x0c\x01\xa3\x09ANONYMOUS";
const OUTCOME: &[u8] = b"\xc0\x03\x01\x50\0";
/// A list without fields.
const NO_FIELDS: &[u8] = b"\x45";

/// A frame of 1.0 (kind 0, or 1 for SASL) with a described list.
fn described(kind: u8, code: u8, list: &[u8]) -> Vec<u8> {
    let body = [&[0, 0x53, code][..], list].concat();
    let length = (body.len() as u32 + 8).to_be_bytes();
    [&length[..], &[2, kind, 0, 0], &body].concat()
}

/// A list whose length and count are as given, without fields.
fn list(length: u32, count: u32) -> Vec<u8> {
    [&[0xd0][..], &length.to_be_bytes(), &count.to_be_bytes()].concat()
}

/// A server of 1.0 that offers its mechanism and responds to the choice with these bytes.
fn asked(bytes: &[u8]) -> Vec<Step> {
    vec![hear("AMQP"), say([SASL, &described(1, 0x40, MECHANISMS)].concat()), hear("ANONYMOUS"), say(bytes)]
}

/// A server that accepts the log-in, and then sends these bytes.
fn logged_in(bytes: Vec<u8>) -> Vec<Step> {
    asked(&[&described(1, 0x44, OUTCOME)[..], AMQP, &bytes].concat())
}

/// What random bytes of 1.0 are behind, and made from: a connection and a session that are opened, a link, a message.
pub fn random_new() -> (Vec<Step>, Vec<u8>) {
    let open = described(0, 0x10, b"\xc0\x04\x01\xa1\x01x");
    let begin = described(0, 0x11, b"\xc0\x0b\x04\x60\0\0\x43\x52\x64\x52\x64");
    let attach = described(0, 0x12, b"\xc0\x09\x03\xa1\x03a-b\x43\x41");
    let transfer = described(0, 0x14, b"\xc0\x07\x04\x43\x43\xa0\x01\x01\x43");
    (logged_in([open, begin].concat()), [attach, transfer, b"\0\x53\x75\xa0\x03abc".to_vec()].concat())
}

#[test]
fn servers_of_1_0_that_lie() {
    let first = |bytes: Vec<u8>| vec![hear("AMQP"), say([SASL, &bytes].concat())];
    let mechanisms = |list: &[u8]| first(described(1, 0x40, list));
    let mut cases = strangers();
    cases.extend([
        case("demands TLS", NobodyIn, vec![hear("AMQP"), say(b"AMQP\x02\x01\0\0")]),
        case("no mechanism at all", NobodyIn, mechanisms(NO_FIELDS)),
        case("a list of a billion fields", NobodyIn, mechanisms(&list(4, 1_000_000_000))),
        case("a list longer than its frame", NobodyIn, mechanisms(&list(1 << 30, 1))),
        case("an array of a billion", NobodyIn, mechanisms(b"\xc0\x0f\x01\xf0\0\0\0\x05\x3b\x9a\xca\0\xa3\0")),
        case("a frame of 4 GB announced", NobodyIn, first(vec![0xff, 0xff, 0xff, 0xff, 2, 1, 0, 0])),
        case("a frame of 0 bytes", NobodyIn, first(vec![0, 0, 0, 0, 2, 1, 0, 0])),
        case("a data offset beyond the frame", NobodyIn, first(vec![0, 0, 0, 8, 200, 1, 0, 0])),
        case("a type that is none", NobodyIn, mechanisms(&[0x99])),
        case("described by a described by a described", NobodyIn, mechanisms(&[0; 2_000])),
        case("OPEN before the log-in", NobodyIn, first(described(0, 0x10, NO_FIELDS))),
        case("an outcome that is none", NobodyIn, asked(&described(1, 0x44, b"\xc0\x03\x01\x50\x4d"))),
        case("logged in, then nothing", NobodyIn, logged_in(vec![])),
        case("an OPEN without fields", NobodyIn, logged_in(described(0, 0x10, NO_FIELDS))),
        case("BEGIN before OPEN", NobodyIn, logged_in(described(0, 0x11, NO_FIELDS))),
        case("CLOSE", NobodyIn, logged_in(described(0, 0x18, NO_FIELDS))),
        case("a performative that is none", NobodyIn, logged_in(described(0, 0x77, NO_FIELDS))),
        case("an OPEN without limits, then nothing", NobodyIn, logged_in(described(0, 0x10, b"\xc0\x04\x01\xa1\x01x"))),
        case("empty frames for ever", NobodyIn, {
            let mut steps = logged_in(vec![]);
            steps.push(Over(200_000, vec![0, 0, 0, 8, 2, 0, 0, 0]));
            steps
        }),
    ]);
    NEW.run_all(&cases);
}
