//! A responder against a scripted client.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use pubmark_adapters::coap::{CoapClients, Standard, Timing};
use pubmark_conformance::peer::{Peer, RUN};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::{Event, ReceivedRequest};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, Goodbye, SendOutcome, SessionId};
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, Writer, encode_empty, encode_levels, number};

use crate::requests::{answer, endpoint, responder};
use crate::script::{ClientMessage, TenfoldTiming};

const PATIENCE: Duration = Duration::from_secs(20);

/// A responder with these times, and a client.
struct Harness<T: Timing> {
    peer: Peer<CoapClients<T>>,
    id: SessionId,
    address: SocketAddr,
    client: UdpSocket,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

impl<T: Timing> Harness<T> {
    fn new() -> Harness<T> {
        let address = ports::free();
        let mut peer = Peer::open(endpoint(address));
        let id = peer.join(responder("room/+", Qos::AtLeastOnce));
        Harness { peer, id, address, client: socket() }
    }

    fn send_bytes(&self, bytes: &[u8]) {
        self.client.send_to(bytes, self.address).unwrap();
    }

    fn try_receive(&self) -> Option<ClientMessage> {
        let mut bytes = [0; 4_096];
        let count = self.client.recv(&mut bytes).ok()?;
        Some(ClientMessage { bytes: bytes[..count].to_vec() })
    }

    fn receive(&mut self) -> ClientMessage {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(received) = self.try_receive() {
                return received;
            }
            assert!(Instant::now() < deadline, "the responder says nothing");
            self.peer.linger(1);
        }
    }

    /// The next response, whether piggybacked or separate.
    fn response(&mut self) -> ClientMessage {
        loop {
            let received = self.receive();
            if received.message().kind == Kind::Confirmable {
                self.send_bytes(&empty(Kind::Acknowledgement, received.id()));
            }
            if received.message().code.is_response() {
                return received;
            }
        }
    }

    /// A request that was received.
    fn received(&mut self, bytes: &[u8]) -> ReceivedRequest {
        let before = self.peer.record.received_requests.len();
        self.send_bytes(bytes);
        self.peer.wait("the request", |record| record.received_requests.len() > before);
        self.peer.record.received_requests[before].clone()
    }

    fn reply(&mut self, asked: &ReceivedRequest, number: u32, bytes: u32) {
        assert_eq!(self.peer.clients.reply(self.id, &answer(asked, number, bytes)), SendOutcome::Accepted);
        self.peer.flush(self.id);
    }

    fn written(&self) -> usize {
        self.peer.record.written()
    }

    fn abandoned(&self) -> usize {
        self.peer.record.count(|event| matches!(event, Event::Abandoned(..)))
    }
}

fn payload(sequence: u32, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    header::write(&mut out, bytes, RUN, 7, sequence, 1);
    out.extend((out.len()..bytes).map(|index| (index % 251) as u8));
    out
}

/// A request with these options, in order after the path of `room/1`.
fn request(kind: Kind, message_id: u16, token: &[u8], options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(kind, Code::FETCH, message_id, token, &mut out);
    encode_levels(&mut writer, "room/1");
    options.iter().for_each(|(number, value)| writer.option(*number, value));
    writer.end(payload);
    out
}

fn empty(kind: Kind, message_id: u16) -> Vec<u8> {
    let mut out = Vec::new();
    encode_empty(kind, message_id, &mut out);
    out
}

#[test]
fn an_early_reply_is_piggybacked_and_repeated_with_its_request() {
    let mut harness: Harness<Standard> = Harness::new();
    let asks = request(Kind::Confirmable, 700, b"tok", &[], &payload(3, 100));
    let asked = harness.received(&asks);
    assert_count_eq!((asked.header.sequence, asked.payload_bytes), (3, 100));
    harness.reply(&asked, 1, 200);
    let first = harness.receive();
    let message = first.message();
    assert_eq!((message.kind, message.code, message.message_id), (Kind::Acknowledgement, Code::CONTENT, 700));
    assert_eq!((message.token, message.payload.len()), (&b"tok"[..], 200));
    let replied = header::read_reply(message.payload, RUN, 0).unwrap();
    assert_count_eq!((replied.publisher, replied.sequence, replied.due_ns), (7, 3, 1));
    for _ in 0..3 {
        harness.send_bytes(&asks);
        assert_eq!(harness.receive().bytes, first.bytes, "the same answer to the same message");
    }
    assert_count_eq!((harness.peer.record.received_requests.len(), harness.written()), (1, 1));
    // The identifier is used again: another token makes it another request.
    harness.received(&request(Kind::Confirmable, 700, b"tik", &[], &payload(4, 100)));
}

