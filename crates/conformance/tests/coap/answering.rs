//! A responder, asked by a client whose every datagram the test decides.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use pubmark_adapters::coap::{CoapClients, Standard, Timing};
use pubmark_conformance::peer::{Peer, RUN};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::{Asked, Event};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, Goodbye, SendOutcome, SessionId};
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::{Block, Code, Kind, Writer, encode_empty, encode_levels, number};

use crate::requests::{answer, endpoint, responder};
use crate::script::{Heard, Tenth};

const PATIENCE: Duration = Duration::from_secs(20);

/// A responder with these times, and a client.
struct Stage<T: Timing> {
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

impl<T: Timing> Stage<T> {
    fn new() -> Stage<T> {
        let address = ports::free();
        let mut peer = Peer::open(endpoint(address));
        let id = peer.join(responder("room/+", Qos::AtLeastOnce));
        Stage { peer, id, address, client: socket() }
    }

    fn say(&self, bytes: &[u8]) {
        self.client.send_to(bytes, self.address).unwrap();
    }

    fn look(&self) -> Option<Heard> {
        let mut bytes = [0; 4_096];
        let count = self.client.recv(&mut bytes).ok()?;
        Some(Heard { bytes: bytes[..count].to_vec() })
    }

    fn hear(&mut self) -> Heard {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(heard) = self.look() {
                return heard;
            }
            assert!(Instant::now() < deadline, "the responder says nothing");
            self.peer.linger(1);
        }
    }

    /// The next response, whether in an acknowledgement or behind one.
    fn response(&mut self) -> Heard {
        loop {
            let heard = self.hear();
            if heard.message().kind == Kind::Confirmable {
                self.say(&empty(Kind::Acknowledgement, heard.id()));
            }
            if heard.message().code.is_response() {
                return heard;
            }
        }
    }

    /// A request that was heard.
    fn heard(&mut self, bytes: &[u8]) -> Asked {
        let before = self.peer.record.asked.len();
        self.say(bytes);
        self.peer.wait("the request", |record| record.asked.len() > before);
        self.peer.record.asked[before].clone()
    }

