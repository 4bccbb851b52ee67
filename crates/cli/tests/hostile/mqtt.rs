//! MQTT servers that lie, byte by byte, and the lying broker's lies that must never look valid.

use crate::case::Ends::{Counted, Invalid, NeverValid, NobodyIn};
use crate::case::{Table, case};
use crate::server::Step::{Close, Echo, Over, Reset, Slowly, Wait};
use crate::server::{Step, hear, say};

const FIVE: Table = Table {
    scheme: "mqtt",
    arguments: &["fan-in", "--protocol", "mqtt5", "--qos", "1", "--set", "publishers=2", "--set", "rate=20/s"],
};
const OLD: Table = Table {
    scheme: "mqtt",
    arguments: &["fan-in", "--protocol", "mqtt311", "--qos", "1", "--set", "publishers=2", "--set", "rate=20/s"],
};

/// A packet of fewer than 128 bytes.
fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    [&[first, body.len() as u8][..], body].concat()
}

/// A CONNACK of MQTT 5 with these properties.
fn connack(code: u8, properties: &[u8]) -> Vec<u8> {
    packet(0x20, &[&[0, code, properties.len() as u8][..], properties].concat())
}

/// An opened session, and what follows.
fn opened(steps: Vec<Step>) -> Vec<Step> {
    [vec![hear(b"MQTT"), say(connack(0, &[]))], steps].concat()
}

#[test]
fn servers_that_lie_before_the_session() {
    let after = |bytes: Vec<u8>| vec![hear(b"MQTT"), say(bytes)];
    FIVE.run_all(&[
        case("says nothing", NobodyIn, vec![]),
        case("closes at once", NobodyIn, vec![Close]),
        case("resets at once", NobodyIn, vec![Reset]),
        case("closes after CONNECT", NobodyIn, vec![hear(b"MQTT"), Close]),
        case("speaks HTTP", NobodyIn, vec![say("HTTP/1.1 400 Bad Request\r\n\r\n")]),
        case("speaks NATS", NobodyIn, vec![say("INFO {}\r\n")]),
        case("busy", NobodyIn, after(connack(0x89, &[]))),
        case("quota exceeded", NobodyIn, after(connack(0x97, &[]))),
        case("not authorized", NobodyIn, after(connack(0x87, &[]))),
        case("an unknown code", NobodyIn, after(connack(0xee, &[]))),
        case("a code that is no refusal", NobodyIn, after(connack(0x7f, &[]))),
        case("a session after a clean start", NobodyIn, after(packet(0x20, &[1, 0, 0]))),
        case("receive maximum 0", NobodyIn, after(connack(0, &[0x21, 0, 0]))),
        case("packet size 0", NobodyIn, after(connack(0, &[0x27, 0, 0, 0, 0]))),
        case("a property twice", NobodyIn, after(connack(0, &[0x21, 0, 1, 0x21, 0, 1]))),
        case("a property that is none", NobodyIn, after(connack(0, &[0x7f, 0]))),
        case("properties longer than the packet", NobodyIn, after(packet(0x20, &[0, 0, 100]))),
        case("a length of five bytes", NobodyIn, after(vec![0x20, 0xff, 0xff, 0xff, 0xff, 0x01])),
        case("a packet of 256 MB announced", NobodyIn, after(vec![0x20, 0xff, 0xff, 0xff, 0x7f])),
        case(
            "a packet of 256 MB sent",
            NobodyIn,
            vec![hear(b"MQTT"), say([0x20, 0xff, 0xff, 0xff, 0x7f]), Over(4_096, vec![0; 65_536])],
        ),
        case("half a CONNACK", NobodyIn, after(vec![0x20, 3, 0])),
        case("PUBLISH before CONNACK", NobodyIn, after(packet(0x30, b"\0\x01a\0x"))),
        case("AUTH", NobodyIn, after(packet(0xf0, &[0x18, 0]))),
        case("CONNACK byte by byte, then nothing", NeverValid, vec![hear(b"MQTT"), Slowly(connack(0, &[]))]),
    ]);
    OLD.run_all(&[
        case("3.1.1: unavailable", NobodyIn, after(packet(0x20, &[0, 3]))),
        case("3.1.1: an unknown code", NobodyIn, after(packet(0x20, &[0, 77]))),
        case("3.1.1: CONNACK of 5.0", NobodyIn, after(connack(0, &[]))),
        case("3.1.1: flags that are reserved", NobodyIn, after(packet(0x20, &[0xfe, 0]))),
    ]);
}

