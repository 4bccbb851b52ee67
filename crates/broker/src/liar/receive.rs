//! Packets from clients: messages and acknowledgements.

use std::rc::Rc;
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clock::monotonic_ns;
use pubmark_wire::mqtt::{Ack, AckKind, Frame, Packet, PacketType, Publish, Version, decode, decode_publish};
use pubmark_wire::mqtt::{encode_ack, encode_pingresp, reason};

use super::journal::Event;
use super::server::{Gone, Liar};
use super::state::{Message, Why};
use crate::net::Key;

/// First reason code that means a failure.
const FIRST_FAILURE: u8 = 0x80;

impl Liar {
    pub(super) fn serve(&mut self, key: Key, session: Key, packet: &Frame<'_>) -> Result<(), Gone> {
        let Some(peer) = self.peers.get(key) else { return Err(Gone) };
        let Ok(packet) = decode(peer.version, packet) else {
            self.remove(key, "malformed");
            return Err(Gone);
        };
        match packet {
            Packet::Publish(publish) => self.publish(key, session, &publish),
            Packet::Ack(ack) => {
                self.acknowledge(key, session, &ack);
                Ok(())
            }
            Packet::Subscribe(subscribe) => {
                self.subscribe(key, session, &subscribe);
                Ok(())
            }
            Packet::Unsubscribe(unsubscribe) => {
                self.unsubscribe(key, session, &unsubscribe);
                Ok(())
            }
            Packet::Pingreq => {
                if let Some(peer) = self.peers.get_mut(key) {
                    encode_pingresp(peer.connection.outgoing());
                    peer.appended_bytes += 2;
                    self.mark_dirty(key);
                }
                Ok(())
            }
            Packet::Auth(auth) => self.authenticate(key, &auth),
            Packet::Disconnect(_) => {
                self.remove(key, "goodbye");
                Err(Gone)
            }
            _ => {
                self.remove(key, "malformed");
                Err(Gone)
            }
        }
    }

    /// A packet on a connection that was cut: messages are recorded in the journal, and otherwise ignored.
    pub(super) fn discard(&mut self, key: Key, packet: &Frame<'_>) -> Result<(), Gone> {
        let Some(peer) = self.peers.get(key) else { return Err(Gone) };
        if packet.packet_type() == Some(PacketType::Publish)
            && let Ok(publish) = decode_publish(peer.version, packet)
        {
            let client = Rc::clone(&peer.client);
            self.note_publish(Event::Discarded, &client, &publish);
        }
        Ok(())
    }

    fn note_publish(&mut self, event: Event, client: &str, publish: &Publish<'_>) -> u64 {
        let head = &publish.head;
        self.journal
            .line(event)
            .text(client)
            .text(head.topic)
            .optional(head.packet_id)
            .number(head.qos.level().into())
            .flag(head.dup)
            .number(publish.payload.len() as u64)
            .head(publish.payload)
            .end()
    }

    fn publish(&mut self, key: Key, session_key: Key, publish: &Publish<'_>) -> Result<(), Gone> {
        let Some(peer) = self.peers.get(key) else { return Err(Gone) };
        let (version, client) = (peer.version, Rc::clone(&peer.client));
        let Some(session) = self.sessions.get_mut(session_key) else { return Err(Gone) };
        let (qos, packet_id) = (publish.head.qos, publish.head.packet_id);
        if let (Qos::ExactlyOnce, Some(id)) = (qos, packet_id)
            && session.unreleased.contains(&id)
        {
            let line = self.note_publish(Event::Repeated, &client, publish);
            self.answer(key, qos, packet_id, line, reason::SUCCESS);
            return Ok(());
        }

        self.received += 1;
        self.first_message_ns.get_or_insert_with(monotonic_ns);
        let can_refuse = version == Version::V5 && qos != Qos::BestEffort;
        let decision = self.script.judge(&client, publish.head.topic, can_refuse);
        self.take_time(decision.slow);
        if self.peers.get(key).is_none() {
            // Its connection failed in the meantime: the message was read and is not processed.
            self.note_publish(Event::Discarded, &client, publish);
            return Err(Gone);
        }
        let line = self.note_publish(Event::Received, &client, publish);
        let message = Rc::new(Message { topic: publish.head.topic.into(), payload: publish.payload.into(), qos, line });
        self.remember(&message, publish.head.retain);

        let cut = decision.cut_publisher;
        let refusal = decision.refusal;
        let drop_reason = match (refusal, cut) {
            (Some((_, false)), _) => Some("refused"),
            (None, Some(cut)) if !cut.after_ack && !cut.forward => Some("cut"),
            _ => None,
        };
        self.spread(&client, &message, &decision, drop_reason);
        self.release_later_copies();
        if let Some(cut) = cut.filter(|cut| !cut.after_ack) {
            self.cut(key, cut.ending, "cut");
            // The connection may still be open, to read what is in flight.
            return self.peers.get(key).map(|_| ()).ok_or(Gone);
        }
        let code = refusal.map_or(reason::SUCCESS, |(code, _)| code);
        if let (Qos::ExactlyOnce, Some(id), true) = (qos, packet_id, code < FIRST_FAILURE)
            && let Some(session) = self.sessions.get_mut(session_key)
        {
            session.unreleased.insert(id);
        }
        self.answer(key, qos, packet_id, line, code);
        if let Some(cut) = cut {
            self.cut(key, cut.ending, "cut");
        }
        self.peers.get(key).map(|_| ()).ok_or(Gone)
    }

