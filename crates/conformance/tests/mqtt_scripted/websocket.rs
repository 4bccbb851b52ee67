//! WebSocket under MQTT: frames of a server, split anywhere, and invalid ones.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_adapters::mqtt::Mqtt5;
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, Goodbye, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::endpoint::{Endpoint, Upgrade};
use pubmark_protocol::events::Cause;
use pubmark_protocol::websocket::accept_key;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::mqtt::{Packet, Version, decode};

use crate::script::{packet, payload};

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes on their way between two sockets of this machine rest for a shorter time.
const QUIET: Duration = Duration::from_millis(50);

/// The server's side of one connection.
struct Frames {
    stream: TcpStream,
    received: Vec<u8>,
}

struct Harness {
    peer: Peer<Mqtt5>,
    listener: TcpListener,
}

impl Harness {
    fn new() -> Harness {
        let listener = pubmark_conformance::ports::listen();
        let address = listener.local_addr().unwrap();
        let upgrade = Upgrade { host: address.to_string(), path: "/mqtt".to_owned(), subprotocol: "mqtt".to_owned() };
        let endpoint = Endpoint {
            shown: format!("ws://{address}"),
            address,
            tls: None,
            credentials: None,
            upgrade: Some(upgrade),
            settings: None,
        };
        Harness { peer: Peer::open(endpoint), listener }
    }

    /// Lets a session connect and reads its request; also returns its key.
    fn connect_client(&mut self, config: SessionConfig) -> (SessionId, Frames, String) {
        let session = self.peer.clients.add_session(config);
        self.peer.clients.connect(session, &mut self.peer.record);
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut frames = Frames { stream, received: Vec::new() };
        let request =
            frames.take(&mut self.peer, |bytes| bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4));
        let request = String::from_utf8(request).unwrap();
        let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap().to_owned();
        (session, frames, key)
    }

    /// Lets a session connect and accepts it, and MQTT's CONNECT with it.
    fn accept(&mut self, config: SessionConfig) -> (SessionId, Frames) {
        let (session, mut frames, key) = self.connect_client(config);
        frames.send_bytes(answer(&key).as_bytes());
        let connect = frames.frame(&mut self.peer);
        assert_eq!((connect.0, connect.1[0]), (0x82, 0x10));
        frames.send_bytes(&frame(0x82, &CONNACK));
        self.peer.wait("connected", |record| !record.connects(session).is_empty());
        (session, frames)
    }

    /// Offers messages until the sockets and the outbox are full; returns how many.
    fn fill(&mut self, session: SessionId, payload_bytes: u32) -> usize {
        let mut handed = 0;
        loop {
            let before = handed;
            while self.peer.offer(session, payload_bytes) == SendOutcome::Accepted {
                handed += 1;
            }
            if handed == before {
                return handed;
            }
            self.peer.flush(session);
            self.peer.linger(10);
        }
    }

    /// Lets a session connect, sends this response to its request, and returns the cause with which the connection
    /// ends.
    fn end_after(&mut self, send_bytes: impl Fn(&str) -> Vec<u8>) -> Cause {
        let (session, mut frames, key) = self.connect_client(session("refused"));
        frames.send_bytes(&send_bytes(&key));
        self.peer.wait("closed", |record| !record.causes(session).is_empty());
        self.peer.record.causes(session).remove(0)
    }
}

const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];

