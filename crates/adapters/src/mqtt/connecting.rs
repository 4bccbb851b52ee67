//! From nothing to an open session: TCP, TLS, CONNECT and its answer, SUBSCRIBE and its answer.

use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Connected, Sink};
use pubmark_protocol::stream::Stream;
use pubmark_wire::mqtt::{
    Connack, Connect, DecodeError, Filters, Frame, PacketType, Properties, Property, Suback, Subscribe,
    SubscribeRequest, Version, connack_return_name, decode_connack, encode_connect, encode_subscribe, reason,
    reason_name,
};

use super::session::{Phase, Session, Shared};

/// How long a server keeps a persistent session for us (MQTT 5.0): longer than any run, but not for ever.
const SESSION_EXPIRY: Duration = Duration::from_secs(24 * 3_600);
/// Filters in one SUBSCRIBE.
const FILTERS_AT_A_TIME: usize = 64;
/// SUBSCRIBE packets take the identifiers from here down, messages those from 1 up.
const LAST_PACKET_ID: u16 = u16::MAX;

impl Session {
    /// Starts connecting.
    pub fn connect(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if self.phase != Phase::Closed {
            return;
        }
        self.empty_at_ns = clock::monotonic_ns();
        self.received_at_ns = self.empty_at_ns;
        match self.open_stream(shared) {
            Ok(stream) => {
                self.stream = Some(stream);
                self.phase = Phase::Connecting;
            }
            Err(cause) => self.end(shared, cause, sink),
        }
    }

    fn open_stream(&self, shared: &Shared) -> Result<Stream, Cause> {
        let unreachable = |error: std::io::Error| Cause::Unreachable(error.to_string());
        let place = usize::from(self.config.endpoint);
        let socket = shared.sockets.connect(shared.config.endpoints[place].address).map_err(unreachable)?;
        let tls = shared.tls[place].as_ref().map(|setup| setup.connection()).transpose();
        let stream = Stream::new(socket, tls.map_err(|error| Cause::Tls(error.to_string()))?);
        shared.reactor.add(std::os::fd::AsFd::as_fd(&stream), self.key()).map_err(unreachable)?;
        Ok(stream)
    }

    /// TCP is connected, or failed to be: CONNECT comes next.
    pub fn begin(&mut self, shared: &mut Shared) -> Result<(), Cause> {
        let Some(stream) = &self.stream else { return Ok(()) };
        stream.connected().map_err(|error| Cause::Unreachable(error.to_string()))?;
        self.phase = Phase::Opening;
        let endpoint = &shared.config.endpoints[usize::from(self.config.endpoint)];
        let credentials = self.config.credentials.as_ref().or(endpoint.credentials.as_ref());
        let expiry = [Property::SessionExpiryInterval(SESSION_EXPIRY.as_secs() as u32)];
        let connect = Connect {
            version: shared.version,
            clean_start: !self.config.persistent,
            keep_alive_s: shared.config.keep_alive_s,
            client_id: &self.config.client_id,
            will: None,
            user: credentials.map(|credentials| credentials.user.as_str()),
            password: credentials.map(|credentials| credentials.password.as_bytes()),
            properties: if self.config.persistent { Properties::new(&expiry) } else { Properties::NONE },
        };
        let mut encoded = Ok(());
        self.outbox.append(&mut shared.pool, |out| encoded = encode_connect(&connect, out));
        encoded.map_err(|error| Cause::Dropped(format!("ended by us: CONNECT cannot be sent: {error}")))
    }

    /// The server's answer to CONNECT.
    pub fn on_connack(&mut self, shared: &mut Shared, frame: &Frame<'_>, sink: &mut impl Sink) -> Result<(), Cause> {
        let connack = match (shared.version, decode_connack(shared.version, frame)) {
            (_, Ok(connack)) => connack,
            // A server that knows no 5.0 answers with a return code of 3.1.1.
            (Version::V5, Err(DecodeError::Value { field: "code", value, .. })) if frame.body.len() == 2 => {
                let code = value as u8;
                return Err(Cause::Refused { code, reason: connack_return_name(code) });
            }
            (_, Err(error)) => return Err(Cause::Protocol(error.to_string())),
        };
        if connack.code != 0 {
            return Err(refusal(shared.version, connack.code));
        }
        if connack.session_present && !self.config.persistent {
            return Err(Cause::Protocol("CONNACK has a session after a clean start".to_owned()));
        }
        self.take_limits(shared, &connack);
        self.phase = Phase::Open;
        let properties = &connack.properties;
        let wanted = self.config.publications.iter().map(|publication| publication.qos).max();
        sink.connected(
            self.id,
            Connected {
                session_present: connack.session_present,
                receive_maximum: properties.receive_maximum(),
                maximum_packet_bytes: properties.maximum_packet_bytes(),
                maximum_qos: wanted.is_some_and(|qos| qos > self.maximum_qos).then_some(self.maximum_qos),
            },
        );
        if connack.session_present {
            self.in_flight.hold_all();
        } else {
            self.forget(sink);
        }
        if self.answered < self.config.subscriptions.len() {
            self.subscribe(shared)?;
        }
        self.send_held(shared, sink);
        Ok(())
    }

