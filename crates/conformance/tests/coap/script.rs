//! A scripted server. It runs on the thread of the test, in turn with the client's loop.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use pubmark_adapters::coap::{CoapClients, Timing};
use pubmark_conformance::peer::Peer;
use pubmark_protocol::clients::{Clients as _, SessionConfig, SessionId};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_wire::coap::{Code, Kind, Message, Times, Writer, decode, encode_empty, number};

const PATIENCE: Duration = Duration::from_secs(20);

/// A tenth of the standard's times.
pub enum TenfoldTiming {}

impl Timing for TenfoldTiming {
    const TIMES: Times = Times { acknowledge_ns: 200_000_000, ..Times::STANDARD };
    const TICK_NS: u64 = 10_000_000;
}

pub type Clients = CoapClients<TenfoldTiming>;

/// Clients with short times, and the server's socket.
pub struct Harness {
    pub peer: Peer<Clients>,
    socket: UdpSocket,
    client: Option<SocketAddr>,
}

/// A message of the client, in owned memory.
#[derive(Clone, Debug)]
pub struct ClientMessage {
    pub bytes: Vec<u8>,
}

impl ClientMessage {
    pub fn message(&self) -> Message<'_> {
        decode(&self.bytes).unwrap()
    }

    pub fn id(&self) -> u16 {
        self.message().message_id
    }

    pub fn token(&self) -> &[u8] {
        self.message().token
    }

    pub fn is_empty(&self, kind: Kind, message_id: u16) -> bool {
        let message = self.message();
        message.kind == kind && message.code == Code::EMPTY && message.message_id == message_id
    }
}

impl Harness {
    pub fn new() -> Harness {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let endpoint = Endpoint {
            shown: format!("coap://{address}"),
            address,
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        };
        Harness { peer: Peer::open(endpoint), socket, client: None }
    }

    /// Starts to connect and returns the ping.
    pub fn begin(&mut self, config: SessionConfig) -> (SessionId, ClientMessage) {
        let session = self.peer.clients.add_session(config);
        self.peer.clients.connect(session, &mut self.peer.record);
        let ping = self.receive();
        assert!(ping.is_empty(Kind::Confirmable, ping.id()));
        (session, ping)
    }

    /// An open session.
    pub fn open(&mut self, config: SessionConfig) -> SessionId {
        let (session, ping) = self.begin(config);
        self.send_empty(Kind::Reset, ping.id());
        self.peer.wait("connected", |record| record.connects(session).len() == 1);
        session
    }

    /// The next message of the client.
    pub fn receive(&mut self) -> ClientMessage {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(received) = self.try_receive() {
                return received;
            }
            assert!(Instant::now() < deadline, "the client says nothing");
            self.peer.linger(1);
        }
    }

    /// The next message of the client that differs from this one.
    pub fn receive_other_than(&mut self, before: &ClientMessage) -> ClientMessage {
        loop {
            let received = self.receive();
            if received.bytes != before.bytes {
                return received;
            }
        }
    }

    /// The next message, if one has arrived.
    pub fn try_receive(&mut self) -> Option<ClientMessage> {
        let mut bytes = [0; 4_096];
        match self.socket.recv_from(&mut bytes) {
            Ok((count, from)) => {
                self.client = Some(from);
                Some(ClientMessage { bytes: bytes[..count].to_vec() })
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                None
            }
        }
    }

    /// Runs the client for this time and discards its messages.
    pub fn ignore(&mut self, time_ms: u64) {
        self.peer.linger(time_ms);
        while self.try_receive().is_some() {}
    }

    /// Address of the client.
    pub fn client(&self) -> SocketAddr {
        self.client.unwrap()
    }

    /// The server's socket is closed.
    pub fn vanish(&mut self) {
        self.socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    }

    pub fn send_bytes(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.client()).unwrap();
    }

    pub fn send_empty(&self, kind: Kind, message_id: u16) {
        let mut out = Vec::new();
        encode_empty(kind, message_id, &mut out);
        self.send_bytes(&out);
    }

    /// Responds to a request in its acknowledgement.
    pub fn reply(&self, request: &ClientMessage, code: Code, options: &[(u16, &[u8])], payload: &[u8]) {
        self.send_bytes(&response(Kind::Acknowledgement, code, request.id(), request.token(), options, payload));
    }

    /// Responds to a subscription with sequence number 1.
    pub fn grant(&mut self) -> ClientMessage {
        let requests = self.receive();
        assert_eq!(
            (requests.message().code, requests.message().options.get(number::OBSERVE)),
            (Code::GET, Some(&[][..]))
        );
        let kind = requests.message().kind;
        let (kind, id) = if kind == Kind::Confirmable { (Kind::Acknowledgement, requests.id()) } else { (kind, 1) };
        self.send_bytes(&response(kind, Code::CONTENT, id, requests.token(), &[(number::OBSERVE, &[1])], b""));
        requests
    }
}

/// A response's bytes.
pub fn response(
    kind: Kind,
    code: Code,
    message_id: u16,
    token: &[u8],
    options: &[(u16, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(kind, code, message_id, token, &mut out);
    for (number, value) in options {
        writer.option(*number, value);
    }
    writer.end(payload);
    out
}