fn answer(key: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
        accept_key(key)
    )
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match u8::try_from(payload.len()) {
        Ok(length @ 0..126) => out.push(length),
        _ => {
            out.push(126);
            out.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

impl Frames {
    fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Runs the client's loop until the received bytes are `long_enough`, and returns them.
    fn take(&mut self, peer: &mut Peer<Mqtt5>, long_enough: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(bytes) = long_enough(&self.received) {
                return self.received.drain(..bytes).collect();
            }
            assert!(Instant::now() < deadline, "gave up; so far: {}", self.received.escape_ascii());
            peer.linger(1);
            let mut bytes = [0; 65_536];
            match self.stream.read(&mut bytes) {
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
    }

    /// The client's next frame: its first byte and its payload.
    fn frame(&mut self, peer: &mut Peer<Mqtt5>) -> (u8, Vec<u8>) {
        let end = |bytes: &[u8]| extent(bytes).map(|(_, end)| end).filter(|end| bytes.len() >= *end);
        let whole = self.take(peer, end);
        let (begin, _) = extent(&whole).unwrap();
        (whole[0], unmask(&whole[begin - 4..begin], &whole[begin..]))
    }

    /// Reads what is in the sockets, while the client's loop stands still: `count` messages at least.
    fn drain(&mut self, count: usize) -> Drained {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut quiet_since = Instant::now();
            while quiet_since.elapsed() < QUIET {
                let mut bytes = [0; 65_536];
                match self.stream.read(&mut bytes) {
                    Ok(0) => panic!("the client closed the connection"),
                    Ok(count) => {
                        self.received.extend_from_slice(&bytes[..count]);
                        quiet_since = Instant::now();
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            }
            let drained = Drained::of(&self.received);
            if drained.packet_ids.len() >= count {
                return drained;
            }
            assert!(Instant::now() < deadline, "{} of {count} messages came", drained.packet_ids.len());
        }
    }
}

/// Messages in the client's frames, the last of which may be cut short.
struct Drained {
    packet_ids: Vec<u16>,
    /// The last message ends in a frame that does not.
    ends_within_a_frame: bool,
}

impl Drained {
    fn of(mut bytes: &[u8]) -> Drained {
        let (mut plain, mut cut_at) = (Vec::new(), usize::MAX);
        while let Some((begin, end)) = extent(bytes) {
            if end > bytes.len() {
                cut_at = plain.len();
            }
            let (frame, rest) = bytes.split_at(end.min(bytes.len()));
            plain.extend(unmask(&frame[begin - 4..begin], &frame[begin..]));
            bytes = rest;
        }
        let (mut packet_ids, mut at) = (Vec::new(), 0);
        while let Some(found) = pubmark_wire::mqtt::frame(&plain[at..], usize::MAX).unwrap() {
            let Packet::Publish(publish) = decode(Version::V5, &found).unwrap() else { panic!("{found:?}") };
            packet_ids.push(publish.head.packet_id.unwrap());
            at += found.total_bytes;
        }
        Drained { packet_ids, ends_within_a_frame: at > cut_at }
    }
}

/// Where the payload of the client's frame at the front begins, and where the frame ends; `None` while its header is not whole.
fn extent(bytes: &[u8]) -> Option<(usize, usize)> {
    let (at, length) = match bytes.get(1)? & 0x7f {
        126 => (4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        length => (2, usize::from(length)),
    };
    (bytes.len() >= at + 4).then_some((at + 4, at + 4 + length))
}

fn unmask(mask: &[u8], payload: &[u8]) -> Vec<u8> {
    payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// Three messages in frames that end anywhere, with a ping in between.
fn three_messages() -> Vec<u8> {
    let publish = |sequence| packet(0x30, &[b"\0\x05topic\0".as_slice(), &payload(sequence, 100)].concat());
    let [first, second, third] = [publish(1), publish(2), publish(3)];
    [
        frame(0x82, &first[..1]),
        frame(0x02, &first[1..50]),
        frame(0x89, b"ping"),
        frame(0x80, &[&first[50..], &second[..10]].concat()),
        frame(0x82, b""),
        frame(0x82, &[&second[10..], third.as_slice()].concat()),
    ]
    .concat()
}

#[test]
fn messages_arrive_whole_wherever_frames_and_reads_end() {
    let bytes = three_messages();
    let mut harness = Harness::new();
    let (session, mut frames) = harness.accept(subscriber("cut", "topic", Qos::BestEffort));
    frames.frame(&mut harness.peer);
    for cut in 0..bytes.len() {
        let before = harness.peer.record.arrived.len();
        frames.send_bytes(&bytes[..cut]);
        harness.peer.linger(1);
        frames.send_bytes(&bytes[cut..]);
        harness.peer.wait("three messages", |record| record.arrived.len() == before + 3);
        assert_eq!(frames.frame(&mut harness.peer), (0x8a, b"ping".to_vec()));
    }
    assert_count!(harness.peer.record.arrived.iter().all(|one| one.intact));
    assert!(harness.peer.record.causes(session).is_empty());
}

#[test]
fn our_messages_are_masked_binary_frames_and_written_when_the_socket_has_them() {
    let mut harness = Harness::new();
    let (session, mut frames) = harness.accept(publisher("out", "topic", Qos::BestEffort));
    assert_eq!(harness.peer.offer(session, 40_000), SendOutcome::Accepted);
    harness.peer.flush(session);
    harness.peer.wait("written", |record| record.written() == 1);
    let mut bytes = Vec::new();
    while bytes.len() < 40_000 {
        let (first, part) = frames.frame(&mut harness.peer);
        assert_eq!(first, 0x82);
        bytes.extend(part);
    }
    assert_eq!((bytes[0], bytes.len()), (0x30, 1 + 3 + 7 + 1 + 40_000));
    // A graceful end: DISCONNECT of MQTT, then a close frame of WebSocket.
    harness.peer.leave(session, Goodbye::Graceful);
    assert_eq!(frames.frame(&mut harness.peer), (0x82, vec![0xe0, 0]));
    assert_eq!(frames.frame(&mut harness.peer), (0x88, vec![3, 0xe8]));
}

#[test]
fn a_server_that_does_not_read_leaves_messages_in_our_hands() {
    let mut harness = Harness::new();
    let (session, _frames) = harness.accept(publisher("stuck", "topic", Qos::BestEffort));
    let handed = harness.fill(session, 1_000);
    assert!(harness.peer.clients.unsent_bytes() > 100_000);
    harness.peer.leave(session, Goodbye::Cut);
    let abandoned =
        harness.peer.record.count(|event| matches!(event, pubmark_conformance::recorder::Event::Abandoned(..)));
    assert!(abandoned > 0);
    assert_count_eq!(harness.peer.record.written() + abandoned, handed);
}

/// Fills the sockets, and acknowledges the last message that is in them. Did it end in a frame that was partly written?
fn acknowledge_the_last_one_written(payload_bytes: u32) -> bool {
    let mut harness = Harness::new();
    let config = SessionConfig { in_flight_window: u16::MAX, ..publisher("ahead", "topic", Qos::AtLeastOnce) };
    let (session, mut frames) = harness.accept(config);
    harness.fill(session, payload_bytes);
    let written = harness.peer.record.written();
    let drained = frames.drain(written);
    let last = drained.packet_ids[drained.packet_ids.len() - 1];
    frames.send_bytes(&frame(0x82, &packet(0x40, &last.to_be_bytes())));
    harness.peer.wait("acknowledged", |record| record.acknowledged() > 0 || !record.causes(session).is_empty());
    assert!(harness.peer.record.causes(session).is_empty(), "{:?}", harness.peer.record.causes(session));
    assert_count_eq!(drained.packet_ids.len(), written);
    drained.ends_within_a_frame
}

/// A server may decode a frame as it arrives.
#[test]
fn a_message_that_ends_in_a_partly_written_frame_is_written_and_can_be_acknowledged() {
    // Where the kernel cuts a frame depends on its buffers.
    let was_cut = (0..10).any(|attempt| acknowledge_the_last_one_written(600 + 37 * attempt));
    assert!(was_cut, "no frame was written in part");
}

#[test]
fn responses_to_the_handshake_are_distinguished() {
    let mut harness = Harness::new();
    let cause = harness.end_after(|_| b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec());
    assert!(matches!(&cause, Cause::Refused(reason) if reason.to_string() == "HTTP 404 Not Found"), "{cause:?}");
    let cause = harness.end_after(|_| b"HTTP/1.1 401 Unauthorized\r\n\r\n".to_vec());
    assert!(
        matches!(&cause, Cause::NotAuthorized(reason) if reason.to_string() == "HTTP 401 Unauthorized"),
        "{cause:?}"
    );
    let cause = harness.end_after(|_| CONNACK.to_vec());
    assert_eq!(cause, Cause::Protocol("no answer of HTTP/1.1 to the WebSocket handshake".to_owned()));
    let cause = harness.end_after(|key| answer(key).replace("mqtt", "chat").into_bytes());
    assert!(matches!(&cause, Cause::Protocol(words) if words.contains("another subprotocol than `mqtt`")), "{cause:?}");
    let cause = harness.end_after(|_| answer("another").into_bytes());
    assert!(matches!(&cause, Cause::Protocol(words) if words.contains("another key than ours")), "{cause:?}");
    // MQTT packets may not precede the end of the handshake.
    let (session, frames, _) = harness.connect_client(session("hung-up"));
    drop(frames);
    harness.peer.wait("closed", |record| !record.causes(session).is_empty());
    let expected = Cause::Dropped("closed by the server during the WebSocket handshake".to_owned());
    assert_eq!(harness.peer.record.causes(session), [expected]);
}

#[test]
fn frames_against_the_rules_end_the_connection() {
    for (bytes, words) in [
        (vec![0x82, 0x81, 0, 0, 0, 0, 0], "WebSocket: a masked frame of the server's"),
        (frame(0x81, b"x"), "WebSocket: a frame of text"),
        (vec![0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255], "WebSocket: a length with its highest bit"),
        (frame(0x82, &packet(0xf0, &[0x18, 0])), ""),
        (frame(0x82, &[0x30, 0xff, 0xff, 0xff, 0x7f]), "packet of 268435460 B exceeds the limit of 8388608 B"),
    ] {
        let mut harness = Harness::new();
        let (session, mut frames) = harness.accept(session("hostile"));
        frames.send_bytes(&bytes);
        harness.peer.wait("closed", |record| !record.causes(session).is_empty());
        let cause = harness.peer.record.causes(session).remove(0);
        assert!(matches!(&cause, Cause::Protocol(found) if found.contains(words)), "{cause:?}");
    }
}

#[test]
fn a_close_is_reported_after_the_packets_before_it() {
    let mut harness = Harness::new();
    let (session, mut frames) = harness.accept(subscriber("closed", "topic", Qos::BestEffort));
    frames.frame(&mut harness.peer);
    let bytes = [three_messages(), frame(0x88, b"\x03\xe9maintenance")].concat();
    frames.send_bytes(&bytes);
    harness.peer.wait("closed", |record| !record.causes(session).is_empty());
    assert_count_eq!(harness.peer.record.arrived.len(), 3);
    let cause = harness.peer.record.causes(session).remove(0);
    let expected = "it closed the WebSocket with code 1001: maintenance";
    assert!(matches!(&cause, Cause::Server { reason, .. } if reason.to_string() == expected), "{cause:?}");
}
