//! Frames of client programs against the vectors that programs in other languages are tested with, and against bytes that are none.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use pubmark_protocol::client_program::*;

const VECTORS: &str = include_str!("../../../clients/test-vectors.json");
const PAGE: &str = include_str!("../../../docs/reference/client-protocol.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn fields_to_program(frame: &ToProgram<'_>) -> (&'static str, Value) {
    match *frame {
        ToProgram::Begin(json) => ("begin", json!({"json": std::str::from_utf8(json).unwrap()})),
        ToProgram::Ping { number } => ("ping", json!({"number": number})),
        ToProgram::Goodbye => ("goodbye", json!({})),
        ToProgram::Topic { client, publication, qos, retain, topic, device_type } => (
            "topic",
            json!({"client": client, "publication": publication, "qos": qos, "retain": retain, "topic": topic,
                   "device_type": device_type}),
        ),
        ToProgram::Connect { client, connection, endpoint, window, client_id, login } => (
            "connect",
            json!({"client": client, "connection": connection, "endpoint": endpoint, "window": window,
                   "client_id": client_id, "login": login.map(|(user, password)| [user, password])}),
        ),
        ToProgram::Subscribe { client, connection, subscription, qos, filter, shared } => (
            "subscribe",
            json!({"client": client, "connection": connection, "subscription": subscription, "qos": qos,
                   "filter": filter, "shared": shared}),
        ),
        ToProgram::Publish { client, connection, publication, sequence, due_ns, ready_ns, payload } => (
            "publish",
            json!({"client": client, "connection": connection, "publication": publication, "sequence": sequence,
                   "due_ns": due_ns, "ready_ns": ready_ns, "payload_hex": hex(payload)}),
        ),
        ToProgram::Disconnect { client, connection, how } => {
            ("disconnect", json!({"client": client, "connection": connection, "how": how.number()}))
        }
    }
}

fn fields_from_program(frame: &FromProgram<'_>) -> (&'static str, Value) {
    match *frame {
        FromProgram::Hello(json) => ("hello", json!({"json": std::str::from_utf8(json).unwrap()})),
        FromProgram::Pong { number, stamp_ns } => ("pong", json!({"number": number, "stamp_ns": stamp_ns})),
        FromProgram::Goodbye => ("goodbye", json!({})),
        FromProgram::Connected { client, connection, receive_maximum, maximum_packet_bytes } => (
            "connected",
            json!({"client": client, "connection": connection, "receive_maximum": receive_maximum,
                   "maximum_packet_bytes": maximum_packet_bytes}),
        ),
        FromProgram::Closed { client, connection, end, code, reason } => (
            "closed",
            json!({"client": client, "connection": connection, "end": end.number(), "code": code, "reason": reason}),
        ),
        FromProgram::Granted { client, connection, subscription, qos, reason } => (
            "granted",
            json!({"client": client, "connection": connection, "subscription": subscription, "qos": qos,
                   "reason": reason}),
        ),
        FromProgram::Revoked { client, connection, subscription, code, reason } => (
            "revoked",
            json!({"client": client, "connection": connection, "subscription": subscription, "code": code,
                   "reason": reason}),
        ),
        FromProgram::Written { client, connection, publication, sequence, stamp_ns } => (
            "written",
            json!({"client": client, "connection": connection, "publication": publication, "sequence": sequence,
                   "stamp_ns": stamp_ns}),
        ),
        FromProgram::Abandoned { client, connection, publication, sequence } => (
            "abandoned",
            json!({"client": client, "connection": connection, "publication": publication, "sequence": sequence}),
        ),
        FromProgram::Acknowledged { client, connection, publication, sequence, code, reason } => (
            "acknowledged",
            json!({"client": client, "connection": connection, "publication": publication, "sequence": sequence,
                   "code": code, "reason": reason}),
        ),
        FromProgram::Delivered { client, connection, retained, stamp_ns, payload_bytes, payload } => (
            "delivered",
            json!({"client": client, "connection": connection, "retained": retained, "stamp_ns": stamp_ns,
                   "payload_bytes": payload_bytes, "payload_hex": hex(payload)}),
        ),
    }
}

