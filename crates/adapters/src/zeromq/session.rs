//! The dialect of ZeroMQ. A session is a socket: PUB if it publishes, SUB if it subscribes.
//!
//! There are no acknowledgements, neither of messages nor of subscriptions. A subscriber sends a PING after its subscriptions:
//! the PONG shows that the peer has read them. A publisher receives its peer's subscriptions; until the first one, or for a
//! limited time, it does not count as connected.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink};
use pubmark_wire::front::Front;
use pubmark_wire::zmtp::{
    Command, DecodeError, Item, SocketType, append_frame_front, encode_ping, encode_pong, encode_subscribe,
    encode_subscription_message, next,
};

use super::chosen::{Arrival, Chosen};
use super::opening::{self, Stage};
use super::peer_subscriptions::PeerSubscriptions;
use crate::connection::{Blocked, Dialect, Link, Phase, Refusal, Sending, Shared, Times};

/// Largest payload that we send, bytes; ZMTP has sizes of 63 bits, libzmq no limit of its own.
const LARGEST_PAYLOAD_BYTES: u32 = 1 << 30;
/// How long a publisher waits for its peer's first subscription, ns. A peer without subscribers sends none.
const SUBSCRIPTION_WAIT_NS: u64 = 100_000_000;
/// Context of the PING after subscriptions, to distinguish its PONG from those of keep-alives.
const BEHIND_SUBSCRIPTIONS: &[u8] = b"subscribed";

/// A session's memory.
pub struct ZeroMq {
    stage: Stage,
    /// Minor version of the peer.
    minor: u8,
    side: Side,
    /// Its connections are accepted, not made.
    accepts: bool,
}

/// What a session is for.
enum Side {
    Publisher(PeerSubscriptions),
    Subscriber {
        chosen: Chosen,
        /// Subscriptions were sent, and their PONG is awaited.
        awaited: bool,
    },
}

impl Side {
    fn socket(&self) -> SocketType {
        match self {
            Side::Publisher(_) => SocketType::Pub,
            Side::Subscriber { .. } => SocketType::Sub,
        }
    }
}

impl Dialect for ZeroMq {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "zeromq",
        title: "ZeroMQ publish/subscribe (ZMTP 3.1)",
        schemes: &["zmq"],
        tls_schemes: &[],
        default_port: 5556,
        default_tls_port: 5556,
        levels: &[Level { qos: Qos::BestEffort, means: "a message of a PUB socket to SUB sockets, in two frames" }],
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features { log_in: true, filters_at_clients: true, two_ports: true, ..Features::NONE },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: None,
        filter_matches: None,
    };
    const WELCOME: &'static str = "its READY, as libzmq does to a socket of a type that it does not take";

    type Packet<'a> = Item<'a>;

    fn new(config: &SessionConfig) -> ZeroMq {
        let side = if config.subscriptions.is_empty() {
            Side::Publisher(PeerSubscriptions::new(&config.publications))
        } else {
            Side::Subscriber { chosen: Chosen::new(&config.subscriptions), awaited: false }
        };
        ZeroMq { stage: Stage::Greeting, minor: 0, side, accepts: false }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        (self.stage, self.minor) = (Stage::Greeting, 0);
        match &mut self.side {
            Side::Publisher(peer_subscriptions) => peer_subscriptions.forget(),
            Side::Subscriber { chosen, awaited } => {
                chosen.forget();
                *awaited = false;
            }
        }
        opening::begin(link, shared, self.accepts)
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
        match (self.stage, item) {
            (Stage::Greeting, Item::Greeting(greeting)) => {
                self.minor = greeting.minor;
                self.stage = opening::on_greeting(link, shared, (self.side.socket(), self.accepts), *greeting)?;
                Ok(())
            }
            (Stage::Greeting, _) => Err(Cause::Protocol("a frame before its greeting".to_owned())),
            (_, Item::Greeting(_)) => Err(Cause::Protocol("a second greeting".to_owned())),
            (Stage::Up, Item::Command(body)) => {
                let command = Command::read(body).map_err(broken)?;
                self.on_command(link, shared, &command, sink)
            }
            (Stage::Up, Item::Frame { more, body }) => {
                self.on_frame(link, shared, *more, body, times, sink);
                Ok(())
            }
            (stage, Item::Command(body)) => {
                let command = Command::read(body).map_err(broken)?;
                self.stage = opening::on_command(link, shared, (stage, self.side.socket()), &command)?;
                if self.stage == Stage::Up {
                    self.on_up(link, shared, sink);
                }
                Ok(())
            }
            (_, Item::Frame { .. }) => Err(Cause::Protocol("a message before its READY".to_owned())),
        }
    }

    /// The peer sent no subscription within its time: there may be no subscriber, which is no reason not to connect.
    fn wait_expired(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        self.open(link, shared, sink);
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let Side::Publisher(peer_subscriptions) = &self.side else { return Err(Refusal::Blocked(Blocked::NotOpen)) };
        let payload_bytes = message.payload_bytes as usize;
        if payload_bytes > LARGEST_PAYLOAD_BYTES as usize {
            return Err(Refusal::TooLarge(LARGEST_PAYLOAD_BYTES));
        }
        let Some(topic) = peer_subscriptions.frame(message.publication) else {
            link.withhold(shared, message);
            return Ok(());
        };
        let front = |out: &mut Vec<u8>| {
            out.extend_from_slice(topic);
            append_frame_front(false, payload_bytes, out);
        };
        link.append_message(shared, message, Sending::once(payload_bytes), front, &[]);
        Ok(())
    }

    fn is_within_message(&self) -> bool {
        match &self.side {
            Side::Publisher(_) => false,
            Side::Subscriber { chosen, .. } => chosen.is_within_message(),
        }
    }

    fn ping(out: &mut Vec<u8>) {
        encode_ping(b"", out);
    }
}