#[test]
fn servers_that_lie_in_the_session() {
    let say_all = |bytes: &[u8]| opened(vec![say(bytes)]);
    let publish = packet(0x30, b"\0\x01a\0strangers' words");
    // SUBACK for the one SUBSCRIBE that there is.
    let suback = |code: u8| packet(0x90, &[0xff, 0xff, 0, code]);
    let wild = |first: u8| opened(vec![hear(b"fan-in/"), say(packet(first, b"\xff\xff\0\0"))]);
    FIVE.run_all(&[
        case("answers nothing more", NeverValid, opened(vec![])),
        case("refuses every subscription", Invalid, opened(vec![hear(b"fan-in/+"), say(suback(0x87))])),
        case("grants a level that is none", NeverValid, opened(vec![hear(b"fan-in/+"), say(suback(3))])),
        case("SUBACK for nothing", NeverValid, say_all(&packet(0x90, &[0, 1, 0, 0]))),
        case("SUBACK without codes", NeverValid, opened(vec![hear(b"fan-in/+"), say(packet(0x90, &[0xff, 0xff, 0]))])),
        case(
            "SUBACK with too many codes",
            NeverValid,
            opened(vec![hear(b"fan-in/+"), say(packet(0x90, &[&[0xff, 0xff, 0][..], &[0; 90]].concat()))]),
        ),
        // It grants the subscription and carries nothing: a true account of that may be valid.
        case("SUBACK again and again", Counted, opened(vec![hear(b"fan-in/+"), Over(200_000, suback(1))])),
        case("PUBACK for what was not sent", NeverValid, wild(0x40)),
        case("PUBREC for what was not sent", NeverValid, wild(0x50)),
        case("PUBREL for what was not sent", NeverValid, wild(0x62)),
        case("PUBCOMP for what was not sent", NeverValid, wild(0x70)),
        case("UNSUBACK", NeverValid, say_all(&packet(0xb0, &[0, 1, 0, 0]))),
        case("CONNACK again", NeverValid, say_all(&connack(0, &[]))),
        case("CONNECT", NeverValid, say_all(&packet(0x10, b"\0\x04MQTT\x05\x02\0\0\0\0\0"))),
        case("SUBSCRIBE", NeverValid, say_all(&packet(0x82, b"\0\x01\0\0\x01a\0"))),
        case("PINGREQ", NeverValid, say_all(&packet(0xc0, b""))),
        case("PINGRESP for ever", NeverValid, opened(vec![Over(500_000, packet(0xd0, b""))])),
        case("QoS 3", NeverValid, say_all(&packet(0x36, b"\0\x01a\0\x01\0x"))),
        case("packet identifier 0", NeverValid, say_all(&packet(0x32, b"\0\x01a\0\0\0x"))),
        case("a topic with wildcards", NeverValid, say_all(&packet(0x30, b"\0\x03a/#\0x"))),
        case("a topic that is no text", NeverValid, say_all(&packet(0x30, b"\0\x02\xff\xfe\0x"))),
        case("a topic longer than the packet", NeverValid, say_all(&packet(0x30, b"\xff\xffa"))),
        case("an alias that was not agreed", NeverValid, say_all(&packet(0x30, b"\0\0\x03\x23\0\x05x"))),
        case("no topic and no alias", NeverValid, say_all(&packet(0x30, b"\0\0\0x"))),
        case(
            "strangers' messages for ever",
            Counted,
            opened(vec![hear(b"fan-in/+"), say(suback(1)), Over(100_000, publish.clone())]),
        ),
        case(
            "QoS 2 identifiers without end",
            Counted,
            opened(vec![
                hear(b"fan-in/+"),
                say(suback(1)),
                Step::Say(
                    (1..=65_535u16)
                        .flat_map(|id| packet(0x34, &[b"\0\x01a", &id.to_be_bytes()[..], b"\0x"].concat()))
                        .collect(),
                ),
            ]),
        ),
        case("half a message and silence", NeverValid, say_all(&publish[..10])),
        case("DISCONNECT: shutting down", NeverValid, say_all(&packet(0xe0, &[0x8b, 0]))),
        case(
            "DISCONNECT: use another server",
            NeverValid,
            say_all(&packet(0xe0, &[0x9c, 8, 0x1c, 0, 5, b'o', b't', b'h', b'e', b'r'])),
        ),
        case("DISCONNECT: a code that is none", NeverValid, say_all(&packet(0xe0, &[0xfe, 0]))),
        case("zeros", NeverValid, say_all(&[0; 10_000])),
        case("closes in the middle", NeverValid, opened(vec![Wait(600), Close])),
        case("resets in the middle", NeverValid, opened(vec![Wait(600), Reset])),
        case(
            "loses all messages",
            Counted,
            opened(vec![hear(b"fan-in/"), say(suback(1)), Echo(b"fan-in/".to_vec(), vec![])]),
        ),
    ]);
}
