//! CONNECT: who may connect, and the state of an earlier session.

use std::rc::Rc;

use pubmark_wire::mqtt::{Connack, Connect, DecodeError, Frame, Properties, Property, Version, Will as WireWill};
use pubmark_wire::mqtt::{Publish, PublishHead, decode_connect, encode_connack, reason};

use super::broker::Broker;
use super::message::{Manner, Message};
use super::peer::Farewell;
use super::session::{Session, Will};
use crate::net::Key;

/// Return codes of MQTT 3.1.1 (§3.2.2.3).
pub(super) mod return_code {
    pub(in crate::builtin) const UNACCEPTABLE_PROTOCOL_VERSION: u8 = 1;
    pub(in crate::builtin) const IDENTIFIER_REJECTED: u8 = 2;
    pub(in crate::builtin) const SERVER_UNAVAILABLE: u8 = 3;
    pub(in crate::builtin) const BAD_USER_NAME_OR_PASSWORD: u8 = 4;
}

/// Codes of a refusal in both versions: 5.0, 3.1.1.
pub(super) struct Refusal(pub(super) u8, pub(super) u8);

impl Broker {
    pub(super) fn connect(&mut self, key: Key, packet: &Frame<'_>) -> Result<(), Farewell> {
        let connect = match decode_connect(packet) {
            Ok(connect) => connect,
            Err(error @ DecodeError::ProtocolLevel { level }) => {
                let code = if level > Version::V5.level() {
                    Refusal(error.reason_code(), return_code::UNACCEPTABLE_PROTOCOL_VERSION)
                } else {
                    Refusal(return_code::UNACCEPTABLE_PROTOCOL_VERSION, return_code::UNACCEPTABLE_PROTOCOL_VERSION)
                };
                return Err(self.refuse(key, Version::V311, &code));
            }
            // A client whose first packet is not CONNECT gets no response (MQTT 5.0 §3.1).
            Err(_) => {
                self.statistics.protocol_errors += 1;
                return Err(Farewell::Lost);
            }
        };
        match self.log_in(key, packet, &connect) {
            Ok(true) => self.open_session(key, &connect),
            Ok(false) => Ok(()),
            Err(refusal) => Err(self.refuse(key, connect.version, &refusal)),
        }
    }

    /// Opens the session of a client that has logged in, or refuses it.
    pub(super) fn open_session(&mut self, key: Key, connect: &Connect<'_>) -> Result<(), Farewell> {
        match self.refusal(connect) {
            Some(refusal) => Err(self.refuse(key, connect.version, &refusal)),
            None => self.accept_session(key, connect),
        }
    }

    fn refusal(&self, connect: &Connect<'_>) -> Option<Refusal> {
        if connect.client_id.is_empty() && !connect.clean_start && connect.version == Version::V311 {
            return Some(Refusal(reason::CLIENT_IDENTIFIER_NOT_VALID, return_code::IDENTIFIER_REJECTED));
        }
        let is_new = !self.by_client_id.contains_key(connect.client_id);
        if is_new && self.sessions.len() >= self.settings.maximum_sessions {
            return Some(Refusal(reason::SERVER_UNAVAILABLE, return_code::SERVER_UNAVAILABLE));
        }
        None
    }

    /// Sends a CONNACK with a refusal; the connection is closed after it.
    pub(super) fn refuse(&mut self, key: Key, version: Version, refusal: &Refusal) -> Farewell {
        self.statistics.refused += 1;
        let code = if version == Version::V5 { refusal.0 } else { refusal.1 };
        let connack = Connack { session_present: false, code, properties: Properties::NONE };
        if let Some(peer) = self.peers.get_mut(key) {
            encode_connack(version, &connack, peer.connection.outgoing()).expect("a CONNACK of four bytes can be said");
        }
        self.flush(key);
        Farewell::Lost
    }