fn broken(error: DecodeError) -> Cause {
    Cause::Protocol(error.to_string())
}

impl ZeroMq {
    /// Its connections will be accepted.
    pub(super) fn accept(&mut self) {
        self.accepts = true;
    }

    /// Did the peer subscribe to a publication's topic?
    pub(super) fn is_wanted(&self, publication: u16) -> bool {
        matches!(&self.side, Side::Publisher(peer_subscriptions) if peer_subscriptions.frame(publication).is_some())
    }

    /// Both sides have sent READY.
    fn on_up(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        match &self.side {
            Side::Publisher(peer_subscriptions) if !peer_subscriptions.is_empty() => {
                link.wait(shared, clock::monotonic_ns() + SUBSCRIPTION_WAIT_NS);
            }
            Side::Publisher(_) => self.open(link, shared, sink),
            Side::Subscriber { .. } => {
                self.open(link, shared, sink);
                self.subscribe(link, shared, sink);
            }
        }
    }

    fn open(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        // Peers of version 3.0 need not respond to a PING.
        let keep_alive_s = if self.answers_pings() { shared.config.connections.keep_alive_s } else { 0 };
        link.opened(shared, keep_alive_s);
        sink.event(link.id, Event::Connected(Connected::default()));
    }

    fn answers_pings(&self) -> bool {
        self.minor >= 1
    }

    fn subscribe(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let has_commands = self.answers_pings();
        let Side::Subscriber { chosen, awaited } = &mut self.side else { return };
        link.outbox.append(&mut shared.pool, |out| {
            for prefix in chosen.prefixes() {
                match has_commands {
                    true => encode_subscribe(prefix.as_bytes(), out),
                    false => encode_subscription_message(true, prefix.as_bytes(), out),
                }
            }
            if has_commands {
                encode_ping(BEHIND_SUBSCRIPTIONS, out);
            }
        });
        *awaited = true;
        if !has_commands {
            self.on_subscribed(link, sink);
        }
    }

    /// The peer has read our subscriptions, as far as it can be known.
    fn on_subscribed(&mut self, link: &Link, sink: &mut impl Sink) {
        let Side::Subscriber { awaited, .. } = &mut self.side else { return };
        if std::mem::take(awaited) {
            for index in 0..link.config.subscriptions.len() {
                sink.event(link.id, Event::Subscribed { index, granted: Ok(Qos::BestEffort) });
            }
        }
    }

    fn on_command(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        command: &Command<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match (command, &mut self.side) {
            (Command::Ping { context }, _) => {
                link.respond(shared, |out| encode_pong(context, out));
                Ok(())
            }
            (Command::Pong { context }, _) => {
                if *context == BEHIND_SUBSCRIPTIONS {
                    self.on_subscribed(link, sink);
                }
                Ok(())
            }
            (Command::Subscribe(prefix), Side::Publisher(peer_subscriptions)) => {
                peer_subscriptions.change(prefix, true);
                self.on_wish(link, shared, sink);
                Ok(())
            }
            (Command::Cancel(prefix), Side::Publisher(peer_subscriptions)) => {
                peer_subscriptions.change(prefix, false);
                Ok(())
            }
            (Command::Error(reason), _) => {
                let reason = Reason::words(format!("ERROR {}", String::from_utf8_lossy(reason)));
                Err(Cause::Server { reason, too_large: false })
            }
            // Of a later version, which must get along without them.
            (Command::Other(_), _) => Ok(()),
            (command, _) => Err(Cause::Protocol(format!("{} out of its turn", opening::name(command)))),
        }
    }

    /// The peer subscribed to something. All that is in the socket after it is read before a message is tried.
    fn on_wish(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        if link.phase != Phase::Open {
            self.open(link, shared, sink);
        }
    }

    fn on_frame(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        more: bool,
        body: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) {
        match &mut self.side {
            Side::Publisher(peer_subscriptions) => {
                if peer_subscriptions.on_frame(more, body) {
                    self.on_wish(link, shared, sink);
                }
            }
            Side::Subscriber { chosen, .. } => match chosen.on_frame(more, body) {
                Arrival::Part => {}
                Arrival::Chosen(payload) => sink.event(link.id, Event::Delivered(times.delivery(payload, false))),
                Arrival::Discarded => sink.event(link.id, Event::Discarded),
            },
        }
    }
}
