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
        let outgoing = &mut session.outgoing;
        if outgoing.queued().len() >= self.settings.maximum_queued_messages
            || outgoing.stored_bytes() > self.settings.maximum_queued_bytes
        {
            self.statistics.dropped_queued_messages += 1;
            return;
        }
        let message = match kept {
            Some(message) => Rc::clone(message),
            None => {
                let Ok(message) = Message::new(publish, self.now_ns) else {
                    self.statistics.dropped_too_large += 1;
                    return;
                };
                Rc::clone(kept.insert(Rc::new(message)))
            }
        };
        let subscription_ids = target.subscription_ids.as_slice().into();
        let queued = Queued { message, manner: target.manner, subscription_ids };
        let bytes = queued.bytes();
        outgoing.push(queued, target.manner.qos, bytes);
        if peer.is_some() {
            self.advance(target.session);
        }
    }

    /// QoS 0: straight from the buffer it was read into. `age_ns` is the time since it was received.
    fn deliver_at_once(&mut self, key: Key, target: &Target, publish: &Publish<'_>, age_ns: u64) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.connection.pending_bytes() > self.settings.maximum_queued_bytes {
            self.flush_early(key);
        }
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.connection.pending_bytes() > self.settings.maximum_queued_bytes {
            self.statistics.dropped_queued_bytes += 1;
            return;
        }
        let written = write_message(peer, publish, target.manner, None, false, &target.subscription_ids, age_ns);
        let is_early = peer.connection.pending_bytes() > EARLY_FLUSH_BYTES;
        self.count(written);
        if is_early {
            self.flush_early(key);
        } else {
            self.mark_dirty(key);
        }
    }

    /// Writes to a client while a message is sent to all its subscribers. A failure does not end the connection here, because
    /// that could publish a will before the message has reached all of them, and a will could end the next connection, and so
    /// on. The write at the end of this wake-up fails as well and ends it.
    fn flush_early(&mut self, key: Key) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if !peer.connection.is_blocked() {
            peer.connection.flush(&self.poll, key).ok();
        }
        self.mark_dirty(key);
    }

    fn count(&mut self, written: Written) {
        match written {
            Written::Yes => self.statistics.messages_sent += 1,
            Written::TooLarge => self.statistics.dropped_too_large += 1,
            Written::Expired => self.statistics.expired += 1,
        }
    }

    /// Sends messages in flight that are owed to a new connection, then queued ones, until the in-flight window is full.
    pub(super) fn advance(&mut self, session_key: Key) {
        loop {
            let Some(session) = self.sessions.get_mut(session_key) else { return };
            let Some(key) = session.peer else { return };
            let Some(peer) = self.peers.get_mut(key) else { return };
            let Some(next) = session.outgoing.next_to_send() else { return };
            let (packet_id, is_repeated) = (next.packet_id, next.is_repeated);
            let Queued { message, manner, subscription_ids } = next.message;
            let manner = *manner;
            let age_ns = self.now_ns.saturating_sub(message.received_ns);
            let publish = message.publish();
            let written = write_message(peer, &publish, manner, Some(packet_id), is_repeated, subscription_ids, age_ns);
            if written != Written::Yes {
                session.outgoing.finish(packet_id, manner.qos);
            }
            // What is repeated was counted when it was sent first.
            if !is_repeated {
                self.count(written);
            }
            self.mark_dirty(key);
        }
    }

    /// A client has reconnected: resends what it has not acknowledged, in order, then continues with the queue (MQTT 5.0 §4.4),
    /// all of it within the window of the new connection.
    pub(super) fn resume(&mut self, session_key: Key, window: u16) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        let Some(key) = session.peer else { return };
        let Some(peer) = self.peers.get(key) else { return };
        let version = peer.version;
        let releases = session.outgoing.reconnect(window);
        self.advance(session_key);
        for packet_id in releases {
            self.answer(key, version, Ack::new(AckKind::Pubrel, packet_id, reason::SUCCESS));
        }
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
        match forwarded(&publish.head.properties, subscription_ids, age_ns, dup) {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;
    use std::time::Instant;

    use pubmark_wire::mqtt::{Connect, Packet, Will, encode};

    use super::super::served::{CONNACK, PATIENCE, SUBACK, SUBSCRIBE, Served};
    use super::*;

    fn head(topic: &str) -> PublishHead<'_> {
        let properties = Properties::NONE;
        PublishHead { dup: false, qos: Qos::BestEffort, retain: false, topic, packet_id: None, properties }
    }

    #[test]
    fn a_will_of_a_client_whose_write_fails_comes_after_the_message_that_was_written() {
        let mut served = Served::with(|_| {});
        let properties = Properties::NONE;
        let will = Will { qos: Qos::BestEffort, retain: false, topic: "t", payload: b"will", properties };
        let connect = Connect {
            version: Version::V311,
            clean_start: true,
            keep_alive_s: 0,
            client_id: "broken",
            will: Some(will),
            user: None,
            password: None,
            properties,
        };
        let mut bytes = vec![];
        encode(Version::V311, &Packet::Connect(connect), &mut bytes).unwrap();
        bytes.extend(SUBSCRIBE);
        let mut broken = served.socket();
        broken.write_all(&bytes).unwrap();
        let until = Instant::now() + PATIENCE;
        while broken.peek(&mut [0; 64]).unwrap_or(0) < CONNACK.len() + SUBACK.len() {
            served.wake_up();
            assert!(Instant::now() < until, "no SUBACK came");
        }
        let key = served.only_peer();
        let mut other = served.client(b'o');
        other.write_all(&SUBSCRIBE).unwrap();
        assert_eq!(served.received(&mut other, SUBACK.len()), SUBACK);
        // It has not read what it got, so that closing resets the connection, and the next write fails.
        drop(broken);
        served.wait_until_readable(key);

        let payload = vec![b'm'; EARLY_FLUSH_BYTES + 1];
        let message = Publish { head: head("t"), payload: &payload };
        served.broker.spread(None, &message);
        let mut expected = vec![];
        encode_publish(Version::V311, &message, &mut expected).unwrap();
        encode_publish(Version::V311, &Publish { head: head("t"), payload: b"will" }, &mut expected).unwrap();
        assert!(served.received(&mut other, expected.len()) == expected, "the will came first");
    }
}
