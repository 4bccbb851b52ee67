//! The end of connections, and its consequences: wills, and sessions that expire.

use pubmark_wire::mqtt::{Disconnect, Properties, Publish, PublishHead, Version, encode_disconnect, reason};

use super::broker::Broker;
use super::peer::Farewell;
use crate::net::Key;

const NANOSECONDS: u64 = 1_000_000_000;

impl Broker {
    /// Ends a connection: sends the reason if the broker ends it, then decides about its will and its session.
    pub(super) fn end(&mut self, key: Key, farewell: Farewell) {
        if let Farewell::Ours(reason) = farewell {
            self.send_goodbye(key, reason);
        }
        // Closing the socket removes it from the poll.
        let Some(peer) = self.peers.remove(key) else { return };
        peer.connection.close();
        let Some(session_key) = peer.session else { return };
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        session.peer = None;
        session.disconnected_ns = self.now_ns;
        if farewell == Farewell::Client {
            session.will = None;
        }
        if let Some(will) = &session.will {
            // A will never outlives its session (MQTT 5.0 §3.1.3.2.2).
            let delay_s = will.delay_s.min(session.expiry_s);
            session.will_due_ns = Some(self.now_ns.saturating_add(u64::from(delay_s) * NANOSECONDS));
            if delay_s == 0 {
                self.publish_will(session_key);
            }
        }
        if self.sessions.get(session_key).is_some_and(|session| session.expiry_s == 0) {
            self.forget(session_key);
        }
    }

    /// Writes a DISCONNECT with a reason (5.0 only) as far as the socket accepts it at once.
    pub(super) fn send_goodbye(&mut self, key: Key, reason: u8) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.session.is_some() && peer.version == Version::V5 && reason != reason::SUCCESS {
            let disconnect = Disconnect { reason, properties: Properties::NONE };
            encode_disconnect(Version::V5, &disconnect, peer.connection.outgoing())
                .expect("a DISCONNECT of three bytes can be said");
        }
        // The packet is optional: the connection ends whether it arrives or not.
        peer.connection.flush(&self.poll, key).ok();
    }

    fn publish_will(&mut self, session_key: Key) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        session.will_due_ns = None;
        let Some(will) = session.will.take() else { return };
        let publish = will.message.publish();
        let head = PublishHead { qos: will.manner.qos, retain: will.manner.retain, ..publish.head };
        self.spread(Some(session_key), &Publish { head, payload: publish.payload });
    }

    /// Ends a session and its subscriptions.
    pub(super) fn forget(&mut self, session_key: Key) {
        // The end of a session is the latest time for its will.
        self.publish_will_that_waits(session_key);
        let Some(session) = self.sessions.remove(session_key) else { return };
        for filter in &session.filters {
            self.tree.remove(filter, session_key);
        }
        self.by_client_id.remove(&session.client_id);
    }

    fn publish_will_that_waits(&mut self, session_key: Key) {
        if self.sessions.get(session_key).is_some_and(|session| session.will_due_ns.is_some()) {
            self.publish_will(session_key);
        }
    }

    /// Publishes wills that are due and ends sessions that have expired.
    pub(super) fn expire(&mut self) {
        let now_ns = self.now_ns;
        let mut wills = Vec::new();
        let mut ended = Vec::new();
        for (key, session) in self.sessions.iter() {
            if session.peer.is_some() {
                continue;
            }
            if session.will_due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                wills.push(key);
            }
            let kept_ns = u64::from(session.expiry_s) * NANOSECONDS;
            if session.expiry_s != u32::MAX && now_ns.saturating_sub(session.disconnected_ns) >= kept_ns {
                ended.push(key);
            }
        }
        wills.into_iter().for_each(|key| self.publish_will(key));
        ended.into_iter().for_each(|key| self.forget(key));
    }
}