    fn accept_session(&mut self, key: Key, connect: &Connect<'_>) -> Result<(), Farewell> {
        let version = connect.version;
        let assigned = connect.client_id.is_empty().then(|| self.unused_client_id());
        let client_id = assigned.as_deref().unwrap_or(connect.client_id);
        let (session_key, session_present) = self.session_for(client_id, connect.clean_start);

        let expiry_s = match version {
            Version::V311 if connect.clean_start => 0,
            Version::V311 => u32::MAX,
            Version::V5 => connect.properties.session_expiry_s().unwrap_or(0),
        };
        let window = connect.properties.receive_maximum().unwrap_or(u16::MAX).min(self.settings.in_flight_window);
        let will = connect.will.as_ref().map(|will| kept_will(will, self.now_ns));
        let session = self.sessions.get_mut(session_key).expect("the session was just found or made");
        session.peer = Some(key);
        session.expiry_s = expiry_s;
        session.will = will;
        session.will_due_ns = None;

        let mut list = self.announced(assigned.as_deref());
        list.extend(self.agreed_method(key));
        let connack = Connack { session_present, code: reason::SUCCESS, properties: Properties::new(&list) };
        let Some(peer) = self.peers.get_mut(key) else { return Err(Farewell::Lost) };
        peer.session = Some(session_key);
        peer.version = version;
        peer.last_progress_ns = self.now_ns;
        // One and a half times the keep-alive (MQTT 5.0 §3.1.2.10).
        peer.silence_limit_ns = u64::from(connect.keep_alive_s) * 1_500_000_000;
        peer.maximum_packet_bytes =
            connect.properties.maximum_packet_bytes().map_or(usize::MAX, |bytes| bytes as usize);
        let written = encode_connack(version, &connack, peer.connection.outgoing());
        drop(list);
        written.expect("our announcements and an identifier of ours can be said");
        self.statistics.sessions += 1;
        self.mark_dirty(key);
        self.resume(session_key, window.max(1));
        Ok(())
    }

    /// The session of this client: the existing one, or a new one; true if it existed.
    fn session_for(&mut self, client_id: &str, clean_start: bool) -> (Key, bool) {
        if let Some(&old) = self.by_client_id.get(client_id) {
            if let Some(peer) = self.sessions.get(old).and_then(|session| session.peer) {
                self.statistics.taken_over += 1;
                self.end(peer, Farewell::Ours(reason::SESSION_TAKEN_OVER));
            }
            // The end of the connection may have ended the session.
            if self.sessions.get(old).is_some() {
                if !clean_start {
                    return (old, true);
                }
                self.forget(old);
            }
        }
        let client_id: Rc<str> = client_id.into();
        let key = self.sessions.insert(Session::new(Rc::clone(&client_id)));
        self.by_client_id.insert(client_id, key);
        (key, false)
    }

    fn unused_client_id(&self) -> String {
        let mut number = self.statistics.sessions;
        loop {
            let client_id = format!("assigned-{number}");
            if !self.by_client_id.contains_key(client_id.as_str()) {
                return client_id;
            }
            number += 1;
        }
    }

    /// The limits that are announced to a 5.0 client; 3.1.1 has no properties for them.
    fn announced<'a>(&self, assigned: Option<&'a str>) -> Vec<Property<'a>> {
        let mut list = vec![
            Property::ReceiveMaximum(self.settings.receive_maximum.max(1)),
            Property::MaximumPacketSize(self.settings.maximum_packet_bytes.max(1)),
            Property::SharedSubscriptionAvailable(false),
        ];
        list.extend(assigned.map(Property::AssignedClientIdentifier));
        list
    }
}

fn kept_will(will: &WireWill<'_>, now_ns: u64) -> Will {
    let manner = Manner { qos: will.qos, retain: will.retain };
    // The will delay is for the broker; every other property of a will is also a property of a message.
    let list: Vec<Property<'_>> =
        will.properties.iter().filter(|property| !matches!(property, Property::WillDelayInterval(_))).collect();
    let head = PublishHead {
        dup: false,
        qos: will.qos,
        retain: will.retain,
        topic: will.topic,
        packet_id: None,
        properties: Properties::new(&list),
    };
    let message = Message::new(&Publish { head, payload: will.payload }, now_ns);
    // Its parts are within a packet's limits: they arrived in one packet.
    let message = message.expect("a will that was read can be written");
    Will { message, manner, delay_s: will.properties.will_delay_s().unwrap_or(0) }
}
