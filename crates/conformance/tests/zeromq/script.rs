//! A scripted peer. It runs on the thread of the test, in turn with the client's loop.

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

/// Greeting of a peer with this minor version and mechanism.
pub fn greeting(minor: u8, mechanism: Mechanism) -> Vec<u8> {
    let mut out = Vec::new();
    zmtp::encode_greeting_front(&mut out);
    zmtp::encode_greeting_rest(mechanism, &mut out);
    out[11] = minor;
    out
}

/// The bytes that `encode` appends.
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

/// A message of two frames: a topic, and a payload of 24 B by publisher 7 of the suite's run.
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
pub struct Harness {
    pub peer: Peer,
    listener: TcpListener,
}

impl Harness {
    /// Clients that ping after this much silence.
    pub fn new(keep_alive_s: u16) -> Harness {
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
        Harness { peer: Peer::of_with_keep_alive(any::open::<ZeroMqClients>, endpoint, keep_alive_s), listener }
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
        Script { stream }
    }

    /// Lets a session connect, sends these bytes at once, and returns the cause with which the connection ends.
    pub fn end_after(&mut self, config: SessionConfig, words: &[u8]) -> Cause {
        let (session, mut script) = self.accept(config);
        script.send_bytes(words);
        self.cause(session)
    }

    /// The cause with which a session's connection ends.
    pub fn cause(&mut self, session: SessionId) -> Cause {
        self.peer.wait("closed", |record| !record.causes(session).is_empty());
        self.peer.record.causes(session).remove(0)
    }
}

impl Script {
    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends bytes repeatedly as long as the client accepts them; returns their number.
    pub fn send_repeatedly(&mut self, peer: &mut Peer, bytes: &[u8], times: usize) -> usize {
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

    /// Waits for N bytes of the client and returns them.
    pub fn receive(&mut self, peer: &mut Peer, count: usize) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        let mut received = vec![];
        while received.len() < count {
            assert!(Instant::now() < deadline, "gave up; so far: {}", received.escape_ascii());
            peer.linger(1);
            let mut bytes = vec![0; count - received.len()];
            match self.stream.read(&mut bytes) {
                Ok(0) => panic!("closed after {}", received.escape_ascii()),
                Ok(count) => received.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        received
    }

    /// Waits for exactly these bytes of the client.
    pub fn expect(&mut self, peer: &mut Peer, expected: &[u8]) {
        let received = self.receive(peer, expected.len());
        assert_eq!(received.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}
