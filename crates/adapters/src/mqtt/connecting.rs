//! From TCP to an open session: CONNECT and CONNACK, SUBSCRIBE and SUBACK.

use std::borrow::Cow;
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SessionOptions, Subscription};
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink};
use pubmark_wire::mqtt::{
    Connack, Connect, DecodeError, Filters, Frame, Properties, Property, Suback, Subscribe, SubscribeRequest, Version,
    Will, connack_return_name, decode_connack, encode_connect, encode_subscribe, reason, reason_name,
};

use super::authenticating;
use super::session::Mqtt;
use super::version::ProtocolVersion;
use crate::connection::{Dialect, Link, Shared};
use crate::payload;

/// How long a server stores a persistent session for us (MQTT 5.0): longer than any run, but not for ever.
const SESSION_EXPIRY: Duration = Duration::from_secs(24 * 3_600);
/// Filters in one SUBSCRIBE.
const FILTERS_AT_A_TIME: usize = 64;
/// SUBSCRIBE packets take the identifiers from here down, messages those from 1 up.
const LAST_PACKET_ID: u16 = u16::MAX;

impl<V: ProtocolVersion> Mqtt<V> {
    /// Appends CONNECT.
    pub(super) fn send_connect(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.leaving = false;
        let config = &link.config;
        let credentials = config.log_in(&shared.config);
        let signed = credentials.as_ref().map(|credentials| credentials.password.as_bytes());
        let mut properties = vec![];
        if config.persistent {
            properties.push(Property::SessionExpiryInterval(SESSION_EXPIRY.as_secs() as u32));
        }
        // A token that is renewed is the data of its method, and no password.
        let method = authenticating::of(config);
        if let (Some(how), Some(signed)) = (method, signed) {
            properties.extend([Property::AuthenticationMethod(&how.method), Property::AuthenticationData(signed)]);
        }
        let has_user = |user: &&str| method.is_none() || !user.is_empty();
        let mut will_payload = Vec::new();
        let delay = config.options.will.as_ref().map_or(0, |will| will.delay_s);
        let delay = [Property::WillDelayInterval(delay)];
        // A connection that only discards a session ends without a goodbye.
        let has_will = !self.only_discards();
        let will = config.options.will.as_ref().filter(|_| has_will).map(|will| {
            payload::append_will(&shared.config, will, &mut will_payload);
            Will {
                qos: will.qos,
                retain: will.retain,
                topic: &will.topic,
                payload: &will_payload,
                properties: if will.delay_s > 0 { Properties::new(&delay) } else { Properties::NONE },
            }
        });
        self.has_will = will.is_some();
        let connect = Connect {
            version: V::VERSION,
            clean_start: self.starts_clean(link),
            keep_alive_s: shared.config.connections.keep_alive_s,
            client_id: &config.client_id,
            will,
            user: credentials.as_ref().map(|credentials| credentials.user).filter(has_user),
            password: signed.filter(|_| method.is_none()),
            properties: Properties::new(&properties),
        };
        let mut encoded = Ok(());
        link.outbox.append(&mut shared.pool, |out| encoded = encode_connect(&connect, out));
        encoded.map_err(|error| Cause::Dropped(format!("ended by us: CONNECT cannot be sent: {error}")))
    }

    /// The server's CONNACK.
    pub(super) fn on_connack(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        frame: &Frame<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let connack = match (V::VERSION, decode_connack(V::VERSION, frame)) {
            (_, Ok(connack)) => connack,
            // A server without 5.0 responds with a return code of 3.1.1.
            (Version::V5, Err(DecodeError::Value { field: "code", value, .. })) if frame.body.len() == 2 => {
                let code = value as u8;
                return Err(Cause::Refused(Reason::code(code, connack_return_name(code))));
            }
            (_, Err(error)) => return Err(Cause::Protocol(error.to_string())),
        };
        if connack.code != 0 {
            return Err(refusal(V::VERSION, connack.code));
        }
        if !self.may_use(link, shared, connack.session_present)? {
            return Ok(());
        }
        self.take_limits(link, &connack);
        link.opened(shared, connack.properties.server_keep_alive_s().unwrap_or(shared.config.connections.keep_alive_s));
        self.plan_renewal(link, shared);
        let properties = &connack.properties;
        let wanted = link.config.publications.iter().map(|publication| publication.qos).max();
        sink.event(
            link.id,
            Event::Connected(Connected {
                session_present: connack.session_present,
                receive_maximum: properties.receive_maximum(),
                maximum_packet_bytes: properties.maximum_packet_bytes(),
                topic_alias_refused: link.config.options.topic_alias
                    && properties.topic_alias_maximum().unwrap_or(0) == 0,
                maximum_qos: wanted.is_some_and(|qos| qos > self.maximum_qos).then_some(self.maximum_qos),
            }),
        );
        if connack.session_present {
            self.in_flight.hold_all();
        } else {
            self.forget(link.id, sink);
        }
        if self.answered < link.config.subscriptions.len() {
            let shares = properties.find(|property| match property {
                Property::SharedSubscriptionAvailable(shares) => Some(shares),
                _ => None,
            });
            match (&link.config.options.shared, shares) {
                (Some(_), Some(false)) => self.give_up_sharing(link, sink),
                _ => self.subscribe(link, shared)?,
            }
        }
        self.send_held(link, shared, sink);
        Ok(())
    }