#[test]
fn a_late_reply_is_a_separate_response_and_is_retransmitted_until_it_is_acknowledged() {
    let mut harness: Harness<TenfoldTiming> = Harness::new();
    let asks = request(Kind::Confirmable, 700, b"tok", &[], &payload(3, 100));
    let asked = harness.received(&asks);
    assert!(harness.receive().is_empty(Kind::Acknowledgement, 700), "before who asks would repeat itself");
    harness.send_bytes(&asks);
    assert!(harness.receive().is_empty(Kind::Acknowledgement, 700), "its acknowledgement may have been lost");
    harness.reply(&asked, 1, 100);
    let first = harness.receive();
    let message = first.message();
    assert_eq!((message.kind, message.code, message.token), (Kind::Confirmable, Code::CONTENT, &b"tok"[..]));
    for _ in 0..2 {
        assert_eq!(harness.receive().bytes, first.bytes);
    }
    // An acknowledgement by another client has no effect.
    socket().send_to(&empty(Kind::Acknowledgement, first.id()), harness.address).unwrap();
    assert_eq!(harness.receive().bytes, first.bytes);
    harness.send_bytes(&empty(Kind::Acknowledgement, first.id()));
    harness.peer.linger(3_000);
    assert!(harness.try_receive().is_none());
    assert_count_eq!((harness.peer.record.received_requests.len(), harness.written()), (1, 1));
}

#[test]
fn a_reply_that_is_rejected_or_never_acknowledged_is_reported() {
    let mut harness: Harness<TenfoldTiming> = Harness::new();
    let asked = harness.received(&request(Kind::Confirmable, 700, b"tok", &[], &payload(3, 100)));
    assert!(harness.receive().is_empty(Kind::Acknowledgement, 700));
    harness.reply(&asked, 1, 100);
    let separate = harness.receive();
    harness.send_bytes(&empty(Kind::Reset, separate.id()));
    let refused = |event: &Event| matches!(event, Event::Acknowledged(_, token, Err(_)) if token.sequence == 1);
    harness.peer.wait("rejected", |record| record.count(refused) == 1);
    let asked = harness.received(&request(Kind::Confirmable, 701, b"tok", &[], &payload(4, 100)));
    assert!(harness.receive().is_empty(Kind::Acknowledgement, 701));
    harness.reply(&asked, 2, 100);
    harness.peer.wait("given up", |record| record.unanswered() == 1);
    let mut copies = 0;
    while harness.try_receive().is_some() {
        copies += 1;
    }
    assert_count_eq!((copies, harness.written()), (5, 2), "once and four repetitions (RFC 7252 §4.8)");
}

#[test]
fn at_best_effort_a_reply_is_sent_once_and_a_request_received_once() {
    let mut harness: Harness<TenfoldTiming> = Harness::new();
    let asks = request(Kind::NonConfirmable, 700, b"tok", &[], &payload(3, 100));
    let asked = harness.received(&asks);
    harness.send_bytes(&asks);
    harness.peer.linger(400);
    assert!(harness.try_receive().is_none(), "nothing is acknowledged");
    harness.reply(&asked, 1, 100);
    let answer = harness.receive();
    assert_eq!((answer.message().kind, answer.message().token), (Kind::NonConfirmable, &b"tok"[..]));
    harness.send_bytes(&asks);
    harness.peer.linger(1_500);
    assert!(harness.try_receive().is_none());
    assert_count_eq!((harness.peer.record.received_requests.len(), harness.written()), (1, 1));
}

