//! A scripted server. It runs on the thread of the test, in turn with the client's loop.

use pubmark_wire::front::Front;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_adapters::amqp091::Amqp091Clients;
use pubmark_conformance::peer::{Peer, RUN};
use pubmark_protocol::clients::{Clients as _, SessionConfig, SessionId};
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_wire::amqp091::{Item, Kind, next};

const PATIENCE: Duration = Duration::from_secs(20);
/// More than the sockets' buffers and the responses that a client may have for a server that does not read.
const MOST_UNREAD_BYTES: usize = 64 << 20;

/// Clients and the listener that they connect to.
pub struct Harness {
    pub peer: Peer<Amqp091Clients>,
    listener: TcpListener,
}

/// The server's side of one connection.
pub struct Script {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A frame of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFrame {
    pub kind: Kind,
    pub channel: u16,
    pub payload: Vec<u8>,
}

/// A frame.
pub fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&[kind][..], &channel.to_be_bytes(), &length, payload, &[0xce]].concat()
}

/// A frame with a method.
pub fn method(channel: u16, class: u16, number: u16, arguments: &[u8]) -> Vec<u8> {
    frame(1, channel, &[&class.to_be_bytes()[..], &number.to_be_bytes(), arguments].concat())
}

/// A short string.
pub fn short(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn long(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// `connection.start` with these mechanisms.
pub fn start(minor: u8, mechanisms: &str) -> Vec<u8> {
    method(0, 10, 10, &[&[0, minor][..], &long(""), &long(mechanisms), &long("en_US")].concat())
}

/// `connection.tune`.
pub fn tune(channel_max: u16, frame_max: u32, heartbeat_s: u16) -> Vec<u8> {
    let limits = [&channel_max.to_be_bytes()[..], &frame_max.to_be_bytes(), &heartbeat_s.to_be_bytes()];
    method(0, 10, 30, &limits.concat())
}

/// `connection.open-ok`.
pub fn open_ok() -> Vec<u8> {
    method(0, 10, 41, &[0])
}

/// `channel.open-ok`.
pub fn channel_ok(channel: u16) -> Vec<u8> {
    method(channel, 20, 11, &[0; 4])
}

/// `connection.close` on channel 0, `channel.close` on another.
pub fn close(channel: u16, code: u16, text: &str, of: (u16, u16)) -> Vec<u8> {
    let (class, number) = if channel == 0 { (10, 50) } else { (20, 40) };
    let arguments = [&code.to_be_bytes()[..], &short(text), &of.0.to_be_bytes(), &of.1.to_be_bytes()];
    method(channel, class, number, &arguments.concat())
}

/// `queue.declare-ok`.
pub fn declare_ok(queue: &str) -> Vec<u8> {
    method(1, 50, 11, &[short(queue), vec![0; 8]].concat())
}

/// `queue.delete-ok`, of a queue with this many messages.
pub fn delete_ok(messages: u32) -> Vec<u8> {
    method(1, 50, 41, &messages.to_be_bytes())
}

/// `queue.bind-ok`.
pub fn bind_ok() -> Vec<u8> {
    method(1, 50, 21, &[])
}

/// `basic.qos-ok`.
pub fn qos_ok() -> Vec<u8> {
    method(1, 60, 11, &[])
}

/// `basic.consume-ok`.
pub fn consume_ok() -> Vec<u8> {
    method(1, 60, 21, &short("consumer"))
}

/// `basic.deliver` on a channel.
pub fn deliver(channel: u16, tag: u64) -> Vec<u8> {
    let arguments = [short("consumer"), tag.to_be_bytes().to_vec(), vec![0], short("amq.topic"), short("a")];
    method(channel, 60, 60, &arguments.concat())
}

/// The header of a message.
pub fn content_header(body_bytes: u64) -> Vec<u8> {
    frame(2, 1, &[&[0, 60, 0, 0][..], &body_bytes.to_be_bytes(), &[0x10, 0, 1]].concat())
}

/// A part of a message.
pub fn body(payload: &[u8]) -> Vec<u8> {
    frame(3, 1, payload)
}

/// A payload of the suite.
pub fn payload(sequence: u32, bytes: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    header::write(&mut payload, bytes, RUN, 7, sequence, 1);
    payload.resize(bytes, 0);
    payload
}

/// All frames of a message with a body in one frame.
pub fn message(tag: u64, sequence: u32) -> Vec<u8> {
    [deliver(1, tag), content_header(24), body(&payload(sequence, 24))].concat()
}

/// `basic.ack` or `basic.nack` of the server.
pub fn answer(number: u16, tag: u64, multiple: bool) -> Vec<u8> {
    method(2, 60, number, &[&tag.to_be_bytes()[..], &[u8::from(multiple)]].concat())
}

impl Harness {
    pub fn new() -> Harness {
        let listener = pubmark_conformance::ports::listen();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint {
            shown: address.to_string(),
            address,
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        };
        Harness { peer: Peer::open(endpoint), listener }
    }

    /// Lets a session connect; nothing has been sent yet.
    pub fn accept(&mut self, config: SessionConfig) -> (SessionId, Script) {
        let session = self.peer.clients.add_session(config);
        (session, self.accept_again(session))
    }

    /// Lets a session connect again.
    pub fn accept_again(&mut self, session: SessionId) -> Script {
        self.peer.clients.connect(session, &mut self.peer.record);
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut script = Script { stream, received: Vec::new() };
        script.wait_for(&mut self.peer, 8);
        assert_eq!(script.received.drain(..8).collect::<Vec<_>>(), b"AMQP\x00\x00\x09\x01");
        script
    }

    /// Lets a session connect, up to the open connection: the client then opens channels.
    pub fn log_in(&mut self, config: SessionConfig) -> (SessionId, Script) {
        let (session, mut script) = self.accept(config);
        script.log_in(&mut self.peer);
        (session, script)
    }

    /// A session with a window of 3 that publishes confirmed messages, open.
    pub fn confirmed(&mut self, config: SessionConfig) -> (SessionId, Script) {
        let (session, mut script) = self.log_in(SessionConfig { in_flight_window: 3, ..config });
        script.open_confirmed(&mut self.peer);
        self.peer.wait("connected", |record| !record.connects(session).is_empty());
        (session, script)
    }

    /// A session with one granted subscription.
    pub fn consuming(&mut self, config: SessionConfig) -> (SessionId, Script) {
        let acknowledges = config.subscriptions[0].qos.level() > 0;
        let (session, mut script) = self.log_in(config);
        script.open_plain(&mut self.peer);
        script.expect(&mut self.peer, 1, 50, 10);
        script.send_bytes(&declare_ok("made-up"));
        script.expect(&mut self.peer, 1, 50, 20);
        if acknowledges {
            script.expect(&mut self.peer, 1, 60, 10);
        }
        script.expect(&mut self.peer, 1, 60, 20);
        let qos = if acknowledges { qos_ok() } else { vec![] };
        script.send_bytes(&[bind_ok(), qos, consume_ok()].concat());
        self.peer.wait("subscribed", |record| {
            record.count(|event| matches!(event, pubmark_conformance::recorder::Event::Subscribed(..))) == 1
        });
        (session, script)
    }

    /// The cause with which the last connection of a session ends.
    pub fn end_of(&mut self, session: SessionId) -> Cause {
        self.peer.wait("closed", |record| !record.causes(session).is_empty());
        self.peer.record.causes(session).pop().unwrap()
    }

    /// Lets a session connect, sends these bytes at once, and returns the cause with which the connection ends.
    pub fn end_after(&mut self, config: SessionConfig, words: &[u8]) -> Cause {
        let (session, mut script) = self.accept(config);
        script.send_bytes(words);
        self.end_of(session)
    }
}

impl Script {
    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Repeats a message for a subscriber that processes each one, and reads nothing until the client ends the connection; returns
    /// the cause.
    pub fn repeat_unread(&mut self, peer: &mut Peer<Amqp091Clients>, at: SessionId, message: &[u8]) -> Cause {
        const MESSAGES: usize = 1_000;
        let block = message.repeat(MESSAGES);
        let (mut sent, deadline) = (0, Instant::now() + PATIENCE);
        peer.record.works = Some(at);
        while peer.record.causes(at).is_empty() {
            assert!(sent < MOST_UNREAD_BYTES && Instant::now() < deadline, "the client goes on after {sent} B");
            match self.stream.write(&block[sent % message.len()..]) {
                Ok(count) => sent += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            peer.linger(1);
            for _ in 0..MESSAGES {
                peer.record.at_work = false;
                peer.clients.resume(at, clock::monotonic_ns(), &mut peer.record);
            }
        }
        peer.record.causes(at).remove(0)
    }

    /// Waits for N bytes of the client.
    fn wait_for(&mut self, peer: &mut Peer<Amqp091Clients>, bytes: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.received.len() < bytes {
            assert!(Instant::now() < deadline, "gave up; so far: {}", self.received.escape_ascii());
            peer.linger(1);
            let mut buffer = [0; 65_536];
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the client closed: {:?}", peer.record.events),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
    }

    /// The client's next frame.
    pub fn next(&mut self, peer: &mut Peer<Amqp091Clients>) -> ClientFrame {
        loop {
            match next(&self.received, usize::MAX) {
                Ok(Front::Whole { packet: Item::Frame(frame), bytes }) => {
                    let said =
                        ClientFrame { kind: frame.kind, channel: frame.channel, payload: frame.payload.to_vec() };
                    self.received.drain(..bytes);
                    return said;
                }
                Ok(Front::Partial(_)) => self.wait_for(peer, self.received.len() + 1),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The arguments of the client's next frame, which must be this method.
    pub fn expect(&mut self, peer: &mut Peer<Amqp091Clients>, channel: u16, class: u16, number: u16) -> Vec<u8> {
        let said = self.next(peer);
        let (id, arguments) = said.payload.split_at(4);
        let expected = [class.to_be_bytes(), number.to_be_bytes()].concat();
        assert_eq!((said.kind, said.channel, id), (Kind::Method, channel, &expected[..]), "{:?}", said.payload);
        arguments.to_vec()
    }

    /// A message of the client: channel and body.
    pub fn expect_message(&mut self, peer: &mut Peer<Amqp091Clients>) -> (u16, Vec<u8>) {
        let publish = self.next(peer);
        assert_eq!((publish.kind, &publish.payload[..4]), (Kind::Method, &[0, 60, 0, 40][..]));
        let header = self.next(peer);
        assert_eq!((header.kind, header.channel), (Kind::Header, publish.channel));
        let bytes = u64::from_be_bytes(header.payload[4..12].try_into().unwrap()) as usize;
        let mut body = Vec::new();
        while body.len() < bytes {
            let part = self.next(peer);
            assert_eq!((part.kind, part.channel), (Kind::Body, publish.channel));
            body.extend(part.payload);
        }
        (publish.channel, body)
    }

    /// The client sends nothing for a moment.
    pub fn expect_silence(&mut self, peer: &mut Peer<Amqp091Clients>) {
        peer.linger(30);
        let mut buffer = [0; 1_024];
        let read = self.stream.read(&mut buffer);
        assert!(self.received.is_empty() && read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }

    /// The client has closed the connection.
    pub fn expect_end(&mut self) {
        self.stream.set_nonblocking(false).unwrap();
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        // A reset is an end, too.
        let _ = self.stream.read_to_end(&mut rest);
    }

    /// Up to the open connection.
    pub fn log_in(&mut self, peer: &mut Peer<Amqp091Clients>) {
        self.send_bytes(&start(9, "PLAIN"));
        self.expect(peer, 0, 10, 11);
        self.send_bytes(&tune(2_047, 131_072, 60));
        self.expect(peer, 0, 10, 31);
        self.expect(peer, 0, 10, 40);
        self.send_bytes(&open_ok());
    }

    /// Opens the channel of a session without confirmed messages.
    pub fn open_plain(&mut self, peer: &mut Peer<Amqp091Clients>) {
        self.expect(peer, 1, 20, 10);
        self.send_bytes(&channel_ok(1));
    }

    /// Opens the channel of a session with confirmed messages only.
    pub fn open_confirmed(&mut self, peer: &mut Peer<Amqp091Clients>) {
        self.expect(peer, 2, 20, 10);
        self.expect(peer, 2, 85, 10);
        self.send_bytes(&[channel_ok(2), method(2, 85, 11, &[])].concat());
    }
}