    /// The limits and the keep-alive of this connection.
    fn take_limits(&mut self, shared: &mut Shared, connack: &Connack<'_>) {
        let properties = &connack.properties;
        let subscribe_packets = self.config.subscriptions.len().div_ceil(FILTERS_AT_A_TIME);
        let identifiers = usize::from(LAST_PACKET_ID).saturating_sub(subscribe_packets) as u16;
        let window = properties.receive_maximum().unwrap_or(u16::MAX).min(self.config.in_flight_window);
        self.in_flight.set_limit(window.clamp(1, identifiers.max(1)));
        self.maximum_packet_bytes = properties.maximum_packet_bytes().unwrap_or(u32::MAX);
        self.maximum_qos = match properties.maximum_qos() {
            Some(false) => Qos::BestEffort,
            Some(true) => Qos::AtLeastOnce,
            None => Qos::ExactlyOnce,
        };
        let keep_alive_s = properties.server_keep_alive_s().unwrap_or(shared.config.keep_alive_s);
        self.keep_alive_ns = u64::from(keep_alive_s) * 1_000_000_000;
        self.pinged_at_ns = None;
        if self.keep_alive_ns > 0 {
            self.check_at_ns = shared.wheel.set(self.id.0, clock::monotonic_ns() + self.keep_alive_ns);
        }
    }

    /// Asks for all subscriptions of the session.
    fn subscribe(&mut self, shared: &mut Shared) -> Result<(), Cause> {
        self.answered = 0;
        let version = shared.version;
        for (index, part) in self.config.subscriptions.chunks(FILTERS_AT_A_TIME).enumerate() {
            let requests: Vec<SubscribeRequest<'_>> =
                part.iter().map(|entry| SubscribeRequest::new(&entry.filter, entry.qos)).collect();
            let packet_id = LAST_PACKET_ID.saturating_sub(index as u16);
            let subscribe = Subscribe { packet_id, properties: Properties::NONE, filters: Filters::new(&requests) };
            let mut encoded = Ok(());
            self.outbox.append(&mut shared.pool, |out| encoded = encode_subscribe(version, &subscribe, out));
            encoded.map_err(|error| Cause::Dropped(format!("ended by us: a filter cannot be sent: {error}")))?;
        }
        Ok(())
    }

    /// The server's answer to a SUBSCRIBE.
    pub fn on_suback(&mut self, suback: &Suback<'_>, sink: &mut impl Sink) -> Result<(), Cause> {
        let first = usize::from(LAST_PACKET_ID - suback.packet_id) * FILTERS_AT_A_TIME;
        let asked = self.config.subscriptions.len().saturating_sub(first).min(FILTERS_AT_A_TIME);
        if asked == 0 || suback.codes.len() != asked {
            let (id, codes) = (suback.packet_id, suback.codes.len());
            return Err(Cause::Protocol(format!("SUBACK {id} has {codes} codes for {asked} filters")));
        }
        for (offset, &code) in suback.codes.iter().enumerate() {
            sink.subscribed(self.id, first + offset, Qos::from_level(code).ok_or(code));
        }
        self.answered += asked;
        Ok(())
    }
}

fn refusal(version: Version, code: u8) -> Cause {
    let (reason, login) = match version {
        Version::V311 => (connack_return_name(code), matches!(code, 4 | 5)),
        Version::V5 => {
            let login = [reason::BAD_USER_NAME_OR_PASSWORD, reason::NOT_AUTHORIZED, reason::BAD_AUTHENTICATION_METHOD];
            (reason_name(code), login.contains(&code))
        }
    };
    if login { Cause::NotAuthorized { code, reason } } else { Cause::Refused { code, reason } }
}

/// Packets that only a server may not send us at this point.
pub fn unexpected(packet: PacketType, phase: Phase) -> Cause {
    let when = if phase == Phase::Open { "in an open session" } else { "before CONNACK" };
    Cause::Protocol(format!("{packet} {when}"))
}