    /// Waits for the time that a slow broker needs for a message. Late wake-ups are compensated.
    fn take_time(&mut self, time: Duration) {
        if time.is_zero() {
            return;
        }
        // Earlier output is written first.
        self.flush_dirty();
        let now_ns = monotonic_ns();
        self.busy_until_ns = self.busy_until_ns.max(now_ns) + time.as_nanos() as u64;
        std::thread::sleep(Duration::from_nanos(self.busy_until_ns.saturating_sub(now_ns)));
    }

    fn remember(&mut self, message: &Rc<Message>, retain: bool) {
        if retain && message.payload.is_empty() {
            self.retained.remove(&message.topic);
        } else if retain {
            self.retained.insert(message.topic.clone(), Rc::clone(message));
        }
        if self.script.has_replays() {
            self.last.insert(message.topic.clone(), Rc::clone(message));
        }
    }

    /// PUBACK or PUBREC for a received message.
    fn answer(&mut self, key: Key, qos: Qos, packet_id: Option<u16>, received_line: u64, code: u8) {
        let kind = match qos {
            Qos::BestEffort => return,
            Qos::AtLeastOnce => AckKind::Puback,
            Qos::ExactlyOnce => AckKind::Pubrec,
        };
        let (Some(packet_id), Some(peer)) = (packet_id, self.peers.get(key)) else { return };
        let line = self
            .journal
            .line(Event::Acked)
            .text(&peer.client)
            .number(received_line)
            .number(packet_id.into())
            .number(code.into())
            .end();
        self.write_ack(key, Ack::new(kind, packet_id, code), Some(line));
    }

    fn write_ack(&mut self, key: Key, ack: Ack<'_>, line: Option<u64>) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let (version, out) = (peer.version, peer.connection.outgoing());
        let start = out.len();
        encode_ack(version, &ack, out).expect("an identifier that was read is not 0");
        peer.appended_bytes += (out.len() - start) as u64;
        peer.marks.extend(line.map(|line| (peer.appended_bytes, line)));
        self.mark_dirty(key);
    }

    fn acknowledge(&mut self, key: Key, session_key: Key, ack: &Ack<'_>) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        match ack.kind {
            AckKind::Puback => {
                session.outgoing.finish(ack.packet_id, Qos::AtLeastOnce);
            }
            AckKind::Pubrec if ack.reason >= FIRST_FAILURE => {
                session.outgoing.finish(ack.packet_id, Qos::ExactlyOnce);
            }
            AckKind::Pubrec => {
                session.outgoing.received(ack.packet_id);
                self.write_ack(key, Ack::new(AckKind::Pubrel, ack.packet_id, reason::SUCCESS), None);
            }
            AckKind::Pubcomp => {
                session.outgoing.complete(ack.packet_id);
            }
            AckKind::Pubrel => {
                session.unreleased.remove(&ack.packet_id);
                self.write_ack(key, Ack::new(AckKind::Pubcomp, ack.packet_id, reason::SUCCESS), None);
            }
        }
        self.advance(session_key);
    }

    /// Sends the copies that waited for N messages.
    fn release_later_copies(&mut self) {
        while self.later.peek().is_some_and(|waiting| waiting.due <= self.received) {
            let Some(waiting) = self.later.pop() else { return };
            let copy = waiting.what;
            debug_assert_eq!(copy.why, Why::Duplicate);
            self.send(copy);
        }
    }
}
