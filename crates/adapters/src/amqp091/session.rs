//! The dialect of AMQP 0-9-1: a session's state and the dispatch of frames.
//!
//! A session has up to two channels: one for its consumer and for messages without confirms, and one for those with confirms,
//! because a channel has confirms for all or none of its messages.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Goodbye, Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::amqp091::{
    FRAME_EXTRA_BYTES, Frame, HEARTBEAT, Item, Kind, LONGEST_BYTES, Method, PROTOCOL_HEADER, Publish, encode_cancel,
    encode_close, encode_delete, filter_matches, next, routing_key,
};
use pubmark_wire::front::Front;

use super::cause::{broken, of, other_version, unexpected};
use super::opening::Opening;
use super::receiving::Incoming;
use super::sending::{Confirms, PausedChannels};
use super::subscribing::{Consumer, MEMBER, PREFETCH, kept_queue};
use crate::connection::{Dialect, Link, Phase, Progress, Refusal, Shared, Times};
use crate::virtual_host::{VIRTUAL_HOST, named_in};

/// The topic exchange that every server has (§3.1.3.3); RabbitMQ's MQTT plug-in publishes to it, too.
pub(super) const EXCHANGE: &str = "amq.topic";
/// The connection's own channel.
const CONNECTION: u16 = 0;
/// Channel of the consumer, and of messages that are not confirmed.
pub(super) const PLAIN: u16 = 1;
/// Channel of messages that are confirmed.
pub(super) const CONFIRMED: u16 = 2;

/// A session's memory.
pub struct Amqp091 {
    /// Why a topic, a filter or the client's name cannot be expressed.
    unusable: Option<String>,
    /// Of each publication: its messages without their bodies.
    pub(super) publishes: Vec<Publish>,
    /// Of each subscription.
    pub(super) binding_keys: Vec<Box<str>>,
    pub(super) opening: Opening,
    pub(super) consumer: Consumer,
    pub(super) incoming: Incoming,
    pub(super) confirms: Confirms,
    pub(super) paused: PausedChannels,
    /// Largest frame that was agreed on, bytes.
    pub(super) most_frame_bytes: usize,
    /// The virtual host that the endpoint names.
    pub(super) virtual_host: Option<String>,
    /// Memory for the correlation id of the message that is being sent.
    pub(super) correlation_id: String,
}

fn check_topic(topic: &str) -> Result<(), String> {
    routing_key(topic).map(drop).map_err(|error| error.to_string())
}

/// The level that messages go out at: there is none beyond confirms.
pub(super) fn level(asked: Qos) -> Qos {
    asked.min(Qos::AtLeastOnce)
}

impl Dialect for Amqp091 {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "amqp091",
        title: "AMQP 0-9-1",
        schemes: &["amqp", "amqps"],
        tls_schemes: &["amqps"],
        default_port: 5672,
        default_tls_port: 5671,
        levels: &[
            Level { qos: Qos::BestEffort, means: "basic.publish without confirm; consumer with no-ack" },
            Level { qos: Qos::AtLeastOnce, means: "publisher confirm, delivery mode 2; consumer with basic.ack" },
        ],
        wildcards: true,
        retain: false,
        persistent_sessions: true,
        ends_sessions: true,
        features: Features {
            log_in: true,
            own_certificates: true,
            requests: Some("reply-to: a queue, correlation-id"),
            properties: Some("headers"),
            shared_subscriptions: true,
            delivery_window: Some(PREFETCH as u32),
            delivery_window_from: Qos::AtLeastOnce,
            settings: Some(VIRTUAL_HOST),
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: u32::MAX,
        check_topic: Some(check_topic),
        filter_matches: Some(filter_matches),
    };
    const ANSWERS_PINGS: bool = false;
    const WELCOME: &'static str = "the session was open";

    type Packet<'a> = Item<'a>;