#[test]
fn a_request_for_another_path_is_refused_and_not_reported() {
    let mut harness: Harness<TenfoldTiming> = Harness::new();
    let body = payload(3, 100);
    let con = Kind::Confirmable;
    let message = |code: Code, id: u16, topic: &str, options: &[(u16, &[u8])]| {
        let mut out = Vec::new();
        let mut writer = Writer::new(con, code, id, b"t", &mut out);
        encode_levels(&mut writer, topic);
        options.iter().for_each(|(number, value)| writer.option(*number, value));
        writer.end(&body);
        out
    };
    let late = [Block { number: 3, more: false, exponent: 6 }.value() as u8];
    for (id, asks, expected) in [
        (1, message(Code::FETCH, 1, "room/1/x", &[]), Code::NOT_FOUND),
        (2, message(Code::FETCH, 2, "elsewhere", &[]), Code::NOT_FOUND),
        (3, message(Code::GET, 3, "room/1", &[]), Code::METHOD_NOT_ALLOWED),
        (4, message(Code::PUT, 4, "room/1", &[]), Code::METHOD_NOT_ALLOWED),
        (5, message(Code::FETCH, 5, "room/1", &[(number::ACCEPT, b""), (19, b"")]), Code::BAD_OPTION),
        (6, message(Code::FETCH, 6, "room/1", &[(number::PROXY_URI, b"coap://x")]), Code::PROXYING_NOT_SUPPORTED),
        (7, message(Code::FETCH, 7, "room/1", &[(number::BLOCK1, &late)]), Code::REQUEST_ENTITY_INCOMPLETE),
        (8, message(Code::FETCH, 8, "room/1", &[(number::BLOCK2, &late)]), Code::REQUEST_ENTITY_INCOMPLETE),
        (9, message(Code::FETCH, 9, "room/1", &[(number::BLOCK1, &[0x07])]), Code::BAD_REQUEST),
    ] {
        for _ in 0..2 {
            harness.send_bytes(&asks);
            let said = harness.receive();
            let found = (said.message().kind, said.message().code, said.id());
            assert_eq!(found, (Kind::Acknowledgement, expected, id));
        }
    }
    harness.send_bytes(&empty(con, 20));
    assert!(harness.receive().is_empty(Kind::Reset, 20), "a ping");
    harness.send_bytes(&[0x40, 0x45, 0, 21]);
    assert!(harness.receive().is_empty(Kind::Reset, 21), "a response to nothing");
    let whole = request(con, 22, b"tok", &[], &body);
    for length in (4..whole.len() - body.len()).filter(|length| *length > 7) {
        harness.send_bytes(&whole[..length]);
    }
    for garbage in [&b""[..], b"\x40", b"GET / HTTP/1.1\r\n", &[0xff; 1_500]] {
        harness.send_bytes(garbage);
    }
    harness.peer.linger(100);
    let received = harness.peer.record.received_requests.len();
    assert_count_eq!(received, 0, "nothing of it is a request with a header");
    assert_eq!(harness.peer.record.causes(harness.id), []);
}

