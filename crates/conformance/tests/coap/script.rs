//! A server whose every datagram the test decides; it lives in the test's thread and turns with the client's loop.

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
pub enum Tenth {}

impl Timing for Tenth {
    const TIMES: Times = Times { acknowledge_ns: 200_000_000, ..Times::STANDARD };
    const TICK_NS: u64 = 10_000_000;
}

pub type Clients = CoapClients<Tenth>;

/// Clients with short times, and the server's socket.
pub struct Stage {
    pub peer: Peer<Clients>,
    socket: UdpSocket,
    client: Option<SocketAddr>,
}

/// What the client said, with its parts in memory of its own.
#[derive(Clone, Debug)]
pub struct Heard {
    pub bytes: Vec<u8>,
}

impl Heard {
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

impl Stage {
    pub fn new() -> Stage {
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
        Stage { peer: Peer::open(endpoint), socket, client: None }
    }

    /// Starts connecting and gives the ping.
    pub fn begin(&mut self, config: SessionConfig) -> (SessionId, Heard) {
        let session = self.peer.clients.add_session(config);
        self.peer.clients.connect(session, &mut self.peer.record);
        let ping = self.hear();
        assert!(ping.is_empty(Kind::Confirmable, ping.id()));
        (session, ping)
    }

    /// A session that is open.
    pub fn open(&mut self, config: SessionConfig) -> SessionId {
        let (session, ping) = self.begin(config);
        self.say_empty(Kind::Reset, ping.id());
        self.peer.wait("connected", |record| record.connects(session).len() == 1);
        session
    }

    /// What the client says next.
    pub fn hear(&mut self) -> Heard {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(heard) = self.look() {
                return heard;
            }
            assert!(Instant::now() < deadline, "the client says nothing");
            self.peer.linger(1);
        }
    }

    /// What the client says next that it has not said before in these bytes.
    pub fn hear_other_than(&mut self, before: &Heard) -> Heard {
        loop {
            let heard = self.hear();
            if heard.bytes != before.bytes {
                return heard;
            }
        }
    }

    /// What has come, if something has.
    pub fn look(&mut self) -> Option<Heard> {
        let mut bytes = [0; 4_096];
        match self.socket.recv_from(&mut bytes) {
            Ok((count, from)) => {
                self.client = Some(from);
                Some(Heard { bytes: bytes[..count].to_vec() })
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                None
            }
        }
    }

    /// Lets the client do what it wants for a while and forgets what it says.
    pub fn ignore(&mut self, time_ms: u64) {
        self.peer.linger(time_ms);
        while self.look().is_some() {}
    }

    /// Where the client is.
    pub fn client(&self) -> SocketAddr {
        self.client.unwrap()
    }

    /// The server's socket is closed.
    pub fn vanish(&mut self) {
        self.socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    }

    pub fn say(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.client()).unwrap();
    }

    pub fn say_empty(&self, kind: Kind, message_id: u16) {
        let mut out = Vec::new();
        encode_empty(kind, message_id, &mut out);
        self.say(&out);
    }

    /// Answers a request with its acknowledgement.
    pub fn reply(&self, request: &Heard, code: Code, options: &[(u16, &[u8])], payload: &[u8]) {
        self.say(&response(Kind::Acknowledgement, code, request.id(), request.token(), options, payload));
    }

    /// Answers a subscription with sequence number 1.
    pub fn grant(&mut self) -> Heard {
        let asked = self.hear();
        assert_eq!((asked.message().code, asked.message().options.get(number::OBSERVE)), (Code::GET, Some(&[][..])));
        let kind = asked.message().kind;
        let (kind, id) = if kind == Kind::Confirmable { (Kind::Acknowledgement, asked.id()) } else { (kind, 1) };
        self.say(&response(kind, Code::CONTENT, id, asked.token(), &[(number::OBSERVE, &[1])], b""));
        asked
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