    /// The limits of this connection.
    fn take_limits(&mut self, link: &Link, connack: &Connack<'_>) {
        let properties = &connack.properties;
        let subscribes = link.config.subscriptions.len().div_ceil(FILTERS_AT_A_TIME);
        let identifiers = (usize::from(LAST_PACKET_ID).saturating_sub(subscribes) as u16).max(1);
        let window = properties.receive_maximum().unwrap_or(u16::MAX).min(link.config.in_flight_window);
        self.in_flight.set_limit(window.clamp(1, identifiers));
        self.in_flight.set_highest(identifiers);
        let aliases = if link.config.options.topic_alias { properties.topic_alias_maximum() } else { None };
        self.aliases.begin(aliases.unwrap_or(0));
        self.maximum_packet_bytes = properties.maximum_packet_bytes().unwrap_or(u32::MAX);
        self.maximum_qos = match properties.maximum_qos() {
            Some(false) => Qos::BestEffort,
            Some(true) => Qos::AtLeastOnce,
            None => Qos::ExactlyOnce,
        };
    }

    /// The server announced that it supports no shared subscriptions: a request would violate the protocol (MQTT 5.0
    /// §3.2.2.3.13), so each is reported as refused.
    fn give_up_sharing(&mut self, link: &Link, sink: &mut impl Sink) {
        let code = reason::SHARED_SUBSCRIPTIONS_NOT_SUPPORTED;
        self.answered = link.config.subscriptions.len();
        (0..self.answered).for_each(|index| {
            sink.event(link.id, Event::Subscribed { index, granted: Err(Reason::code(code, reason_name(code))) })
        });
    }

    /// Requests all subscriptions of the session.
    fn subscribe(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.answered = 0;
        for (index, part) in link.config.subscriptions.chunks(FILTERS_AT_A_TIME).enumerate() {
            let filters: Vec<Cow<'_, str>> = part.iter().map(|entry| written(&link.config.options, entry)).collect();
            let requests: Vec<SubscribeRequest<'_>> =
                filters.iter().zip(part).map(|(filter, entry)| SubscribeRequest::new(filter, entry.qos)).collect();
            let packet_id = LAST_PACKET_ID.saturating_sub(index as u16);
            let subscribe = Subscribe { packet_id, properties: Properties::NONE, filters: Filters::new(&requests) };
            let mut encoded = Ok(());
            link.outbox.append(&mut shared.pool, |out| encoded = encode_subscribe(V::VERSION, &subscribe, out));
            encoded.map_err(|error| Cause::Dropped(format!("ended by us: a filter cannot be sent: {error}")))?;
        }
        Ok(())
    }

    /// The server's SUBACK.
    pub(super) fn on_suback(&mut self, link: &Link, suback: &Suback<'_>, sink: &mut impl Sink) -> Result<(), Cause> {
        let first = usize::from(LAST_PACKET_ID - suback.packet_id) * FILTERS_AT_A_TIME;
        let end = link.config.subscriptions.len().min(first + FILTERS_AT_A_TIME);
        let asked = end.saturating_sub(first);
        if asked == 0 || suback.codes.len() != asked {
            let (id, codes) = (suback.packet_id, suback.codes.len());
            return Err(Cause::Protocol(format!("SUBACK {id} has {codes} codes for {asked} filters")));
        }
        for (index, &code) in (first..end).zip(suback.codes) {
            let refused = || Reason::code(code, suback_name(V::VERSION, code));
            sink.event(link.id, Event::Subscribed { index, granted: Qos::from_level(code).ok_or_else(refused) });
        }
        self.answered += asked;
        Ok(())
    }
}

/// A filter as it is sent: that of a shared group names it (MQTT 5.0 §4.8.2; several servers accept it in 3.1.1 too).
fn written<'a>(options: &SessionOptions, subscription: &'a Subscription) -> Cow<'a, str> {
    match &options.shared {
        None => Cow::Borrowed(&*subscription.filter),
        Some(name) => Cow::Owned(format!("$share/{name}/{}", subscription.filter)),
    }
}

/// The name of a refusal; MQTT 3.1.1 has but one, 0x80 (§3.9.3).
fn suback_name(version: Version, code: u8) -> &'static str {
    if version == Version::V311 { "failure" } else { reason_name(code) }
}

fn refusal(version: Version, code: u8) -> Cause {
    let (reason, login) = match version {
        Version::V311 => (connack_return_name(code), matches!(code, 4 | 5)),
        Version::V5 => {
            let login = [reason::BAD_USER_NAME_OR_PASSWORD, reason::NOT_AUTHORIZED, reason::BAD_AUTHENTICATION_METHOD];
            (reason_name(code), login.contains(&code))
        }
    };
    let reason = Reason::code(code, reason);
    if login { Cause::NotAuthorized(reason) } else { Cause::Refused(reason) }
}
