//! A peer whose every byte the test decides; it lives in the test's thread and turns with the client's loop.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_adapters::zeromq::ZeroMqClients;
use pubmark_conformance::peer::{Peer, RUN};
use pubmark_conformance::ports;
use pubmark_protocol::any;
use pubmark_protocol::clients::{SessionConfig, SessionId};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_wire::zmtp::{self, Mechanism};

const PATIENCE: Duration = Duration::from_secs(20);

/// Greeting of a peer of this minor version that wants a mechanism.
pub fn greeting(minor: u8, mechanism: Mechanism) -> Vec<u8> {
    let mut out = Vec::new();
    zmtp::encode_greeting_front(&mut out);
    zmtp::encode_greeting_rest(mechanism, &mut out);
    out[11] = minor;
    out
}

/// What `encode` writes.
pub fn written(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// A command of any name.
pub fn command(name: &str, data: &[u8]) -> Vec<u8> {
    let body = [&[name.len() as u8][..], name.as_bytes(), data].concat();
    let size = (body.len() as u64).to_be_bytes();
    [&[6][..], &size, &body].concat()
}

/// READY of a socket of that type.
pub fn ready(kind: &str) -> Vec<u8> {
    command("READY", &[b"\x0bSocket-Type", &(kind.len() as u32).to_be_bytes()[..], kind.as_bytes()].concat())
}

/// A message of two frames: a topic, and a payload of 24 B as publisher 7 of the suite's run makes them.
pub fn message(topic: &str, sequence: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, sequence, 1);
    [&[1, topic.len() as u8][..], topic.as_bytes(), &[0, 24], &payload].concat()
}

/// The peer's side of one connection.
pub struct Script {
    stream: TcpStream,
}

/// Clients and the listener that they will connect to.
pub struct Meeting {
    pub peer: Peer,
    listener: TcpListener,
}

impl Meeting {
    /// Clients that ping after so much silence.
    pub fn new(keep_alive_s: u16) -> Meeting {
        let listener = ports::listen();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint {
            shown: address.to_string(),
            address,
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        };
        Meeting { peer: Peer::of_with_keep_alive(any::open::<ZeroMqClients>, endpoint, keep_alive_s), listener }
    }

    /// Lets a session connect; nothing is said yet.
    pub fn accept(&mut self, config: SessionConfig) -> (SessionId, Script) {
        let session = self.peer.clients.add_session(config);
        (session, self.accept_again(session))
    }

    /// Lets a session connect once more.
    pub fn accept_again(&mut self, session: SessionId) -> Script {
        self.peer.clients.connect(session, &mut self.peer.record);
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        Script { stream }
    }

    /// Lets a session connect, says this at once, and gives the cause with which the connection ends.
    pub fn end_after(&mut self, config: SessionConfig, words: &[u8]) -> Cause {
        let (session, mut script) = self.accept(config);
        script.say(words);
        self.cause(session)
    }

    /// The cause with which a session's connection ends.
    pub fn cause(&mut self, session: SessionId) -> Cause {
        self.peer.wait("closed", |record| !record.causes(session).is_empty());
        self.peer.record.causes(session).remove(0)
    }
}

impl Script {
    /// Says bytes.
    pub fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Says bytes for as long as the client takes them; how many.
    pub fn say_on(&mut self, peer: &mut Peer, bytes: &[u8], times: usize) -> usize {
        for said in 0..times {
            let mut rest = bytes;
            while !rest.is_empty() {
                match self.stream.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => peer.linger(1),
                    Err(_) => return said,
                }
            }
        }
        times
    }

    /// Waits for N bytes of the client's, and takes them.
    pub fn hear(&mut self, peer: &mut Peer, count: usize) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = vec![];
        while heard.len() < count {
            assert!(Instant::now() < deadline, "gave up; so far: {}", heard.escape_ascii());
            peer.linger(1);
            let mut bytes = vec![0; count - heard.len()];
            match self.stream.read(&mut bytes) {
                Ok(0) => panic!("closed after {}", heard.escape_ascii()),
                Ok(count) => heard.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        heard
    }

    /// Waits for exactly these bytes of the client's.
    pub fn expect(&mut self, peer: &mut Peer, expected: &[u8]) {
        let heard = self.hear(peer, expected.len());
        assert_eq!(heard.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}
