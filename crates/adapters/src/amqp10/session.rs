//! What AMQP 1.0 adds to a connection: a session's memory, and which frame does what.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Goodbye, Outgoing as Message, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Event, Reason, Sink};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::amqp10::{
    Condition, Frame, FrameKind, Naming, Packet, Performative, SMALLEST_FRAME_LIMIT, encode_close, encode_empty, next,
    words,
};
use pubmark_wire::front::Front;

use super::causes::{broken, ended, refused};
use super::incoming::{CREDIT, Incoming};
use super::opening::Stage;
use super::outgoing::Outgoing;
use super::replying::Replying;
use crate::connection::{Dialect, Link, Phase, Progress, Refusal, Shared, Times};
use crate::virtual_host::VIRTUAL_HOST;

/// Largest frame that we take, bytes: what RabbitMQ and Artemis take themselves. Larger messages come in parts.
pub const FRAME_BYTES: usize = 128 << 10;
/// Bytes of a message besides its payload at most.
const MESSAGE_HEAD_BYTES: u32 = 8;

/// One end of a link, by its index among ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Messages go out.
    Sender(u16),
    /// Messages come in.
    Receiver(u32),
}

/// A session's memory.
pub struct Amqp10 {
    pub(super) stage: Stage,
    /// How the server writes addresses, or why we do not know.
    pub(super) naming: Result<Naming, Box<str>>,
    /// Largest frame that the server accepts, bytes.
    pub(super) frame_bytes: usize,
    /// The server gives up after this long a silence, ms; 0 for never.
    pub(super) server_idle_ms: u32,
    /// The channel on which the server sends.
    pub(super) channel: u16,
    /// The highest number that the server may give to a link.
    pub(super) handle_max: u32,
    /// The links by the numbers that the server gave them.
    pub(super) links: Vec<Option<End>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) replying: Replying,
    /// The virtual host that the endpoint names.
    pub(super) virtual_host: Option<String>,
    /// Address for replies to the session's requests.
    pub(super) reply_to: Box<str>,
    /// Buffers for the correlation of the request that is being sent, as text and encoded, and for the properties of it or of a reply.
    pub(super) correlation: String,
    pub(super) identifier: Vec<u8>,
    pub(super) properties: Vec<u8>,
    /// Memory for a payload of which fields go beside it.
    pub(super) payload: Vec<u8>,
}

/// The largest frame that is accepted if packets of `most_bytes` are.
pub fn frame_limit(most_bytes: usize) -> usize {
    most_bytes.clamp(SMALLEST_FRAME_LIMIT, FRAME_BYTES)
}

impl Dialect for Amqp10 {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "amqp10",
        title: "AMQP 1.0",
        schemes: &["amqp", "amqps"],
        tls_schemes: &["amqps"],
        default_port: 5672,
        default_tls_port: 5671,
        levels: &[
            Level { qos: Qos::BestEffort, means: "settled deliveries" },
            Level { qos: Qos::AtLeastOnce, means: "unsettled deliveries, accepted by the receiver" },
        ],
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features {
            log_in: true,
            own_certificates: true,
            requests: Some("reply-to: a node of the requester's, correlation-id"),
            properties: Some("application properties"),
            content_filters: Some("selectors of JMS"),
            shared_subscriptions: true,
            delivery_window: Some(CREDIT),
            settings: Some(VIRTUAL_HOST),
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: u32::MAX - MESSAGE_HEAD_BYTES,
        check_topic: Some(|topic| words(topic).map(|_| ()).map_err(|error| error.to_string())),
        // Topics for which wildcards would mean something else are refused.
        filter_matches: None,
    };
    const ANSWERS_PINGS: bool = false;
    const WELCOME: &'static str = "its welcome";

    type Packet<'a> = Packet<'a>;

