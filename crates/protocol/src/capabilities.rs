//! Capabilities of an adapter and its library. The program checks differences between protocols here, never by the protocol's name.

use std::net::IpAddr;
use std::time::Duration;

use pubmark_model::fleet::SecondConnection;
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

/// Features of only some protocols.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// A message goes to one session of a group ([`crate::clients::SessionOptions::shared`]).
    pub shared_subscriptions: bool,
    /// The system publishes a will for a client whose connection ends without a goodbye ([`crate::clients::SessionOptions::will`]).
    pub wills: bool,
    /// The will can be delayed.
    pub will_delay: bool,
    /// Messages can have an expiry time after which they are dropped ([`crate::clients::SessionOptions::message_expiry_s`]).
    pub message_expiry: bool,
    /// A number can stand for a topic ([`crate::clients::SessionOptions::topic_alias`]).
    pub topic_alias: bool,
    /// Messages have user properties, in the protocol's own words: a header can travel in one
    /// ([`crate::clients::Publication::header`]), and those of the workload's own ([`crate::clients::Publication::properties`]).
    pub properties: Option<&'static str>,
    /// Brokers filter a subscription by the content of messages; the protocol's name for that
    /// ([`crate::clients::SessionOptions::selector`]). Publishers send the fields that a filter may use
    /// ([`crate::clients::SessionOptions::selector_fields`]).
    pub content_filters: Option<&'static str>,
    /// Clients can log in: with user name and password, or with a token instead of the password
    /// ([`crate::clients::SessionConfig::log_in`]).
    pub log_in: bool,
    /// A client can prove anew who it is on its open connection
    /// ([`pubmark_model::token::ClientToken::reauthentication`]).
    pub reauthenticates: bool,
    /// A client can log in with an NKey ([`crate::clients::SessionConfig::nkey`]).
    pub nkeys: bool,
    /// Each session can present a certificate of its own in TLS ([`crate::clients::SessionConfig::certificate`]).
    pub own_certificates: bool,
    /// Its clients filter: publishers withhold messages without a subscriber ([`crate::events::Event::Withheld`]), subscribers
    /// get every message with a matching prefix ([`crate::events::Event::Discarded`]).
    pub filters_at_clients: bool,
    /// A system has two ports: one for devices and one for subscribers.
    pub two_ports: bool,
    /// Which sessions have two connections to the system.
    pub second_connection: SecondConnection,
    /// There is no broker: clients discover each other.
    pub brokerless: bool,
    /// Its library or program chooses the addresses of this machine that it uses: those of `--source-addresses` have no effect.
    pub chooses_addresses: bool,
    /// Each subscriber listens at an endpoint of its own, and each device connects to all of them,
    /// a requester to that of its responder ([`crate::clients::SessionOptions::targets`]).
    pub subscribers_listen: bool,
    /// Longest time until its clients or the system send a message again that was not acknowledged on a connection that is open.
    /// It then arrives behind later ones. `None` if they do so on a new connection only.
    pub redelivers_after: Option<Duration>,
    /// How requests and replies are marked, with the protocol's own terms.
    pub requests: Option<&'static str>,
    /// A request goes only to its responder: other subscribers of its topic do not receive it.
    pub only_responders_receive_requests: bool,
    /// It carries only requests and their replies.
    pub only_requests: bool,
    /// It also works over WebSocket.
    pub websocket: Option<OverWebSocket>,
    /// It uses UDP, on sockets that pubmark owns.
    pub datagrams: bool,
    /// Most sessions of a run, where that is fewer than a machine has ports and memory for.
    pub maximum_sessions: Option<u32>,
    /// Sessions that a client library opens in a second at least, where it opens only a few at a time.
    pub opens_per_s: Option<u32>,
    /// Most messages per second of a run, where a client library loses messages beyond that.
    pub maximum_messages_per_s: Option<u32>,
    /// Most messages that its subscribers let a system send ahead of their acknowledgements, where they acknowledge, or of further
    /// credit, or of their next request for messages. `None`: they ask for no limit, or it is not known, as of a program of the user's.
    pub delivery_window: Option<u32>,
    /// Lowest level of the subscribers that set that limit: those below it ask for none.
    pub delivery_window_from: Qos,
    /// Its endpoints have settings after the port. `None`: they do not.
    pub settings: Option<EndpointSettings>,
}

