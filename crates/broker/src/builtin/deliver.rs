//! Sending messages to a client, and its acknowledgements.

use std::rc::Rc;

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::{Ack, AckKind, Frame, Properties, Publish, PublishHead, Version};
use pubmark_wire::mqtt::{decode_ack, encode_publish, reason};

use super::broker::{Broker, EARLY_FLUSH_BYTES};
use super::message::{Manner, Message, forwarded};
use super::peer::{Farewell, Peer};
use super::publish::Target;
use super::session::Queued;
use crate::net::Key;

/// First reason code that means a failure.
const FIRST_FAILURE: u8 = 0x80;

/// Result of writing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Yes,
    TooLarge,
    Expired,
}

impl Broker {
    /// Sends a message to one session now, or queues it if its level requires that. `kept` is the message in our own memory:
    /// a retained one, or made when the first target needs it.
    pub(super) fn deliver(&mut self, target: &Target, publish: &Publish<'_>, kept: &mut Option<Rc<Message>>) {
        let Some(session) = self.sessions.get_mut(target.session) else { return };
        let peer = session.peer;
        if target.manner.qos == Qos::BestEffort {
            // A client without a connection does not get QoS 0 messages.
            if let Some(peer) = peer {
                // A message that is not in our memory was received just now.
                let age_ns = kept.as_ref().map_or(0, |message| self.now_ns.saturating_sub(message.received_ns));
                self.deliver_at_once(peer, target, publish, age_ns);
            }
            return;
        }
        if session.outgoing.queue.len() >= self.settings.maximum_queued_messages {
            self.statistics.dropped_queued_messages += 1;
            return;
        }
        let message = match kept {
            Some(message) => Rc::clone(message),
            None => {
                let Ok(message) = Message::new(publish, self.now_ns) else { return };
                Rc::clone(kept.insert(Rc::new(message)))
            }
        };
        let subscription_ids = target.subscription_ids.as_slice().into();
        session.outgoing.queue.push_back(Queued { message, manner: target.manner, subscription_ids });
        if peer.is_some() {
            self.advance(target.session);
        }
    }

