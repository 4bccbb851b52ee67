//! A client that sends and expects single packets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::*;

/// Timeout for an expected packet; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Client {
    socket: TcpStream,
    version: Version,
    buffer: Vec<u8>,
}

pub fn connect_packet(version: Version, client_id: &'static str) -> Connect<'static> {
    Connect {
        version,
        clean_start: true,
        keep_alive_s: 0,
        client_id,
        will: None,
        user: None,
        password: None,
        properties: Properties::NONE,
    }
}

pub fn head(topic: &'static str, qos: Qos, packet_id: Option<u16>) -> PublishHead<'static> {
    PublishHead { dup: false, qos, retain: false, topic, packet_id, properties: Properties::NONE }
}

impl Client {
    pub fn open(address: SocketAddr, version: Version) -> Client {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Client { socket, version, buffer: Vec::new() }
    }

    /// Connects and expects to be accepted; true if the session was present.
    pub fn connect(address: SocketAddr, connect: &Connect<'_>) -> (Client, bool) {
        let mut client = Client::open(address, connect.version);
        client.send(&Packet::Connect(*connect));
        let present = client.expect(|packet| match packet {
            Packet::Connack(connack) => {
                assert_eq!(connack.code, 0);
                connack.session_present
            }
            other => panic!("{other:?} for CONNACK"),
        });
        (client, present)
    }

    pub fn simple(address: SocketAddr, version: Version, client_id: &'static str) -> Client {
        Client::connect(address, &connect_packet(version, client_id)).0
    }

    pub fn send(&mut self, packet: &Packet<'_>) {
        let mut out = Vec::new();
        encode(self.version, packet, &mut out).unwrap();
        self.send_bytes(&out);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn publish(&mut self, head: PublishHead<'_>, payload: &[u8]) {
        self.send(&Packet::Publish(Publish { head, payload }));
    }

    pub fn ack(&mut self, kind: AckKind, packet_id: u16) {
        self.send(&Packet::Ack(Ack::new(kind, packet_id, 0)));
    }

    pub fn subscribe(&mut self, request: SubscribeRequest<'_>) -> u8 {
        self.subscribe_with(request, Properties::NONE)
    }

    pub fn subscribe_with(&mut self, request: SubscribeRequest<'_>, properties: Properties<'_>) -> u8 {
        let filters = [request];
        self.send(&Packet::Subscribe(Subscribe { packet_id: 77, properties, filters: Filters::new(&filters) }));
        self.expect(|packet| match packet {
            Packet::Suback(suback) => {
                assert_eq!(suback.packet_id, 77);
                suback.codes[0]
            }
            other => panic!("{other:?} for SUBACK"),
        })
    }

    /// The next packet.
    pub fn expect<T>(&mut self, look: impl FnOnce(Packet<'_>) -> T) -> T {
        let mut chunk = [0; 4_096];
        loop {
            if let Some(frame) = frame(&self.buffer, usize::MAX).unwrap() {
                let found = look(decode(self.version, &frame).unwrap());
                let used = frame.total_bytes;
                self.buffer.drain(..used);
                return found;
            }
            let read = self.socket.read(&mut chunk).unwrap();
            assert!(read > 0, "the connection ended where a packet was expected");
            self.buffer.extend_from_slice(&chunk[..read]);
        }
    }

    /// The next packet, which must be a message: topic, payload, and the fields of its header.
    pub fn expect_message(&mut self) -> (String, Vec<u8>, Arrived) {
        self.expect(|packet| match packet {
            Packet::Publish(Publish { head, payload }) => {
                let properties = head.properties.iter().map(|property| format!("{property:?}")).collect();
                let PublishHead { dup, qos, retain, packet_id, .. } = head;
                (head.topic.to_string(), payload.to_vec(), Arrived { dup, qos, retain, packet_id, properties })
            }
            other => panic!("{other:?} for PUBLISH"),
        })
    }

    pub fn expect_ack(&mut self) -> (AckKind, u16, u8) {
        self.expect(|packet| match packet {
            Packet::Ack(ack) => (ack.kind, ack.packet_id, ack.reason),
            other => panic!("{other:?} for an acknowledgement"),
        })
    }

    /// Everything sent to us so far has been read: the response to a ping is the next packet.
    pub fn expect_silence(&mut self) {
        self.send(&Packet::Pingreq);
        self.expect(|packet| assert_eq!(packet, Packet::Pingresp));
    }

    /// The connection ends; the reason of a DISCONNECT before it, if there was one.
    pub fn expect_end(&mut self) -> Option<u8> {
        let mut bytes = std::mem::take(&mut self.buffer);
        match self.socket.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        let mut reason = None;
        let mut rest = &bytes[..];
        while let Some(frame) = frame(rest, usize::MAX).unwrap() {
            if let Packet::Disconnect(disconnect) = decode(self.version, &frame).unwrap() {
                reason = Some(disconnect.reason);
            }
            rest = &rest[frame.total_bytes..];
        }
        reason
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Arrived {
    pub dup: bool,
    pub qos: Qos,
    pub retain: bool,
    pub packet_id: Option<u16>,
    pub properties: Vec<String>,
}
