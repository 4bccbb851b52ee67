//! What MQTT adds to a connection: a session's memory, and which packet does what.

use pubmark_wire::front::Front;
use std::marker::PhantomData;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::{Goodbye, Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::mqtt::{
    AckKind, DecodeError, Disconnect, Frame, Packet, PacketType, Properties, Property, decode, decode_ack,
    encode_disconnect, encode_pingreq, frame, reason,
};

use super::aliases::Aliases;
use super::received_ids::ReceivedIds;
use super::receiving::disconnect_cause;
use super::stored::Stored;
use super::version::ProtocolVersion;
use crate::connection::{Dialect, InFlight, Link, Phase, Progress, Refusal, Shared, Times};

/// A session's memory.
pub struct Mqtt<V> {
    /// The server's limits.
    pub(super) maximum_packet_bytes: u32,
    pub(super) maximum_qos: Qos,
    pub(super) in_flight: InFlight,
    /// Whose session the server may have under the client identifier.
    pub(super) stored: Stored,
    /// The session has said goodbye instead of using its connection: the server has a session that is not this one.
    pub(super) leaving: bool,
    /// The present connection began with a will.
    pub(super) has_will: bool,
    pub(super) received_ids: ReceivedIds,
    pub(super) aliases: Aliases,
    /// Subscriptions acknowledged since the server last had no session.
    pub(super) answered: usize,
    /// An AUTH with a new token is under way.
    pub(super) renewing: bool,
    version: PhantomData<V>,
}

impl<V: ProtocolVersion> Dialect for Mqtt<V> {
    const CAPABILITIES: Capabilities = V::CAPABILITIES;
    const WELCOME: &'static str = "CONNACK";

    type Packet<'a> = Frame<'a>;

    fn new(_: &SessionConfig) -> Mqtt<V> {
        Mqtt {
            maximum_packet_bytes: u32::MAX,
            maximum_qos: Qos::ExactlyOnce,
            in_flight: InFlight::new(0),
            stored: Stored::Unknown,
            leaving: false,
            has_will: false,
            received_ids: ReceivedIds::default(),
            aliases: Aliases::default(),
            answered: 0,
            renewing: false,
            version: PhantomData,
        }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.send_connect(link, shared)
    }

    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Frame<'_>>, Cause> {
        Ok(match frame(bytes, most_bytes).map_err(broken)? {
            Some(found) => Front::Whole { packet: found, bytes: found.total_bytes },
            None => Front::Partial(announced_bytes(bytes)),
        })
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        found: &Frame<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let packet = found.packet_type().ok_or_else(|| broken(DecodeError::ReservedType))?;
        match (link.phase, packet) {
            // Messages of a session that is not this one, until the server ends the connection.
            (Phase::Opening, _) if self.leaving => Ok(()),
            (Phase::Opening, PacketType::Connack) => self.on_connack(link, shared, found, sink),
            (Phase::Open, PacketType::Publish) => self.on_publish(link, shared, found, times, sink),
            (Phase::Open, packet) if AckKind::of(packet).is_some() => {
                let ack = decode_ack(V::VERSION, found).map_err(broken)?;
                self.on_ack(link, shared, &ack, sink)
            }
            (Phase::Open, _) => match decode(V::VERSION, found).map_err(broken)? {
                Packet::Suback(suback) => self.on_suback(link, &suback, sink),
                Packet::Pingresp => Ok(()),
                Packet::Auth(auth) => self.on_auth(link, shared, &auth, sink),
                Packet::Disconnect(disconnect) => Err(disconnect_cause(&disconnect)),
                _ => Err(unexpected(packet, link.phase)),
            },
            _ => Err(unexpected(packet, link.phase)),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        self.publish(link, shared, message)
    }

    fn reply(&mut self, link: &mut Link, shared: &mut Shared, reply: &OutgoingReply<'_>) -> Result<(), Refusal> {
        self.publish_reply(link, shared, reply)
    }

    fn renew(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.send_auth(link, shared)
    }

    fn has_room(&self) -> bool {
        self.in_flight.has_room()
    }

    fn written(&mut self, packet_id: u16) {
        self.in_flight.written(packet_id);
    }

    fn abandoned(&mut self, packet_id: u16) {
        self.in_flight.remove(packet_id);
    }

    fn ping(out: &mut Vec<u8>) {
        encode_pingreq(out);
    }

    fn send_goodbye(&mut self, link: &mut Link, shared: &mut Shared, goodbye: Goodbye) {
        // MQTT 3.1.1 cannot end a session with a DISCONNECT; the property is left out there.
        let ends_session = [Property::SessionExpiryInterval(0)];
        let ends = goodbye == Goodbye::Final && link.config.persistent;
        let properties = if ends { Properties::new(&ends_session) } else { Properties::NONE };
        let words = Disconnect { reason: reason::SUCCESS, properties };
        link.outbox.append(&mut shared.pool, |out| {
            encode_disconnect(V::VERSION, &words, out).expect("a DISCONNECT like this has no field to be too long");
        });
    }

    fn has_will(&self) -> bool {
        self.has_will && !self.leaving
    }

    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        for entry in self.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.event(session, Event::Unacknowledged(entry.token()));
            }
        }
        self.received_ids.clear();
        self.answered = 0;
    }
}

/// A packet that is none.
pub fn broken(error: DecodeError) -> Cause {
    Cause::Protocol(error.to_string())
}

/// Packets that only a server may not send us at this point.
fn unexpected(packet: PacketType, phase: Phase) -> Cause {
    let when = if phase == Phase::Open { "in an open session" } else { "before CONNACK" };
    Cause::Protocol(format!("{packet} {when}"))
}

/// Bytes of the whole packet that begins here, as its fixed header announces them; `None` before that is all there.
fn announced_bytes(front: &[u8]) -> Option<usize> {
    let mut remaining = 0;
    for (index, byte) in front.iter().skip(1).take(4).enumerate() {
        remaining |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(index + 2 + remaining);
        }
    }
    None
}
