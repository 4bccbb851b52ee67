//! PUBLISH from a client, and the sessions that it is sent to.

use std::rc::Rc;

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::{Ack, AckKind, Frame, Publish, Version, decode_publish, encode_ack, reason};

use super::broker::Broker;
use super::message::{Manner, Message};
use super::peer::Farewell;
use super::subscribe::Options;
use crate::net::Key;

/// A session that gets a message, with its matching subscriptions merged.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) session: Key,
    pub(crate) manner: Manner,
    pub(crate) subscription_ids: Vec<u32>,
}

impl Broker {
    pub(super) fn publish(
        &mut self,
        key: Key,
        session: Key,
        version: Version,
        packet: &Frame<'_>,
    ) -> Result<(), Farewell> {
        let publish = decode_publish(version, packet).map_err(|error| self.broken(error))?;
        // We announce no topic aliases, so a client must not use any (MQTT 5.0 §3.3.2.3.4).
        if publish.head.properties.topic_alias().is_some() {
            return Err(self.violation(reason::TOPIC_ALIAS_INVALID));
        }
        match (publish.head.qos, publish.head.packet_id) {
            (Qos::AtLeastOnce, Some(packet_id)) => {
                self.answer(key, version, Ack::new(AckKind::Puback, packet_id, reason::SUCCESS));
            }
            (Qos::ExactlyOnce, Some(packet_id)) => {
                let limit = usize::from(self.settings.receive_maximum.max(1));
                let state = self.sessions.get_mut(session).ok_or(Farewell::Lost)?;
                let is_new = !state.unreleased.contains(&packet_id);
                // Not stored: the session outlives the connection, and the message was not spread.
                if is_new && state.unreleased.len() >= limit && version == Version::V5 {
                    return Err(self.violation(reason::RECEIVE_MAXIMUM_EXCEEDED));
                }
                state.unreleased.insert(packet_id);
                self.answer(key, version, Ack::new(AckKind::Pubrec, packet_id, reason::SUCCESS));
                if !is_new {
                    return Ok(());
                }
            }
            _ => {}
        }
        self.statistics.messages_received += 1;
        if let Some(pace) = &mut self.pace {
            pace.charge(self.now_ns);
        }
        self.spread(Some(session), &publish);
        self.work_off();
        Ok(())
    }

    /// Appends an acknowledgement to a connection's output.
    pub(super) fn answer(&mut self, key: Key, version: Version, ack: Ack<'_>) {
        if let Some(peer) = self.peers.get_mut(key) {
            encode_ack(version, &ack, peer.connection.outgoing()).expect("an identifier that was read is not 0");
            self.mark_dirty(key);
        }
    }

    /// Stores a retained message and sends a message to all its subscribers; `from` is its publisher's session.
    pub(super) fn spread(&mut self, from: Option<Key>, publish: &Publish<'_>) {
        if publish.head.retain {
            let (topics, bytes) = (self.settings.maximum_retained_topics, self.settings.maximum_retained_bytes);
            let kept = self.retained.store(publish, self.now_ns, topics, bytes);
            if !kept.unwrap_or(false) {
                self.statistics.dropped_retained += 1;
            }
        }
        let mut targets = std::mem::take(&mut self.targets);
        self.find_targets(from, publish, &mut targets);
        let mut kept: Option<Rc<Message>> = None;
        for target in targets.drain(..) {
            self.deliver(&target, publish, &mut kept);
        }
        self.targets = targets;
    }

    /// Each session once, with the highest level of its matching subscriptions (MQTT 5.0 §3.3.4 leaves the choice).
    fn find_targets(&mut self, from: Option<Key>, publish: &Publish<'_>, targets: &mut Vec<Target>) {
        self.routed += 1;
        let routed = self.routed;
        let sessions = &mut self.sessions;
        self.tree.matching(publish.head.topic, |session, options: &Options| {
            if options.no_local && from == Some(session) {
                return;
            }
            let Some(state) = sessions.get_mut(session) else { return };
            let qos = options.qos.min(publish.head.qos);
            let retain = options.retain_as_published && publish.head.retain;
            if state.routed.0 == routed {
                if let Some(target) = targets.get_mut(state.routed.1 as usize) {
                    target.manner.qos = target.manner.qos.max(qos);
                    target.manner.retain |= retain;
                    target.subscription_ids.extend(options.subscription_id);
                }
                return;
            }
            state.routed = (routed, targets.len() as u32);
            // An empty list allocates no memory, and most have no identifier.
            let subscription_ids = options.subscription_id.into_iter().collect();
            targets.push(Target { session, manner: Manner { qos, retain }, subscription_ids });
        });
    }
}
