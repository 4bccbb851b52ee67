//! What an adapter and its library can do; differences between protocols are asked here, never by name.

use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;

/// What `sent` means for an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentMeans {
    /// The last byte was accepted by our socket.
    Wire,
    /// The message was handed to a library that queues.
    HandedOver,
}

/// What only some protocols have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// A message goes to one session of a group ([`crate::clients::SessionOptions::shared`]).
    pub shared_subscriptions: bool,
    /// The system publishes for who goes without a goodbye ([`crate::clients::SessionOptions::will`]).
    pub wills: bool,
    /// It can be made to wait with that.
    pub will_delay: bool,
    /// Messages can be told to be dropped when they are old ([`crate::clients::SessionOptions::message_expiry_s`]).
    pub message_expiry: bool,
    /// A number can stand for a topic ([`crate::clients::SessionOptions::topic_alias`]).
    pub topic_alias: bool,
    /// It is spoken over WebSocket too.
    pub websocket: Option<OverWebSocket>,
}

/// How a protocol is spoken over WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverWebSocket {
    /// Schemes of its endpoints, plain and encrypted; they are among [`Capabilities::schemes`].
    pub schemes: [&'static str; 2],
    /// Its registered name as a subprotocol.
    pub subprotocol: &'static str,
    /// Path of endpoints that name none.
    pub path: &'static str,
}

impl OverWebSocket {
    /// Ports of endpoints that name none, plain and encrypted (RFC 6455 §3).
    pub const PORTS: [u16; 2] = [80, 443];
}

impl Features {
    /// None of them.
    pub const NONE: Features = Features {
        shared_subscriptions: false,
        wills: false,
        will_delay: false,
        message_expiry: false,
        topic_alias: false,
        websocket: None,
    };
}

/// Says why a topic or filter cannot be said in a protocol, if so.
pub type TopicCheck = fn(&str) -> Result<(), String>;

/// How a protocol keeps the promise of a delivery level.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The level.
    pub qos: Qos,
    /// What publishers and subscribers do for it, in the protocol's own words.
    pub means: &'static str,
}

/// What an adapter can do.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Name on the command line and in records, for instance `mqtt5`.
    pub name: &'static str,
    /// The protocol's name and version as its standard writes them.
    pub title: &'static str,
    /// Schemes of endpoints, the plain one first.
    pub schemes: &'static [&'static str],
    /// The encrypted schemes among them.
    pub tls_schemes: &'static [&'static str],
    /// Port of each scheme where the endpoint names none.
    pub default_port: u16,
    /// Port of the encrypted schemes where the endpoint names none.
    pub default_tls_port: u16,
    /// Levels offered, the lowest first.
    pub levels: &'static [Level],
    /// Wildcards in filters.
    pub wildcards: bool,
    /// Retained messages.
    pub retain: bool,
    /// Sessions that outlive a connection.
    pub persistent_sessions: bool,
    /// A goodbye can end such a session ([`crate::clients::Goodbye::Final`]).
    pub ends_sessions: bool,
    /// What only some protocols have.
    pub features: Features,
    /// What `sent` means.
    pub sent_means: SentMeans,
    /// Largest payload that the protocol can carry.
    pub maximum_payload_bytes: u32,
    /// Can a topic or filter in MQTT's syntax be said in this protocol's? Why not, otherwise. `None`: every one can.
    pub check_topic: Option<TopicCheck>,
    /// Does a message with the second, a topic, get to who subscribes to the first, a filter? Only for protocols that have
    /// no words for some differences. `None`: always as MQTT says (MQTT 5.0 §4.7).
    pub hears: Option<fn(&str, &str) -> bool>,
}

impl Capabilities {
    /// The levels that it offers, the lowest first.
    pub fn qos(&self) -> impl Iterator<Item = Qos> {
        self.levels.iter().map(|level| level.qos)
    }

    /// Does it offer a level?
    pub fn offers(&self, qos: Qos) -> bool {
        self.qos().any(|offered| offered == qos)
    }

    /// Does a message with this topic get to who subscribes to that filter?
    pub fn hears(&self, filter: &str, topic: &str) -> bool {
        self.hears.map_or_else(|| TopicFilter(filter.to_owned()).matches(topic), |hears| hears(filter, topic))
    }
}