    fn reply(&mut self, asked: &Asked, number: u32, bytes: u32) {
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

/// A request with these options, in order behind the path of `room/1`.
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
fn an_answer_that_is_there_soon_goes_in_the_acknowledgement_and_comes_again_with_its_request() {
    let mut stage: Stage<Standard> = Stage::new();
    let asks = request(Kind::Confirmable, 700, b"tok", &[], &payload(3, 100));
    let asked = stage.heard(&asks);
    assert_count_eq!((asked.header.sequence, asked.payload_bytes), (3, 100));
    stage.reply(&asked, 1, 200);
    let first = stage.hear();
    let message = first.message();
    assert_eq!((message.kind, message.code, message.message_id), (Kind::Acknowledgement, Code::CONTENT, 700));
    assert_eq!((message.token, message.payload.len()), (&b"tok"[..], 200));
    let replied = header::read_reply(message.payload, RUN, 0).unwrap();
    assert_count_eq!((replied.publisher, replied.sequence, replied.due_ns), (7, 3, 1));
    for _ in 0..3 {
        stage.say(&asks);
        assert_eq!(stage.hear().bytes, first.bytes, "the same answer to the same message");
    }
    assert_count_eq!((stage.peer.record.asked.len(), stage.written()), (1, 1));
    // The identifier comes round: another token makes it another request.
    stage.heard(&request(Kind::Confirmable, 700, b"tik", &[], &payload(4, 100)));
}

#[test]
fn an_answer_that_takes_its_time_follows_its_acknowledgement_and_is_repeated_until_it_is_acknowledged() {
    let mut stage: Stage<Tenth> = Stage::new();
    let asks = request(Kind::Confirmable, 700, b"tok", &[], &payload(3, 100));
    let asked = stage.heard(&asks);
    assert!(stage.hear().is_empty(Kind::Acknowledgement, 700), "before who asks would repeat itself");
    stage.say(&asks);
    assert!(stage.hear().is_empty(Kind::Acknowledgement, 700), "its acknowledgement may have been lost");
    stage.reply(&asked, 1, 100);
    let first = stage.hear();
    let message = first.message();
    assert_eq!((message.kind, message.code, message.token), (Kind::Confirmable, Code::CONTENT, &b"tok"[..]));
    for _ in 0..2 {
        assert_eq!(stage.hear().bytes, first.bytes);
    }
    // Somebody else's acknowledgement is nobody's.
    socket().send_to(&empty(Kind::Acknowledgement, first.id()), stage.address).unwrap();
    assert_eq!(stage.hear().bytes, first.bytes);
    stage.say(&empty(Kind::Acknowledgement, first.id()));
    stage.peer.linger(3_000);
    assert!(stage.look().is_none());
    assert_count_eq!((stage.peer.record.asked.len(), stage.written()), (1, 1));
}

#[test]
fn an_answer_that_is_rejected_or_never_acknowledged_is_told() {
    let mut stage: Stage<Tenth> = Stage::new();
    let asked = stage.heard(&request(Kind::Confirmable, 700, b"tok", &[], &payload(3, 100)));
    assert!(stage.hear().is_empty(Kind::Acknowledgement, 700));
    stage.reply(&asked, 1, 100);
    let separate = stage.hear();
    stage.say(&empty(Kind::Reset, separate.id()));
    let refused = |event: &Event| matches!(event, Event::Acknowledged(_, token, Err(_)) if token.sequence == 1);
    stage.peer.wait("rejected", |record| record.count(refused) == 1);
    let asked = stage.heard(&request(Kind::Confirmable, 701, b"tok", &[], &payload(4, 100)));
    assert!(stage.hear().is_empty(Kind::Acknowledgement, 701));
    stage.reply(&asked, 2, 100);
    stage.peer.wait("given up", |record| record.unanswered() == 1);
    let mut copies = 0;
    while stage.look().is_some() {
        copies += 1;
    }
    assert_count_eq!((copies, stage.written()), (5, 2), "once and four repetitions (RFC 7252 §4.8)");
}

#[test]
fn at_best_effort_an_answer_is_sent_once_and_a_request_heard_once() {
    let mut stage: Stage<Tenth> = Stage::new();
    let asks = request(Kind::NonConfirmable, 700, b"tok", &[], &payload(3, 100));
    let asked = stage.heard(&asks);
    stage.say(&asks);
    stage.peer.linger(400);
    assert!(stage.look().is_none(), "nothing is acknowledged");
    stage.reply(&asked, 1, 100);
    let answer = stage.hear();
    assert_eq!((answer.message().kind, answer.message().token), (Kind::NonConfirmable, &b"tok"[..]));
    stage.say(&asks);
    stage.peer.linger(1_500);
    assert!(stage.look().is_none());
    assert_count_eq!((stage.peer.record.asked.len(), stage.written()), (1, 1));
}

#[test]
fn what_is_no_request_for_it_is_refused_and_not_heard() {
    let mut stage: Stage<Tenth> = Stage::new();
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
            stage.say(&asks);
            let said = stage.hear();
            let found = (said.message().kind, said.message().code, said.id());
            assert_eq!(found, (Kind::Acknowledgement, expected, id));
        }
    }
    stage.say(&empty(con, 20));
    assert!(stage.hear().is_empty(Kind::Reset, 20), "a ping");
    stage.say(&[0x40, 0x45, 0, 21]);
    assert!(stage.hear().is_empty(Kind::Reset, 21), "a response to nothing");
    let whole = request(con, 22, b"tok", &[], &body);
    for length in (4..whole.len() - body.len()).filter(|length| *length > 7) {
        stage.say(&whole[..length]);
    }
    for garbage in [&b""[..], b"\x40", b"GET / HTTP/1.1\r\n", &[0xff; 1_500]] {
        stage.say(garbage);
    }
    stage.peer.linger(100);
    let heard = stage.peer.record.asked.len();
    assert_eq!(heard, 0, "nothing of it is a request with a header");
    assert_eq!(stage.peer.record.causes(stage.id), []);
}

