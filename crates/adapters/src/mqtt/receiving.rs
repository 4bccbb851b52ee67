//! Bytes from the server: cut into packets, handled, acknowledged.
//!
//! A read goes into the shard's shared buffer and is handled there; a session keeps only the front of a packet whose rest
//! has not come. The kernel's receive stamp is that of the last byte of a read, so it is passed on with a message that
//! ends there and with no other.

use std::ops::ControlFlow;

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Delivery, Sink};
use pubmark_protocol::stream::{ReadBuffers, Received};
use pubmark_wire::mqtt::{
    AckKind, DecodeError, Disconnect, Frame, Packet, PacketType, decode, decode_ack, decode_publish, frame, reason,
    reason_name,
};

use super::connecting::unexpected;
use super::session::{Phase, Session, Shared};

/// Reads of one session before the others have their turn.
const READS_AT_A_TIME: usize = 16;

/// When the bytes at hand arrived.
#[derive(Clone, Copy)]
struct Times {
    at_ns: u64,
    empty_at_ns: u64,
    /// Of the last byte of the read.
    kernel_ns: Option<u64>,
}

impl Session {
    /// Reads until the socket is empty or it is the others' turn.
    pub fn receive(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        // The buffers leave `shared` so that packets in them can be handled with it.
        let mut buffers = std::mem::take(&mut shared.buffers);
        let mut result = Ok(());
        for _ in 0..READS_AT_A_TIME {
            match self.receive_once(shared, &mut buffers, sink) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(cause) => {
                    result = Err(cause);
                    break;
                }
            }
        }
        shared.buffers = buffers;
        if result.is_ok() && !self.drained {
            shared.unread.push(self.id.0);
        }
        result
    }

    fn receive_once(
        &mut self,
        shared: &mut Shared,
        buffers: &mut ReadBuffers,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, Cause> {
        let Some(stream) = &mut self.stream else { return Ok(ControlFlow::Break(())) };
        let handshaking = stream.is_handshaking();
        let received = match stream.read(buffers) {
            Ok(received) => received,
            Err(error) => return Err(self.cause_of(error)),
        };
        if !received.bytes.is_empty() {
            self.received_at_ns = received.at_ns;
            let kernel_ns =
                received.stamp_realtime_ns.map(|stamp_ns| shared.offset.to_monotonic_ns(stamp_ns, received.at_ns));
            let times = Times { at_ns: received.at_ns, empty_at_ns: self.empty_at_ns, kernel_ns };
            self.consume(shared, received.bytes, times, sink)?;
        }
        if received.ended {
            return Err(self.cause_of_end(handshaking));
        }
        self.drained = received.emptied;
        if received.emptied {
            self.note_empty(&received);
        }
        let done = received.emptied && !self.ended;
        Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The socket was empty during this read. Its begin counts: what the next read finds came after that moment, while a
    /// time taken after the read could be later than an arrival, if this thread was held up in between.
    fn note_empty(&mut self, received: &Received<'_>) {
        self.empty_at_ns = received.began_ns;
    }

    fn cause_of_end(&self, handshaking: bool) -> Cause {
        if handshaking {
            return Cause::Tls("closed by the server during the handshake".to_owned());
        }
        let when = if self.phase == Phase::Open { "" } else { " before CONNACK" };
        Cause::Dropped(format!("closed by the server{when}"))
    }

    /// Handles all packets that are complete now.
    fn consume(
        &mut self,
        shared: &mut Shared,
        mut bytes: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if !self.partial.is_empty() {
            bytes = self.complete_partial(shared, bytes, times, sink)?;
        }
        while let Some(found) = self.frame(shared, bytes)? {
            bytes = &bytes[found.total_bytes..];
            self.handle(shared, &found, times.of(bytes.is_empty()), sink)?;
        }
        if !bytes.is_empty() {
            self.partial = std::mem::take(&mut shared.spare);
            self.keep(shared, bytes);
        }
        Ok(())
    }

    /// Adds to the packet begun earlier; returns the bytes behind it.
    fn complete_partial<'a>(
        &mut self,
        shared: &mut Shared,
        mut bytes: &'a [u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<&'a [u8], Cause> {
        while !bytes.is_empty() {
            let missing = announced_bytes(&self.partial).map_or(1, |total| total - self.partial.len());
            let (more, rest) = bytes.split_at(missing.min(bytes.len()));
            self.keep(shared, more);
            bytes = rest;
            let mut whole = std::mem::take(&mut self.partial);
            let Some(found) = self.frame(shared, &whole)? else {
                self.partial = whole;
                continue;
            };
            self.handle(shared, &found, times.of(bytes.is_empty()), sink)?;
            whole.clear();
            shared.spare = whole;
            break;
        }
        Ok(bytes)
    }

    /// Keeps bytes of an incomplete packet, with room for the rest of it unless it will be refused.
    fn keep(&mut self, shared: &Shared, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let total = announced_bytes(&self.partial);
        if let Some(total) = total.filter(|total| *total <= shared.config.maximum_packet_bytes) {
            self.partial.reserve_exact(total - self.partial.len());
        }
    }

    fn frame<'a>(&self, shared: &Shared, bytes: &'a [u8]) -> Result<Option<Frame<'a>>, Cause> {
        frame(bytes, shared.config.maximum_packet_bytes).map_err(broken)
    }

    fn handle(
        &mut self,
        shared: &mut Shared,
        found: &Frame<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let packet = found.packet_type().ok_or_else(|| broken(DecodeError::ReservedType))?;
        match (self.phase, packet) {
            (Phase::Opening, PacketType::Connack) => self.on_connack(shared, found, sink),
            (Phase::Open, PacketType::Publish) => self.on_publish(shared, found, times, sink),
            (Phase::Open, packet) if AckKind::of(packet).is_some() => {
                let ack = decode_ack(shared.version, found).map_err(broken)?;
                self.on_ack(shared, &ack, sink)
            }
            (Phase::Open, _) => match decode(shared.version, found).map_err(broken)? {
                Packet::Suback(suback) => self.on_suback(&suback, sink),
                Packet::Pingresp => Ok(()),
                Packet::Disconnect(disconnect) => Err(said_goodbye(&disconnect)),
                _ => Err(unexpected(packet, self.phase)),
            },
            _ => Err(unexpected(packet, self.phase)),
        }
    }

    fn on_publish(
        &mut self,
        shared: &mut Shared,
        found: &Frame<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let publish = decode_publish(shared.version, found).map_err(broken)?;
        let mut first = true;
        if let Some(packet_id) = publish.head.packet_id {
            let kind = if publish.head.qos == Qos::ExactlyOnce {
                first = self.received_ids.insert(packet_id);
                AckKind::Pubrec
            } else {
                AckKind::Puback
            };
            self.answer(shared, kind, packet_id, reason::SUCCESS);
        }
        if first {
            let delivery = Delivery {
                payload: publish.payload,
                retained: publish.head.retain,
                at_ns: times.at_ns,
                empty_at_ns: times.empty_at_ns,
                kernel_ns: times.kernel_ns,
            };
            sink.delivered(self.id, delivery);
        }
        Ok(())
    }
}

impl Times {
    /// Without the kernel's stamp for a packet that does not end where the read ends.
    fn of(self, ends_the_read: bool) -> Times {
        Times { kernel_ns: self.kernel_ns.filter(|_| ends_the_read), ..self }
    }
}

fn broken(error: DecodeError) -> Cause {
    Cause::Protocol(error.to_string())
}

fn said_goodbye(disconnect: &Disconnect<'_>) -> Cause {
    let code = disconnect.reason;
    Cause::Server { code, reason: reason_name(code), too_large: code == reason::PACKET_TOO_LARGE }
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
