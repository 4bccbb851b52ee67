//! A scripted server of a text protocol. It runs on the thread of the test, in turn with the client's loop.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_conformance::peer::Peer;
use pubmark_protocol::clients::{Clients, SessionConfig, SessionId};
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_protocol::events::Cause;

const PATIENCE: Duration = Duration::from_secs(20);
/// More than the sockets' buffers and all that a client may have for a server that does not read.
const MOST_UNREAD_BYTES: usize = 64 << 20;

/// The server's side of one connection.
pub struct Script {
    stream: TcpStream,
    received: Vec<u8>,
}

/// Clients and the listener that they will connect to.
pub struct Harness<C> {
    pub peer: Peer<C>,
    listener: TcpListener,
}

impl<C: Clients> Harness<C> {
    /// Clients that connect without TLS, or with it.
    pub fn new(tls: bool) -> Harness<C> {
        Harness::with_settings(tls, None)
    }

    /// The same for an endpoint that has settings after its port.
    pub fn with_settings(tls: bool, settings: Option<&str>) -> Harness<C> {
        let listener = pubmark_conformance::ports::listen();
        let address = listener.local_addr().unwrap();
        let tls = tls.then(|| Tls { server_name: "localhost".to_owned(), authorities: None, identity: None });
        let settings = settings.map(Into::into);
        let endpoint =
            Endpoint { shown: address.to_string(), address, tls, credentials: None, upgrade: None, settings };
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
        Script { stream, received: Vec::new() }
    }

    /// The next connection of a session that makes several.
    pub fn accept_further(&mut self) -> Script {
        self.listener.set_nonblocking(true).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            assert!(Instant::now() < deadline, "no further connection");
            self.peer.linger(1);
        };
        self.listener.set_nonblocking(false).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        Script { stream, received: Vec::new() }
    }

    /// Lets a session connect, sends these bytes at once, and returns the cause with which the connection ends.
    pub fn end_after(&mut self, config: SessionConfig, words: &[u8]) -> Cause {
        let (session, mut script) = self.accept(config);
        script.send_bytes(words);
        self.peer.wait("closed", |record| !record.causes(session).is_empty());
        self.peer.record.causes(session).remove(0)
    }
}

impl Script {
    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends bytes that contain `messages` messages in two parts, split after every byte in turn; all arrive each time.
    pub fn send_split<C: Clients>(&mut self, peer: &mut Peer<C>, at: SessionId, bytes: &[u8], messages: usize) {
        for cut in 1..bytes.len() {
            let before = peer.record.sequences(at).len();
            self.send_bytes(&bytes[..cut]);
            peer.linger(1);
            self.send_bytes(&bytes[cut..]);
            peer.wait("all", |record| record.sequences(at).len() == before + messages);
        }
    }

    /// Repeats these bytes and reads nothing until the client ends the connection; returns the cause.
    pub fn repeat_unread<C: Clients>(&mut self, peer: &mut Peer<C>, at: SessionId, bytes: &[u8]) -> Cause {
        let block = bytes.repeat(10_000);
        let (mut sent, deadline) = (0, Instant::now() + PATIENCE);
        while peer.record.causes(at).is_empty() {
            assert!(sent < MOST_UNREAD_BYTES && Instant::now() < deadline, "the client goes on after {sent} B");
            match self.stream.write(&block[sent % bytes.len()..]) {
                Ok(count) => sent += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            peer.linger(1);
        }
        peer.record.causes(at).remove(0)
    }

    /// Waits until the client has sent bytes that end with `ending`, and returns them.
    pub fn expect<C: Clients>(&mut self, peer: &mut Peer<C>, ending: &[u8]) -> String {
        let deadline = Instant::now() + PATIENCE;
        while !self.received.ends_with(ending) {
            assert!(Instant::now() < deadline, "gave up; so far: {}", self.received.escape_ascii());
            peer.linger(1);
            let mut bytes = [0; 4_096];
            match self.stream.read(&mut bytes) {
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        // Payloads are not text.
        String::from_utf8_lossy(&std::mem::take(&mut self.received)).into_owned()
    }
}
