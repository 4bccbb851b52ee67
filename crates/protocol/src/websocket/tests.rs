//! Tests of the client's side: cut at every byte, hostile servers, the examples of the standard.

use pubmark_model::random::Stream;

use super::frames::append_frame;
use super::*;

fn upgrade() -> Upgrade {
    Upgrade { host: "broker.example:8080".to_owned(), path: "/mqtt".to_owned(), subprotocol: "mqtt".to_owned() }
}

/// A WebSocket that has sent its request, and the key in it.
fn requested() -> (WebSocket, String) {
    let mut websocket = WebSocket::new(&upgrade());
    let request = String::from_utf8(websocket.outgoing().to_vec()).unwrap();
    websocket.took(request.len());
    assert!(!websocket.wants_write() && websocket.is_opening());
    assert!(request.starts_with("GET /mqtt HTTP/1.1\r\nHost: broker.example:8080\r\n"), "{request}");
    assert!(request.ends_with("Sec-WebSocket-Protocol: mqtt\r\n\r\n"), "{request}");
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap().to_owned();
    (websocket, key)
}

fn response(key: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
        accept_key(key)
    )
}

fn open() -> WebSocket {
    let (mut websocket, key) = requested();
    assert!(!websocket.read(response(&key).as_bytes(), &mut Vec::new()));
    assert!(websocket.is_open());
    websocket
}