/// How a protocol uses WebSocket.
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
    /// No feature.
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
        second_connection: SecondConnection::Never,
        brokerless: false,
        chooses_addresses: false,
        subscribers_listen: false,
        redelivers_after: None,
        requests: None,
        only_responders_receive_requests: false,
        only_requests: false,
        websocket: None,
        datagrams: false,
        maximum_sessions: None,
        opens_per_s: None,
        maximum_messages_per_s: None,
        delivery_window: None,
        delivery_window_from: Qos::BestEffort,
        settings: None,
    };

    /// [`Features::delivery_window`] of subscribers at these levels; of those at the highest, if they differ.
    pub fn delivery_window_of(&self, levels: impl Iterator<Item = Qos>) -> Option<u32> {
        let highest = levels.max()?;
        self.delivery_window.filter(|_| highest >= self.delivery_window_from)
    }
}

/// The settings after the port of a protocol's endpoints.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSettings {
    /// The character that separates them from the port.
    pub begins_with: char,
    /// Validates them; they start with that character.
    pub check: SettingsCheck,
    /// Returns settings with which clients without a broker on several machines discover each other, given their addresses;
    /// `None` where an endpoint's address is enough.
    pub finds: Option<fn(&[IpAddr]) -> String>,
}

/// The reason why settings of an endpoint cannot be used, if they cannot.
pub type SettingsCheck = fn(&str) -> Result<(), String>;

/// The reason why a topic or filter cannot be expressed in a protocol, if it cannot.
pub type TopicCheck = fn(&str) -> Result<(), String>;

/// How a protocol implements a delivery level.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The level.
    pub qos: Qos,
    /// What publishers and subscribers do for it, in the protocol's own terms.
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
    /// Features of only some protocols.
    pub features: Features,
    /// What `sent` means.
    pub sent_means: SentMeans,
    /// Largest payload that the protocol can carry.
    pub maximum_payload_bytes: u32,
    /// Checks whether a topic or filter in MQTT's syntax can be expressed in this protocol; the error is the reason. `None`: every one
    /// can.
    pub check_topic: Option<TopicCheck>,
    /// Does a subscription to the first, a filter, receive a message with the second, a topic? Only for protocols that cannot
    /// express some differences. `None`: matching as in MQTT (MQTT 5.0 §4.7).
    pub filter_matches: Option<fn(&str, &str) -> bool>,
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

    /// Does a subscription to that filter receive a message with this topic?
    pub fn filter_matches(&self, filter: &str, topic: &str) -> bool {
        self.filter_matches.map_or_else(
            || TopicFilter(filter.to_owned()).matches(topic),
            |filter_matches| filter_matches(filter, topic),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_below_the_level_of_a_delivery_window_have_none() {
        let of = |levels: &[Qos], from: Qos| {
            let features = Features { delivery_window: Some(7), delivery_window_from: from, ..Features::NONE };
            features.delivery_window_of(levels.iter().copied())
        };
        assert_eq!(of(&[Qos::BestEffort], Qos::AtLeastOnce), None);
        assert_eq!(of(&[Qos::ExactlyOnce, Qos::BestEffort], Qos::AtLeastOnce), Some(7), "one group of two has it");
        assert_eq!(of(&[Qos::BestEffort], Qos::BestEffort), Some(7), "at every level");
        assert_eq!(of(&[], Qos::BestEffort), None, "there are no subscribers");
        assert_eq!(Features::NONE.delivery_window_of(Qos::ALL.into_iter()), None);
    }
}
