//! A scripted server. It runs on the thread of the test, in turn with the client's loop.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_conformance::peer::Peer;
use pubmark_protocol::clients::{Clients, SessionConfig, SessionId};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::socket::SocketFactory;
use pubmark_wire::mqtt::{Connect, Packet, PacketType, Properties, Version, decode, frame};

const PATIENCE: Duration = Duration::from_secs(20);

/// The server's side of one connection after another.
pub struct Script {
    pub version: Version,
    listener: TcpListener,
    stream: Option<TcpStream>,
    received: Vec<u8>,
}

impl Script {
    /// A server and clients that will connect to it.
    pub fn with_peer<C: Clients>(version: Version) -> (Script, Peer<C>) {
        Script::with_peer_from(version, &[])
    }

    /// The same; the clients connect from these addresses in turn.
    pub fn with_peer_from<C: Clients>(version: Version, sources: &[IpAddr]) -> (Script, Peer<C>) {
        let listener = pubmark_conformance::ports::listen();
        let address = listener.local_addr().unwrap();
        let shown = format!("mqtt://{address}");
        let endpoint = Endpoint { shown, address, tls: None, credentials: None, upgrade: None, settings: None };
        (Script { version, listener, stream: None, received: Vec::new() }, Peer::from_sources(endpoint, sources))
    }

    /// The server's side of one more session of the same clients.
    pub fn another(&self) -> Script {
        let listener = self.listener.try_clone().unwrap();
        Script { version: self.version, listener, stream: None, received: Vec::new() }
    }

    /// Lets a session connect, reads its CONNECT and sends `answer`.
    pub fn connect_client<C: Clients>(&mut self, peer: &mut Peer<C>, session: SessionId, answer: &[u8]) {
        self.connect_with(peer, session, answer, |_| ());
    }

    /// The same, with access to its CONNECT.
    pub fn connect_with<C: Clients, T>(
        &mut self,
        peer: &mut Peer<C>,
        session: SessionId,
        answer: &[u8],
        look: impl FnOnce(Connect<'_>) -> T,
    ) -> T {
        peer.clients.connect(session, &mut peer.record);
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        self.stream = Some(stream);
        self.received.clear();
        let seen = self.expect(peer, PacketType::Connect, |packet| {
            let Packet::Connect(connect) = packet else { unreachable!() };
            look(connect)
        });
        self.send_bytes(answer);
        seen
    }

    /// Adds a session, lets it connect and accepts it with these properties.
    pub fn accept<C: Clients>(&mut self, peer: &mut Peer<C>, config: SessionConfig, properties: &[u8]) -> SessionId {
        let session = peer.clients.add_session(config);
        let answer = self.connack(false, 0, properties);
        self.connect_client(peer, session, &answer);
        peer.wait("connected", |record| !record.connects(session).is_empty());
        session
    }

    /// A CONNACK; `properties` only in 5.0.
    pub fn connack(&self, session_present: bool, code: u8, properties: &[u8]) -> Vec<u8> {
        let mut body = vec![u8::from(session_present), code];
        if self.version == Version::V5 {
            body.push(properties.len() as u8);
            body.extend_from_slice(properties);
        }
        packet(0x20, &body)
    }

    /// A PUBLISH to `topic`.
    pub fn publish(&self, first_byte: u8, packet_id: Option<u16>, payload: &[u8]) -> Vec<u8> {
        let mut body = b"\0\x05topic".to_vec();
        body.extend(packet_id.into_iter().flat_map(u16::to_be_bytes));
        if self.version == Version::V5 {
            body.push(0);
        }
        body.extend_from_slice(payload);
        packet(first_byte, &body)
    }

    /// Address of the client.
    pub fn client(&self) -> IpAddr {
        self.stream.as_ref().unwrap().peer_addr().unwrap().ip()
    }

    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends as many bytes as the sockets accept without being read; returns their number.
    pub fn send_while_accepted(&mut self, bytes: &[u8]) -> usize {
        let mut said = 0;
        while said < bytes.len() {
            match self.stream.as_mut().unwrap().write(&bytes[said..]) {
                Ok(taken) => said += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        said
    }

    /// Runs the client's loop until its next packet has arrived, which must be of this type.
    pub fn expect<C: Clients, T>(
        &mut self,
        peer: &mut Peer<C>,
        expected: PacketType,
        check: impl FnOnce(Packet<'_>) -> T,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = frame(&self.received, usize::MAX).unwrap() {
                assert_eq!(found.packet_type(), Some(expected));
                let result = check(decode(self.version, &found).unwrap());
                let bytes = found.total_bytes;
                self.received.drain(..bytes);
                return result;
            }
            assert!(Instant::now() < deadline, "no {expected} came; events: {:#?}", peer.record.events);
            peer.linger(1);
            self.read();
        }
    }

    /// Reads all available bytes; false at the end of the stream.
    pub fn read(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        match self.stream.as_mut().unwrap().read(&mut buffer) {
            Ok(bytes) => {
                self.received.extend_from_slice(&buffer[..bytes]);
                bytes > 0
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => true,
            Err(error) => panic!("{error}"),
        }
    }

    /// Received bytes that no expectation has consumed.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// Waits for the end of the stream; returns the bytes before it.
    pub fn rest(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        while self.read() {
            assert!(Instant::now() < deadline, "the client did not close");
        }
        std::mem::take(&mut self.received)
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.stream = None;
    }

    /// Resets the connection.
    pub fn reset(&mut self) {
        let socket = SocketFactory::default().adopt(self.stream.take().unwrap()).unwrap();
        socket.close_by_reset().unwrap();
    }
}

/// A packet from its first byte and body.
pub fn packet(first_byte: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![first_byte];
    let mut remaining = body.len();
    loop {
        let more = remaining >= 0x80;
        out.push((remaining & 0x7f) as u8 | if more { 0x80 } else { 0 });
        remaining >>= 7;
        if !more {
            break;
        }
    }
    out.extend_from_slice(body);
    out
}

/// A payload of the suite with this sequence number.
pub fn payload(sequence: u32, payload_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let due_ns = pubmark_protocol::clock::monotonic_ns();
    pubmark_protocol::header::write(&mut out, payload_bytes, pubmark_conformance::peer::RUN, 7, sequence, due_ns);
    let body_bytes = payload_bytes - out.len();
    out.extend((0..body_bytes).map(|byte| (byte % pubmark_conformance::recorder::POOL_BYTES) as u8));
    out
}

/// No properties, for packets of the codec.
pub const NONE: Properties<'static> = Properties::NONE;
