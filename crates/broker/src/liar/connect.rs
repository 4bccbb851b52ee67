//! CONNECT and SUBSCRIBE: which clients and subscriptions are accepted, and at which level.

use std::collections::HashSet;
use std::rc::Rc;

use pubmark_wire::mqtt::{
    Auth, Connack, Connect, Disconnect, Frame, Properties, Property, Suback, Subscribe, Unsuback,
};
use pubmark_wire::mqtt::{
    Unsubscribe, Version, decode_connect, encode_auth, encode_connack, encode_disconnect, encode_suback,
};
use pubmark_wire::mqtt::{encode_unsuback, reason};

use super::journal::Event;
use super::script::Ending;
use super::server::{Gone, Liar};
use super::state::{Copy, Message, Phase, Session, Why};
use crate::net::Key;
use crate::outgoing::Outgoing;
use crate::topic_tree::is_too_deep;

/// Messages at QoS 1 and 2 in flight towards a client, unless it allows fewer.
const IN_FLIGHT_WINDOW: u16 = 1_024;

/// The return code of MQTT 3.1.1 that is closest to a reason code.
fn return_code(reason: u8) -> u8 {
    match reason {
        reason::UNSUPPORTED_PROTOCOL_VERSION => 1,
        reason::CLIENT_IDENTIFIER_NOT_VALID => 2,
        reason::BAD_USER_NAME_OR_PASSWORD => 4,
        reason::NOT_AUTHORIZED => 5,
        _ => 3,
    }
}

impl Liar {
    pub(super) fn connect(&mut self, key: Key, packet: &Frame<'_>) -> Result<(), Gone> {
        let Ok(connect) = decode_connect(packet) else {
            self.remove(key, "malformed");
            return Err(Gone);
        };
        let Some(peer) = self.peers.get_mut(key) else { return Err(Gone) };
        peer.version = connect.version;
        if !connect.client_id.is_empty() {
            peer.client = connect.client_id.into();
        }
        let client = Rc::clone(&peer.client);
        let refusal = self.script.refuse_connect(&client, (connect.user, connect.password));
        let is_persistent = match connect.version {
            Version::V311 => !connect.clean_start,
            Version::V5 => connect.properties.session_expiry_s().is_some_and(|seconds| seconds > 0),
        };
        if let Some(reason) = refusal {
            self.answer_connect(key, &connect, is_persistent, false, reason);
            self.flush(key);
            self.remove(key, "refused");
            return Err(Gone);
        }
        let (session_key, is_present) = self.session_for(&client, connect.clean_start);
        let Some(session) = self.sessions.get_mut(session_key) else { return Err(Gone) };
        session.peer = Some(key);
        session.is_persistent = is_persistent;
        if let Some(peer) = self.peers.get_mut(key) {
            peer.phase = Phase::Open;
            peer.session = Some(session_key);
        }
        self.answer_connect(key, &connect, is_persistent, is_present, reason::SUCCESS);
        let window = connect.properties.receive_maximum().unwrap_or(u16::MAX).clamp(1, IN_FLIGHT_WINDOW);
        self.resume(session_key, window);
        Ok(())
    }

    fn answer_connect(&mut self, key: Key, connect: &Connect<'_>, is_persistent: bool, is_present: bool, reason: u8) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let code = if connect.version == Version::V5 { reason } else { u8::min(reason, return_code(reason)) };
        self.journal
            .line(Event::Open)
            .text(&peer.client)
            .word(if connect.version == Version::V5 { "5" } else { "3.1.1" })
            .flag(is_persistent)
            .flag(is_present)
            .number(code.into())
            .end();
        let assigned = [Property::AssignedClientIdentifier(&peer.client)];
        // Whoever names a method gets it back (MQTT 5.0 §4.12).
        let method = connect.properties.authentication_method().map(Property::AuthenticationMethod);
        let properties: Vec<Property<'_>> =
            assigned.into_iter().filter(|_| connect.client_id.is_empty()).chain(method).collect();
        let properties = Properties::new(&properties);
        let connack = Connack { session_present: is_present, code, properties };
        let out = peer.connection.outgoing();
        let start = out.len();
        encode_connack(connect.version, &connack, out).expect("a short CONNACK can be said");
        peer.appended_bytes += (out.len() - start) as u64;
        self.mark_dirty(key);
    }

    /// A new token on an open connection: taken without being looked at, or refused as the script says.
    pub(super) fn authenticate(&mut self, key: Key, auth: &Auth<'_>) -> Result<(), Gone> {
        let Some(peer) = self.peers.get(key) else { return Err(Gone) };
        let client = Rc::clone(&peer.client);
        let method = auth.properties.iter().find(|property| matches!(property, Property::AuthenticationMethod(_)));
        let has_token = auth
            .properties
            .iter()
            .any(|property| matches!(property, Property::AuthenticationData(data) if !data.is_empty()));
        let refusal = match auth.reason == reason::RE_AUTHENTICATE && method.is_some() && has_token {
            true => self.script.refuse_reauthentication(&client),
            false => Some(reason::PROTOCOL_ERROR),
        };
        let Some(peer) = self.peers.get_mut(key) else { return Err(Gone) };
        let out = peer.connection.outgoing();
        let start = out.len();
        match refusal {
            None => {
                let properties: Vec<Property<'_>> = method.into_iter().collect();
                let answer = Auth { reason: reason::SUCCESS, properties: Properties::new(&properties) };
                encode_auth(Version::V5, &answer, out).expect("a short AUTH can be said");
            }
            Some(code) => {
                let goodbye = Disconnect { reason: code, properties: Properties::NONE };
                encode_disconnect(Version::V5, &goodbye, out).expect("a DISCONNECT of three bytes can be said");
            }
        }
        peer.appended_bytes += (out.len() - start) as u64;
        self.mark_dirty(key);
        if refusal.is_some() {
            self.flush(key);
            self.remove(key, "refused");
            return Err(Gone);
        }
        Ok(())
    }