    /// QoS 0: straight from the buffer it was read into. `age_ns` is the time since it was received.
    fn deliver_at_once(&mut self, key: Key, target: &Target, publish: &Publish<'_>, age_ns: u64) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.connection.pending_bytes() > self.settings.maximum_queued_bytes && !peer.connection.is_blocked() {
            self.flush(key);
        }
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.connection.pending_bytes() > self.settings.maximum_queued_bytes {
            self.statistics.dropped_queued_bytes += 1;
            return;
        }
        let written = write_message(peer, publish, target.manner, None, false, &target.subscription_ids, age_ns);
        let is_early = peer.connection.pending_bytes() > EARLY_FLUSH_BYTES && !peer.connection.is_blocked();
        self.count(written);
        if is_early {
            self.flush(key);
        } else {
            self.mark_dirty(key);
        }
    }

    fn count(&mut self, written: Written) {
        match written {
            Written::Yes => self.statistics.messages_sent += 1,
            Written::TooLarge => self.statistics.dropped_too_large += 1,
            Written::Expired => self.statistics.expired += 1,
        }
    }

    /// Sends queued messages until the in-flight window is full.
    pub(super) fn advance(&mut self, session_key: Key) {
        loop {
            let Some(session) = self.sessions.get_mut(session_key) else { return };
            let Some(key) = session.peer else { return };
            if !session.outgoing.has_room() {
                return;
            }
            let Some(queued) = session.outgoing.queue.pop_front() else { return };
            let Some(peer) = self.peers.get_mut(key) else { return };
            let message = Rc::clone(&queued.message);
            let (manner, ids) = (queued.manner, queued.subscription_ids.clone());
            let age_ns = self.now_ns.saturating_sub(message.received_ns);
            let packet_id = session.outgoing.start(queued, manner.qos);
            let written = write_message(peer, &message.publish(), manner, Some(packet_id), false, &ids, age_ns);
            if written != Written::Yes {
                session.outgoing.finish(packet_id, manner.qos);
            }
            self.count(written);
            self.mark_dirty(key);
        }
    }

    /// A client has reconnected: resends what it has not acknowledged, in order, then continues with the queue (MQTT 5.0 §4.4).
    pub(super) fn resume(&mut self, session_key: Key) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        let Some(key) = session.peer else { return };
        let Some(peer) = self.peers.get_mut(key) else { return };
        let version = peer.version;
        let mut releases = Vec::new();
        for packet_id in session.outgoing.in_order() {
            let Some(flight) = session.outgoing.in_flight.get(&packet_id) else { continue };
            match &flight.waiting {
                None => releases.push(packet_id),
                Some(queued) => {
                    let (publish, manner) = (queued.message.publish(), queued.manner);
                    let age_ns = self.now_ns.saturating_sub(queued.message.received_ns);
                    let ids = &queued.subscription_ids;
                    let written = write_message(peer, &publish, manner, Some(packet_id), true, ids, age_ns);
                    // It was counted when it was sent first; a message that cannot be resent is finished.
                    if written != Written::Yes {
                        session.outgoing.finish(packet_id, manner.qos);
                    }
                }
            }
        }
        for packet_id in releases {
            self.answer(key, version, Ack::new(AckKind::Pubrel, packet_id, reason::SUCCESS));
        }
        self.mark_dirty(key);
        self.advance(session_key);
    }

    /// PUBACK, PUBREC, PUBCOMP for what the broker sent; PUBREL for what it received.
    pub(super) fn acknowledge(
        &mut self,
        key: Key,
        session_key: Key,
        version: Version,
        packet: &Frame<'_>,
    ) -> Result<(), Farewell> {
        let ack = decode_ack(version, packet).map_err(|error| self.broken(error))?;
        let Some(session) = self.sessions.get_mut(session_key) else { return Err(Farewell::Lost) };
        let outgoing = &mut session.outgoing;
        let packet_id = ack.packet_id;
        match ack.kind {
            // An unknown identifier belongs to a session that has ended: nothing to do.
            AckKind::Puback => {
                outgoing.finish(packet_id, Qos::AtLeastOnce);
            }
            AckKind::Pubrec if ack.reason >= FIRST_FAILURE => {
                outgoing.finish(packet_id, Qos::ExactlyOnce);
            }
            AckKind::Pubrec => {
                let found = outgoing.received(packet_id);
                let reason = if found { reason::SUCCESS } else { reason::PACKET_IDENTIFIER_NOT_FOUND };
                self.answer(key, version, Ack::new(AckKind::Pubrel, packet_id, reason));
                return Ok(());
            }
            AckKind::Pubcomp => {
                outgoing.complete(packet_id);
            }
            AckKind::Pubrel => {
                let found = session.unreleased.remove(&packet_id);
                let reason = if found { reason::SUCCESS } else { reason::PACKET_IDENTIFIER_NOT_FOUND };
                self.answer(key, version, Ack::new(AckKind::Pubcomp, packet_id, reason));
                return Ok(());
            }
        }
        self.advance(session_key);
        Ok(())
    }
}

/// Appends a message to a connection's output, unless its client accepts no packets of this size or the message has expired.
fn write_message(
    peer: &mut Peer,
    publish: &Publish<'_>,
    manner: Manner,
    packet_id: Option<u16>,
    dup: bool,
    subscription_ids: &[u32],
    age_ns: u64,
) -> Written {
    let mut list = Vec::new();
    if peer.version == Version::V5 || !publish.head.properties.is_empty() {
        match forwarded(&publish.head.properties, subscription_ids, age_ns) {
            Some(found) => list = found,
            None => return Written::Expired,
        }
    }
    let Manner { qos, retain } = manner;
    let head =
        PublishHead { dup, qos, retain, topic: publish.head.topic, packet_id, properties: Properties::new(&list) };
    let limit = peer.maximum_packet_bytes;
    let out = peer.connection.outgoing();
    let start = out.len();
    if encode_publish(peer.version, &Publish { head, payload: publish.payload }, out).is_err() {
        return Written::TooLarge;
    }
    if out.len() - start > limit {
        out.truncate(start);
        return Written::TooLarge;
    }
    Written::Yes
}
