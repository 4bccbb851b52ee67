//! The protocols that clients can speak: a row each, with what its adapter can do and how the engine is run over it.

use pubmark_adapters::amqp10::Amqp10;
use pubmark_adapters::amqp091::Amqp091;
use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_adapters::connection::{Dialect, StreamClients};
use pubmark_adapters::jetstream::JetStream;
use pubmark_adapters::mqtt::{Mqtt, V5, V311};
use pubmark_adapters::nats::Nats;
use pubmark_adapters::redis::Redis;
use pubmark_adapters::redis_streams::RedisStreams;
use pubmark_engine::run::{self, ShardRun};
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::endpoint::Endpoint;

use crate::readiness::round_trip;

/// Sends one message in at an endpoint and waits for it at another, or the same.
pub type RoundTrip = fn(&Endpoint, &Endpoint) -> Result<(), String>;

/// A protocol.
pub struct Protocol {
    /// What its adapter can do; its name is the one of the command line.
    pub capabilities: Capabilities,
    /// What the engine's shards do over its adapter.
    pub shard: ShardRun,
    /// One message there and back, to see whether a system is ready.
    pub round_trip: RoundTrip,
}

/// All protocols, in the order of help and reference; the first is the default. A new one is a row here.
pub const PROTOCOLS: &[Protocol] = &[
    row::<Mqtt<V5>>(),
    row::<Mqtt<V311>>(),
    row::<Nats>(),
    row::<JetStream>(),
    row::<Redis>(),
    row::<RedisStreams>(),
    row::<Amqp091>(),
    row::<Amqp10>(),
    COAP,
];

/// A protocol that we speak ourselves over stream sockets.
const fn row<D: Dialect>() -> Protocol {
    Protocol {
        capabilities: D::CAPABILITIES,
        shard: run::over::<StreamClients<D>>(),
        round_trip: round_trip::<StreamClients<D>>,
    }
}

/// CoAP, over datagrams.
const COAP: Protocol = Protocol {
    capabilities: CoapClients::<Standard>::capabilities(),
    shard: run::over::<CoapClients>(),
    round_trip: round_trip::<CoapClients>,
};

/// Their names.
pub fn names() -> Vec<&'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.capabilities.name).collect()
}

/// The protocol whose endpoints have this scheme.
pub fn of_scheme(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.capabilities.schemes.contains(&scheme))
}

/// The protocol of that name.
pub fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.capabilities.name == name)
}

/// What clients speak: devices and subscribers, each a protocol of their own where a system hands messages on between two.
#[derive(Clone, Copy)]
pub struct Spoken {
    /// By devices.
    pub publish: &'static Protocol,
    /// By subscribers.
    pub subscribe: &'static Protocol,
}

impl Spoken {
    /// The subscribers' protocol, where it is another than the devices'.
    pub fn second(self) -> Option<&'static Protocol> {
        (self.publish.capabilities.name != self.subscribe.capabilities.name).then_some(self.subscribe)
    }

    /// For people.
    pub fn title(self) -> String {
        let title = self.publish.capabilities.title;
        self.second().map_or_else(|| title.to_owned(), |second| format!("{title} to {}", second.capabilities.title))
    }
}