#[test]
fn a_request_in_blocks_is_put_together_by_its_tag_and_answered_in_blocks_of_the_size_asked_for() {
    let mut stage: Stage<Standard> = Stage::new();
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
                stage.say(&asks);
                let said = stage.hear();
                assert_eq!((said.message().code, said.id()), (Code::CONTINUE, id));
                assert_eq!(said.message().options.get(number::BLOCK1), Some(&value[..]));
            }
            if index == 2 {
                let asked = stage.heard(&asks);
                assert_eq!(asked.payload_bytes, 2_500);
                assert_count_eq!(asked.header.sequence, if tag == b"x" { 1 } else { 2 });
            }
        }
    }
    assert_count!(stage.peer.record.arrived.iter().all(|one| one.payload_bytes == 2_500));
    let asked = stage.peer.record.asked.clone();
    for (tag, sequence) in [(b"x", 1), (b"y", 2)] {
        stage.reply(&asked[sequence as usize - 1], sequence, 600);
        let first = stage.response();
        let message = first.message();
        assert_eq!((message.token, message.payload.len()), (&tag[..], 256));
        let found = message.options.get(number::BLOCK2).and_then(Block::read).unwrap();
        assert_eq!((found.number, found.more, found.exponent), (0, true, 4));
        let etag = message.options.get(number::ETAG).unwrap().to_vec();
        let mut whole = message.payload.to_vec();
        for index in 1..3 {
            assert_count_eq!(stage.written(), sequence as usize - 1, "written with its last block");
            id += 1;
            let value = [Block { number: index, more: false, exponent: 4 }.value() as u8];
            let options = [(number::BLOCK2, &value[..]), (number::REQUEST_TAG, &tag[..])];
            let asks = request(Kind::Confirmable, id, b"blk", &options, b"");
            for copy in 0..2 {
                stage.say(&asks);
                let block = stage.hear();
                let message = block.message();
                assert_eq!((message.token, message.options.get(number::ETAG)), (&b"blk"[..], Some(&etag[..])));
                if copy == 0 {
                    whole.extend_from_slice(message.payload);
                }
            }
        }
        assert_eq!(whole.len(), 600);
        assert_count_eq!(header::read_reply(&whole, RUN, 0).unwrap().sequence, sequence);
        stage.peer.wait("written", |record| record.written() == sequence as usize);
    }
    assert_count_eq!((stage.peer.record.asked.len(), stage.abandoned()), (2, 0));
}

#[test]
fn an_answer_whose_blocks_nobody_fetches_is_given_up() {
    let mut stage: Stage<Tenth> = Stage::new();
    let asked = stage.heard(&request(Kind::NonConfirmable, 1, b"t", &[], &payload(1, 24)));
    stage.reply(&asked, 1, 5_000);
    assert_eq!(stage.hear().message().payload.len(), 1_024);
    stage.peer.wait("given up", |record| record.count(|event| matches!(event, Event::Abandoned(..))) == 1);
    assert_count_eq!(stage.written(), 0);
    // So is one that is there when the session ends, and one that has no address.
    let asked = stage.heard(&request(Kind::NonConfirmable, 2, b"t", &[], &payload(2, 24)));
    stage.reply(&asked, 2, 5_000);
    for to in [
        ReplyTo { address: "nowhere", correlation: &asked.correlation },
        ReplyTo { address: &asked.address, correlation: &[] },
        ReplyTo { address: "127.0.0.1:0", correlation: &asked.correlation },
    ] {
        let lost = OutgoingReply { to, ..answer(&asked, 3, 24) };
        assert_eq!(stage.peer.clients.reply(stage.id, &lost), SendOutcome::Accepted);
        stage.peer.flush(stage.id);
    }
    assert_count_eq!((stage.abandoned(), stage.written()), (4, 0));
    stage.peer.leave(stage.id, Goodbye::Graceful);
    assert_count_eq!(stage.abandoned(), 5);
}

#[test]
fn a_port_that_is_taken_is_told_and_a_session_that_left_can_listen_again() {
    let mut stage: Stage<Tenth> = Stage::new();
    let mut second: Peer<CoapClients<Tenth>> = Peer::open(endpoint(stage.address));
    let cause = second.fail_to_connect(responder("room/+", Qos::AtLeastOnce));
    assert!(format!("{cause:?}").contains("failed to listen on"), "{cause:?}");
    stage.peer.leave(stage.id, Goodbye::Graceful);
    stage.peer.connect(stage.id);
    stage.heard(&request(Kind::Confirmable, 1, b"t", &[], &payload(1, 24)));
}