/// A frame of a server's.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        length @ 0..126 => out.push(length as u8),
        length @ 126..0x1_0000 => {
            out.push(126);
            out.extend((length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend((length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

/// Decodes a frame of ours: its first byte and its payload, and what follows.
fn unmasked(bytes: &[u8]) -> (u8, Vec<u8>, &[u8]) {
    assert_eq!(bytes[1] & 0x80, 0x80, "our frames are masked");
    let (length, at) = match bytes[1] & 0x7f {
        126 => (usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), 4),
        127 => panic!("our frames fit in 16 bits"),
        short => (usize::from(short), 2),
    };
    let mask = &bytes[at..at + 4];
    let payload =
        bytes[at + 4..at + 4 + length].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    (bytes[0], payload, &bytes[at + 4 + length..])
}

#[test]
fn the_examples_of_the_standard_hold() {
    // RFC 6455 §1.3 and §5.7.
    assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let mut out = Vec::new();
    append_frame(0x1, b"Hello", [0x37, 0xfa, 0x21, 0x3d], &mut out);
    assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
}

#[test]
fn frames_round_trip_and_retain_no_memory() {
    let mut websocket = open();
    for size in [0, 1, 7, 8, 125, 126, 1_000, FRAME_BYTES] {
        let plain: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
        websocket.put(&plain);
        let bytes = websocket.outgoing().to_vec();
        assert!(bytes.len() <= 16 * 1024);
        let (first, payload, rest) = unmasked(&bytes);
        assert_eq!((first, payload, rest), (0x82, plain, &[][..]));
        websocket.took(bytes.len());
        assert!(!websocket.wants_write() && websocket.outgoing.capacity() <= RETAINED_BYTES);
    }
    websocket.close();
    assert_eq!(unmasked(websocket.outgoing()), (0x88, 1_000_u16.to_be_bytes().to_vec(), &[][..]));
}

#[test]
fn payload_counts_as_accepted_byte_by_byte_and_headers_never() {
    let mut websocket = open();
    assert_eq!(websocket.take_accepted(), 0, "the request of the handshake has no payload");
    websocket.put(b"payload");
    let header_bytes = websocket.waiting_bytes() - 7;
    assert_eq!(websocket.waiting_payload_bytes(), 7);
    websocket.took(header_bytes);
    assert_eq!((websocket.take_accepted(), websocket.waiting_payload_bytes()), (0, 7));
    for left in (4..7).rev() {
        websocket.took(1);
        assert_eq!((websocket.take_accepted(), websocket.waiting_payload_bytes()), (1, left));
    }
    // A close frame follows the frame that is partly written.
    websocket.close();
    websocket.took(3);
    websocket.took(websocket.waiting_bytes());
    assert_eq!((websocket.take_accepted(), websocket.waiting_payload_bytes()), (4, 0));
    assert_eq!((websocket.take_accepted(), websocket.waiting_bytes()), (0, 0));
}

/// A response and frames after it, with their payload.
fn conversation(key: &str) -> (Vec<u8>, Vec<u8>) {
    let long: Vec<u8> = (0..300).map(|byte| byte as u8).collect();
    let bytes = [
        response(key).into_bytes(),
        frame(0x82, b"whole"),
        frame(0x02, b"in "),
        frame(0x89, b"are you there?"),
        frame(0x00, b""),
        frame(0x00, b"three "),
        frame(0x8a, b"unasked"),
        frame(0x80, b"parts"),
        frame(0x82, &long),
        frame(0x82, b""),
    ];
    (bytes.concat(), [b"wholein three parts".as_slice(), &long].concat())
}

#[test]
fn a_conversation_cut_at_any_byte_carries_the_same() {
    let (whole, expected) = conversation("");
    for cut in 0..=whole.len() {
        let (mut websocket, key) = requested();
        let (bytes, _) = conversation(&key);
        let mut out = Vec::new();
        assert!(!websocket.read(&bytes[..cut], &mut out), "{:?}", websocket.fault());
        assert!(!websocket.read(&bytes[cut..], &mut out), "{:?}", websocket.fault());
        assert_eq!(out, expected, "cut at {cut}");
        assert!(!websocket.ends_with_data());
        assert_eq!(unmasked(websocket.outgoing()), (0x8a, b"are you there?".to_vec(), &[][..]));
    }
    let (mut websocket, key) = requested();
    let mut out = Vec::new();
    conversation(&key).0.iter().for_each(|byte| assert!(!websocket.read(&[*byte], &mut out)));
    assert_eq!(out, expected);
}

#[test]
fn a_long_frame_is_passed_on_as_it_comes() {
    let mut websocket = open();
    let payload = vec![7; 70_000];
    let bytes = frame(0x82, &payload);
    let mut out = Vec::new();
    assert!(!websocket.read(&bytes[..1_000], &mut out));
    assert_eq!(out.len(), 990);
    assert!(websocket.ends_with_data());
    assert!(!websocket.read(&bytes[1_000..], &mut out));
    assert_eq!(out, payload);
}

#[test]
fn a_wrong_handshake_response_is_reported_with_the_reason() {
    let good = |key: &str| response(key);
    let handshake = |words: &str| Fault::Handshake(words.to_owned());
    type Change = fn(String) -> String;
    let cases: [(Change, Fault); 11] = [
        (|_| "\0\0\0".to_owned(), handshake("no answer of HTTP/1.1")),
        (|_| "HTTP/1.0 200 OK\r\n".to_owned(), handshake("no answer of HTTP/1.1")),
        (
            |_| "HTTP/1.1 404 Not\tFound\r\n\r\n".to_owned(),
            Fault::Refused { status: 404, reason: "NotFound".to_owned() },
        ),
        (|_| "HTTP/1.1 401\r\n\r\n".to_owned(), Fault::Refused { status: 401, reason: String::new() }),
        (|_| "HTTP/1.1 yes\r\n\r\n".to_owned(), handshake("an answer without a status")),
        (|text| text.replace("WebSocket", "h2c"), handshake("an answer that upgrades to something else")),
        (|text| text.replace("keep-alive, Upgrade", "close"), handshake("an answer that upgrades to something else")),
        (|text| text.replace("Accept: ", "Accept: x"), handshake("an answer to another key than ours")),
        (
            |text| text.replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
            handshake("an answer with extensions that nobody asked for"),
        ),
        (
            |text| text.replace("Protocol: mqtt", "Protocol: chat"),
            handshake("an answer with another subprotocol than `mqtt`"),
        ),
        (
            |text| text.replace("Sec-WebSocket-Protocol: mqtt\r\n", ""),
            handshake("an answer without the subprotocol `mqtt`"),
        ),
    ];
    for (change, expected) in cases {
        let (mut websocket, key) = requested();
        assert!(websocket.read(change(good(&key)).as_bytes(), &mut Vec::new()));
        assert_eq!(websocket.fault(), Some(&expected));
    }
    let (mut websocket, _) = requested();
    let endless = format!("HTTP/1.1 101 Yes\r\n{}", "X: y\r\n".repeat(10_000));
    assert!(websocket.read(endless.as_bytes(), &mut Vec::new()));
    assert_eq!(websocket.fault(), Some(&handshake("an answer without end")));
}

#[test]
fn frames_against_the_rules_end_it() {
    for (bytes, what) in [
        (vec![0xc2, 0], "a frame with reserved bits"),
        (vec![0x82, 0x80], "a masked frame of the server's"),
        (vec![0x81, 0], "a frame of text where bytes were agreed on"),
        (vec![0x80, 0], "a continuation of nothing"),
        (vec![0x83, 0], "a frame of an unknown kind"),
        (vec![0x8b, 0], "a frame of an unknown kind"),
        (vec![0x09, 0], "a control frame in parts"),
        (vec![0x89, 126], "a control frame of more than 125 B"),
        (vec![0x02, 0, 0x82, 0], "a new message inside another"),
        (vec![0x82, 126, 0, 125], "a length longer than it needs to be"),
        (vec![0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255], "a length longer than it needs to be"),
        (vec![0x82, 127, 128, 0, 0, 0, 0, 0, 0, 0], "a length with its highest bit"),
        (vec![0x88, 1, 3], "a close frame with half a code"),
    ] {
        let mut websocket = open();
        let mut out = Vec::new();
        assert!(websocket.read(&[frame(0x82, b"before"), bytes].concat(), &mut out));
        assert_eq!((websocket.fault(), out.as_slice()), (Some(&Fault::Frame(what)), &b"before"[..]));
    }
}

#[test]
fn a_close_frame_is_returned_and_reported() {
    for (payload, code, reason) in
        [(&b""[..], None, ""), (b"\x03\xe9going\r\n away", Some(1_001), "going away"), (b"\x03\xf1", Some(1_009), "")]
    {
        let mut websocket = open();
        let mut out = Vec::new();
        let bytes = [frame(0x82, b"last"), frame(0x88, payload), frame(0x82, b"behind")].concat();
        assert!(websocket.read(&bytes, &mut out));
        assert_eq!(out, b"last");
        assert_eq!(websocket.fault(), Some(&Fault::Closed { code, reason: reason.to_owned() }));
        assert_eq!(unmasked(websocket.outgoing()).0, 0x88);
    }
}

#[test]
fn pings_without_end_cost_one_answer() {
    let mut websocket = open();
    for number in 0..1_000_u16 {
        assert!(!websocket.read(&frame(0x89, &number.to_be_bytes()), &mut Vec::new()));
    }
    assert!(websocket.wants_write());
    assert_eq!(unmasked(websocket.outgoing()), (0x8a, 999_u16.to_be_bytes().to_vec(), &[][..]));
    // A pong is never inserted into a frame that is partly written.
    let mut websocket = open();
    websocket.put(b"half");
    let half = websocket.outgoing().len() / 2;
    websocket.took(half);
    assert!(!websocket.read(&frame(0x89, b"?"), &mut Vec::new()));
    let rest = websocket.outgoing().len();
    assert_eq!(rest, 10 - half);
    websocket.took(rest);
    assert_eq!(unmasked(websocket.outgoing()).1, b"?");
}

#[test]
fn announced_lengths_and_noise_hold_no_memory_and_end_nothing_but_the_connection() {
    let mut websocket = open();
    let mut out = Vec::new();
    assert!(!websocket.read(&[0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3], &mut out));
    assert_eq!((out.as_slice(), out.capacity() < 1_000), (&[1, 2, 3][..], true));
    let draws = Stream::new(0x5eed, 2);
    let mut drawn = 0;
    let mut next = |below: u64| {
        drawn += 1;
        draws.bits(drawn) % below
    };
    for _ in 0..3_000 {
        let (mut websocket, key) = requested();
        let (mut bytes, _) = conversation(&key);
        for _ in 0..next(4) {
            let place = next(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << next(8);
        }
        let mut out = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (part, behind) = rest.split_at((next(400) as usize + 1).min(rest.len()));
            rest = behind;
            if websocket.read(part, &mut out) {
                assert!(websocket.fault().is_some());
                break;
            }
        }
        assert!(out.len() <= bytes.len());
    }
}