    fn new(config: &SessionConfig) -> Amqp091 {
        let mut unusable = None;
        let mut key_of = |topic: &str| {
            routing_key(topic).unwrap_or_else(|error| {
                unusable = Some(error.to_string());
                String::new()
            })
        };
        let binding_keys = config.subscriptions.iter().map(|entry| key_of(&entry.filter).into()).collect();
        let publishes = config.publications.iter().map(|entry| {
            let is_confirmed = entry.qos != Qos::BestEffort;
            let channel = if is_confirmed { CONFIRMED } else { PLAIN };
            Publish::new(channel, EXCHANGE, &key_of(&entry.topic), is_confirmed)
        });
        let publishes: Vec<Publish> = publishes.collect();
        if config.persistent && config.client_id.len() > LONGEST_BYTES {
            unusable = Some(format!("`{}` is too long for the name of a queue", config.client_id));
        }
        Amqp091 {
            unusable,
            opening: Opening::new(config, &publishes),
            publishes,
            binding_keys,
            consumer: Consumer::new(config),
            incoming: Incoming::default(),
            confirms: Confirms::new(config.in_flight_window),
            paused: PausedChannels::default(),
            most_frame_bytes: 0,
            virtual_host: None,
            correlation_id: String::new(),
        }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        if let Some(why) = &self.unusable {
            return Err(Cause::Dropped(format!("ended by us: {why}")));
        }
        let settings = shared.config.endpoints[usize::from(link.config.endpoint)].settings.as_deref();
        self.virtual_host = named_in(settings).map_err(|error| Cause::Dropped(format!("ended by us: {error}")))?;
        self.most_frame_bytes = self.opening.restart(shared);
        self.consumer.restart();
        self.incoming = Incoming::default();
        self.confirms.restart();
        self.paused = PausedChannels::default();
        link.outbox.append(&mut shared.pool, |out| out.extend_from_slice(PROTOCOL_HEADER));
        Ok(())
    }

    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Item<'_>>, Cause> {
        next(bytes, most_bytes).map_err(broken)
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        item: &Item<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let frame = match item {
            Item::Frame(frame) => frame,
            Item::Version(version) => return Err(other_version(link.phase, *version)),
        };
        let (bytes, most) = (frame.payload.len() + FRAME_EXTRA_BYTES, self.most_frame_bytes);
        if bytes > most {
            return Err(Cause::Protocol(format!("a frame of {bytes} B, {most} B were agreed on")));
        }
        match (frame.kind, frame.channel) {
            (Kind::Body, PLAIN) => self.on_body(link, shared, frame.payload, times, sink),
            (Kind::Header, PLAIN) => self.on_header(link, shared, frame.payload, times, sink),
            (Kind::Method, _) => self.on_method(link, shared, frame, sink),
            (Kind::Heartbeat, CONNECTION) => Ok(()),
            (kind, channel) => Err(Cause::Protocol(format!("a frame of kind {kind:?} on channel {channel}"))),
        }?;
        // What was read behind a message that its subscriber processes is handled later, one message after the other.
        if times.ends_the_read() || sink.is_at_work(link.id) {
            self.acknowledge(link, shared);
        }
        Ok(())
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        self.publish(link, shared, message)
    }

    fn reply(&mut self, link: &mut Link, shared: &mut Shared, reply: &OutgoingReply<'_>) -> Result<(), Refusal> {
        self.publish_reply(link, shared, reply)
    }

    fn is_within_message(&self) -> bool {
        self.incoming.is_unfinished()
    }

    fn has_room(&self) -> bool {
        !self.paused.any() && self.confirms.in_flight.has_room()
    }

    fn written(&mut self, tag: u16) {
        self.confirms.in_flight.written(tag);
    }

    fn abandoned(&mut self, tag: u16) {
        self.confirms.in_flight.remove(tag);
    }

    fn ping(out: &mut Vec<u8>) {
        out.extend_from_slice(HEARTBEAT);
    }

    fn send_goodbye(&mut self, link: &mut Link, shared: &mut Shared, goodbye: Goodbye) {
        self.acknowledge(link, shared);
        let ends = goodbye == Goodbye::Final && link.config.persistent && !self.binding_keys.is_empty();
        let is_shared = link.config.options.shared.is_some();
        let queue = kept_queue(link, shared);
        link.outbox.append(&mut shared.pool, |out| {
            if ends && is_shared {
                // The last of a group to leave ends its queue.
                encode_cancel(PLAIN, MEMBER, out);
            }
            if ends {
                encode_delete(PLAIN, &queue, is_shared, out);
            }
            encode_close(out);
        });
    }

    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        for entry in self.confirms.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.event(session, Event::Unacknowledged(entry.token()));
            }
        }
        self.consumer.forget();
    }
}

impl Amqp091 {
    fn on_method(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        frame: &Frame<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let method = Method::read(frame.payload).map_err(broken)?;
        let channel = frame.channel;
        if channel == CONNECTION {
            return self.on_connection_method(link, shared, &method, sink);
        }
        if !self.opening.has_channel(channel) {
            return Err(unexpected(link.phase, channel, &method));
        }
        if channel == PLAIN && self.incoming.is_unfinished() {
            return Err(Cause::Protocol(format!("{} in the middle of a message", method.name())));
        }
        match (channel, method) {
            (PLAIN, Method::BasicDeliver(deliver)) if link.phase == Phase::Open => self.on_deliver(&deliver),
            (CONFIRMED, Method::BasicAck(answer)) => self.on_response(link, shared, answer, Ok(()), sink),
            (CONFIRMED, Method::BasicNack(answer)) => self.on_nack(link, shared, answer, sink),
            (_, Method::ChannelOpenOk) => self.on_channel_open_ok(link, shared, channel, sink),
            (CONFIRMED, Method::ConfirmSelectOk) => self.on_select_ok(link, shared, sink),
            (_, Method::ChannelFlow(active)) => {
                self.on_flow(link, shared, channel, active, sink);
                Ok(())
            }
            (PLAIN, Method::ChannelClose(closing)) => self.on_channel_close(link, shared, &closing, sink),
            (_, Method::ChannelClose(closing)) => Err(of(link.phase, &closing)),
            (PLAIN, method) => self.on_consumer_method(link, shared, &method, sink),
            (_, method) => Err(unexpected(link.phase, channel, &method)),
        }
    }

    fn on_connection_method(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        method: &Method<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match method {
            Method::ConnectionClose(closing) => Err(of(link.phase, closing)),
            Method::ConnectionBlocked(_) if link.phase == Phase::Open => {
                self.paused.connection = true;
                Ok(())
            }
            Method::ConnectionUnblocked if link.phase == Phase::Open => {
                self.paused.connection = false;
                self.send_held(link, shared, sink);
                Ok(())
            }
            method => self.on_opening_method(link, shared, method),
        }
    }
}