    fn session_for(&mut self, client: &Rc<str>, clean_start: bool) -> (Key, bool) {
        if let Some(&old) = self.by_client.get(client) {
            if let Some(peer) = self.sessions.get(old).and_then(|session| session.peer) {
                self.send_taken_over(peer);
                self.cut(peer, Ending::Close, "takeover");
            }
            if self.sessions.get(old).is_some() {
                if !clean_start {
                    return (old, true);
                }
                self.forget(old);
            }
        }
        let key = self.sessions.insert(Session {
            client: Rc::clone(client),
            peer: None,
            is_persistent: false,
            filters: HashSet::new(),
            outgoing: Outgoing::new(),
            unreleased: HashSet::new(),
        });
        self.by_client.insert(Rc::clone(client), key);
        (key, false)
    }

    fn send_taken_over(&mut self, key: Key) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.version == Version::V5 {
            let disconnect = Disconnect { reason: reason::SESSION_TAKEN_OVER, properties: Properties::NONE };
            let out = peer.connection.outgoing();
            let start = out.len();
            encode_disconnect(Version::V5, &disconnect, out).expect("a DISCONNECT of three bytes can be said");
            peer.appended_bytes += (out.len() - start) as u64;
        }
    }

    pub(super) fn subscribe(&mut self, key: Key, session_key: Key, subscribe: &Subscribe<'_>) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        let client = Rc::clone(&session.client);
        let mut codes = Vec::new();
        let mut replays: Vec<(String, _)> = Vec::new();
        for request in subscribe.filters.iter() {
            let is_possible = !is_too_deep(request.filter) && !request.filter.starts_with("$share/");
            let granted = match self.script.grant(&client, request.filter, request.qos) {
                Ok(level) if is_possible => Ok(level),
                Ok(_) => Err(reason::TOPIC_FILTER_INVALID),
                Err(code) => Err(code),
            };
            let version = self.peers.get(key).map_or(Version::V311, |peer| peer.version);
            let code = match granted {
                Ok(level) => level.level(),
                Err(_) if version == Version::V311 => reason::UNSPECIFIED_ERROR,
                Err(code) => code,
            };
            let mut is_new = false;
            if let Ok(level) = granted {
                is_new = session.filters.insert(request.filter.into());
                self.tree.insert(request.filter, session_key, level);
                replays.push((request.filter.to_string(), level));
            }
            self.journal
                .line(Event::Subscribed)
                .text(&client)
                .text(request.filter)
                .number(request.qos.level().into())
                .number(code.into())
                .flag(is_new)
                .end();
            codes.push(code);
        }
        let suback = Suback { packet_id: subscribe.packet_id, properties: Properties::NONE, codes: &codes };
        if let Some(peer) = self.peers.get_mut(key) {
            let (version, out) = (peer.version, peer.connection.outgoing());
            let start = out.len();
            encode_suback(version, &suback, out).expect("codes are fewer than the filters' bytes");
            peer.appended_bytes += (out.len() - start) as u64;
            self.mark_dirty(key);
        }
        for (filter, level) in replays {
            self.replay(session_key, &client, &filter, level);
        }
    }

    /// Sends retained messages, and the last ones of all topics if the script says so.
    fn replay(&mut self, to: Key, client: &Rc<str>, filter: &str, level: pubmark_model::qos::Qos) {
        let source = if self.script.replays(client, filter) { &self.last } else { &self.retained };
        let filter = pubmark_model::topic::TopicFilter(filter.to_string());
        let mut found: Vec<Rc<Message>> =
            source.values().filter(|message| filter.matches(&message.topic)).map(Rc::clone).collect();
        found.sort_unstable_by_key(|message| message.line);
        for message in found {
            let qos = level.min(message.qos);
            self.send(Copy { message, to, client: Rc::clone(client), qos, why: Why::Retained, cut: None });
        }
    }

    pub(super) fn unsubscribe(&mut self, key: Key, session_key: Key, unsubscribe: &Unsubscribe<'_>) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        let mut codes = Vec::new();
        for filter in unsubscribe.filters.iter() {
            let was_there = session.filters.remove(filter);
            if was_there {
                self.tree.remove(filter, session_key);
                self.journal.line(Event::Unsubscribed).text(&session.client).text(filter).end();
            }
            codes.push(if was_there { reason::SUCCESS } else { reason::NO_SUBSCRIPTION_EXISTED });
        }
        let unsuback = Unsuback { packet_id: unsubscribe.packet_id, properties: Properties::NONE, codes: &codes };
        if let Some(peer) = self.peers.get_mut(key) {
            let (version, out) = (peer.version, peer.connection.outgoing());
            let start = out.len();
            encode_unsuback(version, &unsuback, out).expect("codes are fewer than the filters' bytes");
            peer.appended_bytes += (out.len() - start) as u64;
            self.mark_dirty(key);
        }
    }
}
