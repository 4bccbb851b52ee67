//! What an adapter and its library can do; differences between protocols are asked here, never by name.

use std::net::IpAddr;

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
#[derive(Clone, Copy, Debug)]
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
    /// Messages have user properties, in the protocol's own words: a header can travel in one
    /// ([`crate::clients::Publication::header`]), and those of the workload's own ([`crate::clients::Publication::properties`]).
    pub properties: Option<&'static str>,
    /// Brokers filter a subscription by the content of messages, in the protocol's own words
    /// ([`crate::clients::SessionOptions::selector`]); publishers say what it may ask about
    /// ([`crate::clients::SessionOptions::selector_fields`]).
    pub content_filters: Option<&'static str>,
    /// Clients can log in: with user name and password, or a token in place of the password
    /// ([`crate::clients::SessionConfig::log_in`]).
    pub log_in: bool,
    /// A client can prove anew who it is on its open connection
    /// ([`pubmark_model::token::ClientToken::reauthentication`]).
    pub reauthenticates: bool,
    /// A client can log in with an NKey ([`crate::clients::SessionConfig::nkey`]).
    pub nkeys: bool,
    /// Each session can show a certificate of its own in TLS ([`crate::clients::SessionConfig::certificate`]).
    pub own_certificates: bool,
    /// Its clients are its filters: publishers keep back what nobody asked for ([`crate::events::Event::Withheld`]), subscribers
    /// get what only begins alike ([`crate::events::Event::PassedOver`]).
    pub filters_at_clients: bool,
    /// A system has two ports: devices connect to the one and subscribers to the other.
    pub two_ports: bool,
    /// There is no broker: clients find each other by themselves.
    pub brokerless: bool,
    /// Each subscriber listens at an endpoint of its own, and each device connects to all of them,
    /// a requester to that of its responder ([`crate::clients::SessionOptions::targets`]).
    pub subscribers_listen: bool,
    /// What was sent to a session that was going comes again behind what followed it, not before.
    pub redelivers_behind: bool,
    /// How a message asks for an answer and an answer names its request, in the protocol's own words.
    pub requests: Option<&'static str>,
    /// A request goes to its responder alone: who subscribes to its topic besides does not hear it.
    pub only_responders_hear_requests: bool,
    /// It carries requests and their answers, and no message of another kind.
    pub only_requests: bool,
    /// It is spoken over WebSocket too.
    pub websocket: Option<OverWebSocket>,
    /// It is spoken over UDP, on sockets of ours.
    pub datagrams: bool,
    /// Most sessions that a run can have, where that is fewer than a machine has ports and memory for.
    pub maximum_sessions: Option<u32>,
    /// Most messages a second that a run can have, where a client library loses them beyond.
    pub maximum_messages_per_s: Option<u32>,
    /// Its endpoints have settings behind the port. `None`: they end there.
    pub settings: Option<EndpointSettings>,
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
        properties: None,
        content_filters: None,
        log_in: false,
        reauthenticates: false,
        nkeys: false,
        own_certificates: false,
        filters_at_clients: false,
        two_ports: false,
        brokerless: false,
        subscribers_listen: false,
        redelivers_behind: false,
        requests: None,
        only_responders_hear_requests: false,
        only_requests: false,
        websocket: None,
        datagrams: false,
        maximum_sessions: None,
        maximum_messages_per_s: None,
        settings: None,
    };
}

/// What stands behind the port of a protocol's endpoints.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSettings {
    /// The sign that it begins with.
    pub begins_with: char,
    /// What is wrong with it, which begins so.
    pub check: SettingsCheck,
    /// What it says so that clients without a broker find each other on several machines, given their addresses; `None` where an
    /// endpoint's address is enough.
    pub finds: Option<fn(&[IpAddr]) -> String>,
}

/// Says why settings of an endpoint cannot be used, if so.
pub type SettingsCheck = fn(&str) -> Result<(), String>;

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