/// The vectors were written by another program (Python's `struct`), not by this codec.
#[test]
fn every_vector_is_read_as_its_fields_say_and_written_again_as_it_stands() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for vector in &vectors {
        let (name, to) = (vector["frame"].as_str().unwrap(), vector["to"].as_str().unwrap());
        let expected = bytes(vector["hex"].as_str().unwrap());
        let frame = next_frame(&expected, expected.len()).unwrap().unwrap();
        assert_eq!(frame.bytes, expected.len());
        kinds.insert(frame.kind);
        let mut again = vec![];
        let found = if to == "program" {
            let read = frame.to_program().unwrap();
            read.encode(&mut again);
            fields_to_program(&read)
        } else {
            let read = frame.from_program().unwrap();
            read.encode(&mut again);
            fields_from_program(&read)
        };
        assert_eq!(found, (name, vector["fields"].clone()));
        assert_eq!(hex(&again), hex(&expected), "{name}");
    }
    assert_eq!(kinds.len(), 19, "a vector for each kind of frame");
}

#[test]
fn the_page_shows_every_vector_that_fits_on_a_line() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    for vector in &vectors {
        let hex = vector["hex"].as_str().unwrap();
        assert!(hex.len() > 140 || PAGE.contains(hex), "docs/reference/client-protocol.md lacks {hex}");
    }
}

#[test]
fn a_frame_is_whole_or_awaited_or_refused_by_its_length() {
    let mut out = vec![];
    FromProgram::Pong { number: 1, stamp_ns: 2 }.encode(&mut out);
    FromProgram::Goodbye.encode(&mut out);
    let first = next_frame(&out, 17).unwrap().unwrap();
    assert_eq!((first.bytes, first.from_program()), (21, Ok(FromProgram::Pong { number: 1, stamp_ns: 2 })));
    assert_eq!(next_frame(&out[21..], 17).unwrap().unwrap().from_program(), Ok(FromProgram::Goodbye));
    for short in 0..21 {
        assert_eq!(next_frame(&out[..short], 17), Ok(None));
    }
    assert_eq!(next_frame(&out, 16), Err(Malformed::TooLong { length: 17, most: 16 }));
    assert_eq!(next_frame(&[0; 4], 16), Err(Malformed::Empty));
    assert_eq!(
        next_frame(&[255, 255, 255, 255], 1 << 20).unwrap_err().to_string(),
        "a frame of 4294967295 bytes, where 1048576 are allowed"
    );
}

#[test]
fn fields_that_stand_for_nothing_are_refused() {
    let read = |kind: u8, body: &[u8]| Frame { kind, body, bytes: 0 }.from_program().unwrap_err().to_string();
    assert_eq!(read(0x01, &[]), "a frame of kind 0x01, which there is not");
    assert_eq!(read(0x83, &[1]), "a frame of kind 0x83 with bytes behind its last field");
    assert_eq!(read(0x85, &[0, 0, 0, 0, 0, 0, 0, 0, 9, 0]), "a frame of kind 0x85 with 9 for `end`");
    assert_eq!(read(0x86, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]), "a frame of kind 0x86 with 3 for `qos`");
    assert_eq!(
        read(0x86, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 255]),
        "a frame of kind 0x86 with a text that is no UTF-8"
    );
    assert_eq!(read(0x8b, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127]), "a frame of kind 0x8b with 127 for `code`");
    assert_eq!(
        read(0x8b, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 135, 255]),
        "a frame of kind 0x8b with a text that is no UTF-8"
    );
    assert_eq!(read(0x8b, &[0; 10]), "a frame of kind 0x8b that ends within a field");
    let delivered = |payload_bytes: u32, payload: &[u8]| {
        let mut out = vec![];
        let (client, connection, retained, stamp_ns) = (0, 1, false, 0);
        FromProgram::Delivered { client, connection, retained, stamp_ns, payload_bytes, payload }.encode(&mut out);
        next_frame(&out, out.len()).unwrap().unwrap().from_program().is_ok()
    };
    assert!(delivered(16, &[0; 16]) && delivered(0, &[]) && delivered(1 << 20, &[0; SHORTEST_PART]));
    assert!(!delivered(16, &[0; 17]), "more than the whole");
    assert!(!delivered(16, &[0; 15]) && !delivered(1 << 20, &[0; SHORTEST_PART - 1]), "no room for a header");
}