#[test]
fn a_request_in_blocks_is_assembled_by_its_tag_and_its_reply_has_the_requested_block_size() {
    let mut harness: Harness<Standard> = Harness::new();
    let bodies = [payload(1, 2_500), payload(2, 2_500)];
    let mut id = 100;
    // Two at the same time, each block twice.
    for index in 0..3 {
        for (tag, body) in [b"x", b"y"].into_iter().zip(&bodies) {
            id += 1;
            let part = &body[index * 1_024..body.len().min((index + 1) * 1_024)];
            let value = [Block { number: index as u32, more: index < 2, exponent: 6 }.value() as u8];
            let small = [Block { number: 0, more: false, exponent: 4 }.value() as u8];
            let options = [(number::BLOCK2, &small[..]), (number::BLOCK1, &value[..]), (number::REQUEST_TAG, &tag[..])];
            let asks = request(Kind::Confirmable, id, tag, &options, part);
            for _ in 0..if index < 2 { 2 } else { 0 } {
                harness.send_bytes(&asks);
                let said = harness.receive();
                assert_eq!((said.message().code, said.id()), (Code::CONTINUE, id));
                assert_eq!(said.message().options.get(number::BLOCK1), Some(&value[..]));
            }
            if index == 2 {
                let asked = harness.received(&asks);
                assert_eq!(asked.payload_bytes, 2_500);
                assert_count_eq!(asked.header.sequence, if tag == b"x" { 1 } else { 2 });
            }
        }
    }
    assert_count!(harness.peer.record.arrived.iter().all(|one| one.payload_bytes == 2_500));
    let asked = harness.peer.record.received_requests.clone();
    for (tag, sequence) in [(b"x", 1), (b"y", 2)] {
        harness.reply(&asked[sequence as usize - 1], sequence, 600);
        let first = harness.response();
        let message = first.message();
        assert_eq!((message.token, message.payload.len()), (&tag[..], 256));
        let found = message.options.get(number::BLOCK2).and_then(Block::read).unwrap();
        assert_eq!((found.number, found.more, found.exponent), (0, true, 4));
        let etag = message.options.get(number::ETAG).unwrap().to_vec();
        let mut whole = message.payload.to_vec();
        for index in 1..3 {
            assert_count_eq!(harness.written(), sequence as usize - 1, "written with its last block");
            id += 1;
            let value = [Block { number: index, more: false, exponent: 4 }.value() as u8];
            let options = [(number::BLOCK2, &value[..]), (number::REQUEST_TAG, &tag[..])];
            let asks = request(Kind::Confirmable, id, b"blk", &options, b"");
            for copy in 0..2 {
                harness.send_bytes(&asks);
                let block = harness.receive();
                let message = block.message();
                assert_eq!((message.token, message.options.get(number::ETAG)), (&b"blk"[..], Some(&etag[..])));
                if copy == 0 {
                    whole.extend_from_slice(message.payload);
                }
            }
        }
        assert_eq!(whole.len(), 600);
        assert_count_eq!(header::read_reply(&whole, RUN, 0).unwrap().sequence, sequence);
        harness.peer.wait("written", |record| record.written() == sequence as usize);
    }
    assert_count_eq!((harness.peer.record.received_requests.len(), harness.abandoned()), (2, 0));
}

#[test]
fn a_reply_whose_blocks_are_not_fetched_is_given_up() {
    let mut harness: Harness<TenfoldTiming> = Harness::new();
    let asked = harness.received(&request(Kind::NonConfirmable, 1, b"t", &[], &payload(1, 24)));
    harness.reply(&asked, 1, 5_000);
    assert_eq!(harness.receive().message().payload.len(), 1_024);
    harness.peer.wait("given up", |record| record.count(|event| matches!(event, Event::Abandoned(..))) == 1);
    assert_count_eq!(harness.written(), 0);
    // So is a reply that is queued when the session ends, and one without an address.
    let asked = harness.received(&request(Kind::NonConfirmable, 2, b"t", &[], &payload(2, 24)));
    harness.reply(&asked, 2, 5_000);
    for to in [
        ReplyTo { address: "nowhere", correlation: &asked.correlation },
        ReplyTo { address: &asked.address, correlation: &[] },
        ReplyTo { address: "127.0.0.1:0", correlation: &asked.correlation },
    ] {
        let lost = OutgoingReply { to, ..answer(&asked, 3, 24) };
        assert_eq!(harness.peer.clients.reply(harness.id, &lost), SendOutcome::Accepted);
        harness.peer.flush(harness.id);
    }
    assert_count_eq!((harness.abandoned(), harness.written()), (4, 0));
    harness.peer.leave(harness.id, Goodbye::Graceful);
    assert_count_eq!(harness.abandoned(), 5);
}

#[test]
fn a_used_port_is_reported_and_a_session_that_disconnected_can_listen_again() {
    let mut harness: Harness<TenfoldTiming> = Harness::new();
    let mut second: Peer<CoapClients<TenfoldTiming>> = Peer::open(endpoint(harness.address));
    let cause = second.fail_to_connect(responder("room/+", Qos::AtLeastOnce));
    assert!(format!("{cause:?}").contains("failed to listen on"), "{cause:?}");
    harness.peer.leave(harness.id, Goodbye::Graceful);
    harness.peer.connect(harness.id);
    harness.received(&request(Kind::Confirmable, 1, b"t", &[], &payload(1, 24)));
}
