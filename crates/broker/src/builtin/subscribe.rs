//! SUBSCRIBE and UNSUBSCRIBE, and the less frequent packets.

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::{Disconnect, Frame, Packet, Properties, RetainHandling, Suback, Subscribe, SubscribeRequest};
use pubmark_wire::mqtt::{Unsuback, Unsubscribe, Version};
use pubmark_wire::mqtt::{decode, encode_pingresp, encode_suback, encode_unsuback, reason};

use super::broker::Broker;
use super::message::Manner;
use super::peer::Farewell;
use super::publish::Target;
use crate::net::Key;
use crate::topic_tree::is_too_deep;

/// The options of a session's subscription to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) qos: Qos,
    pub(crate) no_local: bool,
    pub(crate) retain_as_published: bool,
    pub(crate) subscription_id: Option<u32>,
}

impl Broker {
    pub(super) fn handle_rare(
        &mut self,
        key: Key,
        session: Key,
        version: Version,
        packet: &Frame<'_>,
    ) -> Result<(), Farewell> {
        match decode(version, packet).map_err(|error| self.broken(error))? {
            Packet::Pingreq => {
                if let Some(peer) = self.peers.get_mut(key) {
                    encode_pingresp(peer.connection.outgoing());
                    self.mark_dirty(key);
                }
                Ok(())
            }
            Packet::Subscribe(subscribe) => {
                self.subscribe(key, session, version, &subscribe);
                Ok(())
            }
            Packet::Unsubscribe(unsubscribe) => {
                self.unsubscribe(key, session, version, &unsubscribe);
                Ok(())
            }
            Packet::Disconnect(disconnect) => Err(self.goodbye_of(session, &disconnect)),
            Packet::Auth(auth) => self.reauthenticate(key, &auth),
            // A second CONNECT, or a packet that only servers send.
            _ => Err(self.violation(reason::PROTOCOL_ERROR)),
        }
    }

    fn goodbye_of(&mut self, session: Key, disconnect: &Disconnect<'_>) -> Farewell {
        if let (Some(expiry_s), Some(state)) =
            (disconnect.properties.session_expiry_s(), self.sessions.get_mut(session))
        {
            // A session that was to end with its connection cannot be made persistent now (MQTT 5.0 §3.14.2.2.2).
            if state.expiry_s == 0 && expiry_s != 0 {
                return self.violation(reason::PROTOCOL_ERROR);
            }
            state.expiry_s = expiry_s;
        }
        if disconnect.reason == reason::SUCCESS { Farewell::Client } else { Farewell::Lost }
    }

    fn subscribe(&mut self, key: Key, session: Key, version: Version, subscribe: &Subscribe<'_>) {
        let subscription_id = subscribe.properties.subscription_id();
        let mut codes = Vec::new();
        let mut replays = Vec::new();
        for request in subscribe.filters.iter() {
            match self.add_subscription(session, &request, subscription_id) {
                Ok(is_new) => {
                    codes.push(request.qos.level());
                    let wanted = match request.retain_handling {
                        RetainHandling::Always => true,
                        RetainHandling::IfNew => is_new,
                        RetainHandling::Never => false,
                    };
                    if wanted {
                        replays.push(request);
                    }
                }
                Err(code) if version == Version::V5 => codes.push(code),
                Err(_) => codes.push(reason::UNSPECIFIED_ERROR),
            }
        }
        let suback = Suback { packet_id: subscribe.packet_id, properties: Properties::NONE, codes: &codes };
        if let Some(peer) = self.peers.get_mut(key) {
            let written = encode_suback(version, &suback, peer.connection.outgoing());
            written.expect("one code for each filter of a packet that was read is shorter than the packet");
            self.mark_dirty(key);
        }
        for request in replays {
            self.replay(session, &request, subscription_id);
        }
    }

    fn add_subscription(
        &mut self,
        session: Key,
        request: &SubscribeRequest<'_>,
        subscription_id: Option<u32>,
    ) -> Result<bool, u8> {
        if request.filter.starts_with("$share/") {
            return Err(reason::SHARED_SUBSCRIPTIONS_NOT_SUPPORTED);
        }
        if is_too_deep(request.filter) {
            return Err(reason::TOPIC_FILTER_INVALID);
        }
        let SubscribeRequest { filter, qos, no_local, retain_as_published, .. } = *request;
        let options = Options { qos, no_local, retain_as_published, subscription_id };
        let state = self.sessions.get_mut(session).ok_or(reason::UNSPECIFIED_ERROR)?;
        if state.filters.len() >= self.settings.maximum_subscriptions && !state.filters.contains(filter) {
            self.statistics.subscriptions_refused += 1;
            return Err(reason::QUOTA_EXCEEDED);
        }
        state.filters.insert(filter.into());
        Ok(self.tree.insert(filter, session, options))
    }

    /// Sends the retained messages that a new subscription matches.
    fn replay(&mut self, session: Key, request: &SubscribeRequest<'_>, subscription_id: Option<u32>) {
        for (message, published) in self.retained.matching(request.filter) {
            let manner = Manner { qos: published.min(request.qos), retain: true };
            let target = Target { session, manner, subscription_ids: subscription_id.into_iter().collect() };
            self.deliver(&target, &message.publish(), &mut Some(message.clone()));
        }
    }

    fn unsubscribe(&mut self, key: Key, session: Key, version: Version, unsubscribe: &Unsubscribe<'_>) {
        let mut codes = Vec::new();
        for filter in unsubscribe.filters.iter() {
            let was_there = self.sessions.get_mut(session).is_some_and(|state| state.filters.remove(filter));
            if was_there {
                self.tree.remove(filter, session);
            }
            codes.push(if was_there { reason::SUCCESS } else { reason::NO_SUBSCRIPTION_EXISTED });
        }
        let unsuback = Unsuback { packet_id: unsubscribe.packet_id, properties: Properties::NONE, codes: &codes };
        if let Some(peer) = self.peers.get_mut(key) {
            let written = encode_unsuback(version, &unsuback, peer.connection.outgoing());
            written.expect("one code for each filter of a packet that was read is shorter than the packet");
            self.mark_dirty(key);
        }
    }
}