#[test]
fn a_hello_is_checked() {
    let hello = |json: Value| Hello::read(json.to_string().as_bytes()).map_err(|error| error.to_string());
    let protocols = json!([{"name": "mqtt5", "qos": [0, 1]}]);
    let good =
        hello(json!({"versions": [1, 2], "name": "paho-mqtt", "version": "2.1", "protocols": protocols, "later": 1}));
    let good = good.unwrap();
    assert_eq!((good.title().as_str(), good.stamps), ("paho-mqtt 2.1", false));
    assert!(good.claims("mqtt5").is_some_and(|claims| !claims.retain) && good.claims("nats").is_none());
    let refused = |json: Value| hello(json).unwrap_err();
    assert!(refused(json!({})).starts_with("its hello cannot be read: missing field"));
    let other = json!({"versions": [2], "name": "a", "version": "1", "protocols": protocols});
    assert_eq!(refused(other), "it speaks versions [2] of the client protocol, pubmark speaks 1");
    let unnamed = json!({"versions": [1], "name": "a\u{1b}[0m", "version": "1", "protocols": protocols});
    assert!(refused(unnamed).contains("printable"));
    let level = json!({"versions": [1], "name": "a", "version": "1", "protocols": [{"name": "mqtt5", "qos": [3]}]});
    assert!(refused(level).contains("`qos`"));
    assert!(Hello::read(&vec![b' '; LONGEST_HANDSHAKE + 1]).is_err());
}

#[test]
fn a_text_that_is_too_long_is_cut_between_letters() {
    let topic = "ü".repeat(LONGEST_TEXT);
    let mut out = vec![];
    let (client, publication, qos, retain) = (0, 0, 0, false);
    ToProgram::Topic { client, publication, qos, retain, topic: &topic, device_type: "" }.encode(&mut out);
    let Ok(ToProgram::Topic { topic: read, .. }) = next_frame(&out, out.len()).unwrap().unwrap().to_program() else {
        panic!("it is a topic");
    };
    assert_eq!(read.len(), LONGEST_TEXT - 1);
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), most in 0usize..300) {
        if let Ok(Some(frame)) = next_frame(&bytes, most) {
            prop_assert!(frame.bytes <= bytes.len() && frame.bytes <= most + LENGTH_BYTES);
            let _ = frame.from_program();
            let _ = frame.to_program();
        }
        let _ = Hello::read(&bytes);
    }

    #[test]
    fn a_frame_with_other_bytes_in_it_is_what_it_says_or_an_error(which in 0usize..23, changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6), cut in any::<usize>()) {
        let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
        let mut frame = bytes(vectors[which % vectors.len()]["hex"].as_str().unwrap());
        for (at, byte) in changes {
            let at = LENGTH_BYTES + at % (frame.len() - LENGTH_BYTES);
            frame[at] = byte;
        }
        frame.truncate(LENGTH_BYTES + 1 + cut % (frame.len() - LENGTH_BYTES));
        finish(&mut frame, 0);
        let read = next_frame(&frame, frame.len()).unwrap().unwrap();
        let mut again = vec![];
        if let Ok(from) = read.from_program() {
            from.encode(&mut again);
            prop_assert_eq!(&again, &frame);
            again.clear();
        }
        if let Ok(to) = read.to_program() {
            to.encode(&mut again);
            // A connect without a log-in has none, whatever bytes the fields contain.
            if !matches!(to, ToProgram::Connect { login: None, .. }) {
                prop_assert_eq!(&again, &frame);
            }
        }
    }
}