    fn new(config: &SessionConfig) -> Amqp10 {
        Amqp10 {
            stage: Stage::SaslHeader,
            naming: Err("it has not said what it is".into()),
            frame_bytes: SMALLEST_FRAME_LIMIT,
            server_idle_ms: 0,
            channel: 0,
            handle_max: 0,
            links: Vec::new(),
            outgoing: Outgoing::new(&config.publications),
            incoming: Incoming::new(config.subscriptions.len()),
            replying: Replying::default(),
            virtual_host: None,
            reply_to: "".into(),
            correlation: String::new(),
            identifier: Vec::new(),
            properties: Vec::new(),
            payload: Vec::new(),
        }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.start(link, shared)
    }

    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Packet<'_>>, Cause> {
        next(bytes, frame_limit(most_bytes)).map_err(broken)
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        packet: &Packet<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match packet {
            Packet::Header(header) => self.on_header(*header)?,
            Packet::Frame(frame) if frame.kind == FrameKind::Sasl => self.on_sasl(link, shared, frame.body)?,
            Packet::Frame(_) if self.stage < Stage::Open => {
                return Err(Cause::Protocol("a frame before the protocol was agreed".to_owned()));
            }
            // A sign of life.
            Packet::Frame(frame) if frame.body.is_empty() => {}
            Packet::Frame(frame) => self.on_frame(link, shared, frame, times, sink)?,
        }
        // What was read behind a message that its subscriber processes is handled later, one message after the other.
        if times.ends_the_read() || sink.is_at_work(link.id) {
            self.accept_all(link, shared);
        }
        Ok(())
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Message) -> Result<(), Refusal> {
        self.publish(link, shared, message)
    }

    fn reply(&mut self, link: &mut Link, shared: &mut Shared, reply: &OutgoingReply<'_>) -> Result<(), Refusal> {
        self.publish_reply(link, shared, reply)
    }

    fn has_room(&self) -> bool {
        self.outgoing.has_room()
    }

    fn written(&mut self, tag: u16) {
        self.outgoing.in_flight.written(tag);
    }

    fn abandoned(&mut self, tag: u16) {
        self.outgoing.in_flight.remove(tag);
    }

    /// An empty frame. The server sends no response; it sends frames of its own as often as our idle-time-out requires.
    fn ping(out: &mut Vec<u8>) {
        encode_empty(out);
    }

    fn send_goodbye(&mut self, link: &mut Link, shared: &mut Shared, _: Goodbye) {
        self.accept_all(link, shared);
        link.outbox.append(&mut shared.pool, |out| encode_close(None, out));
    }

    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        for entry in self.outgoing.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.event(session, Event::Unacknowledged(entry.token()));
            }
        }
        self.outgoing.unsettled.clear();
    }
}

impl Amqp10 {
    fn on_frame(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        frame: &Frame<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let performative = Performative::decode(frame.body).map_err(broken)?;
        let of_session =
            !matches!(performative, Performative::Open(_) | Performative::Begin(_) | Performative::Close(_));
        if of_session && (self.stage < Stage::Links || frame.channel != self.channel) {
            let (name, channel) = (performative.name(), frame.channel);
            return Err(Cause::Protocol(format!("{name} on channel {channel}, where no session is")));
        }
        match performative {
            Performative::Transfer(transfer) => self.on_transfer(link, shared, &transfer, times, sink),
            Performative::Disposition(disposition) => self.on_disposition(link, shared, &disposition, sink),
            Performative::Flow(flow) => self.on_flow(link, shared, &flow, sink),
            Performative::Open(open) => self.on_open(link, shared, &open),
            Performative::Begin(begin) => self.on_begin(link, shared, frame.channel, &begin, sink),
            Performative::Attach(attach) => self.on_attach(link, shared, &attach, sink),
            Performative::Detach(detach) => self.on_detach(link, shared, &detach, sink),
            Performative::End(error) if link.phase == Phase::Open => Err(ended(error, "it ended the session")),
            Performative::End(error) => Err(refused(error, "it ended the session")),
            Performative::Close(error) if link.phase == Phase::Open => Err(ended(error, "it closed the connection")),
            Performative::Close(error) => Err(self.refused_here(error, "it closed the connection")),
        }
    }

    /// The server refuses the connection, which it may do for the virtual host without a word of that.
    fn refused_here(&self, error: Option<Condition<'_>>, otherwise: &str) -> Cause {
        let named = |reason: Reason| match &self.virtual_host {
            Some(name) => Reason::words(format!("{reason} (virtual host `{name}`)")),
            None => reason,
        };
        match refused(error, otherwise) {
            Cause::NotAuthorized(reason) => Cause::NotAuthorized(named(reason)),
            Cause::Refused(reason) => Cause::Refused(named(reason)),
            other => other,
        }
    }

    /// The link that the server calls so.
    pub(super) fn link_of(&self, handle: u32) -> Option<End> {
        self.links.get(handle as usize).copied().flatten()
    }
}
