//! The protocols that clients can speak: a row each, with what its adapter can do and how the engine is run over it.
//!
//! The engine's shards are generic over the adapter. They are compiled here, once, and not in every binary and test.

pub mod known;
mod round_trip;

#[cfg(feature = "amqp10")]
use pubmark_adapters::amqp10::Amqp10;
#[cfg(feature = "amqp091")]
use pubmark_adapters::amqp091::Amqp091;
pub use pubmark_adapters::client_program::hello_of;
use pubmark_adapters::client_program::{self, ProgramClients};
#[cfg(feature = "coap")]
use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_adapters::connection::{Dialect, StreamClients};
#[cfg(feature = "dds-cyclone")]
use pubmark_adapters::dds::CycloneClients;
#[cfg(feature = "dds")]
use pubmark_adapters::dds::RustClients;
#[cfg(feature = "nats")]
use pubmark_adapters::jetstream::JetStream;
#[cfg(feature = "mqtt")]
use pubmark_adapters::mqtt::{Mqtt, V5, V311};
#[cfg(feature = "nats")]
use pubmark_adapters::nats::Nats;
#[cfg(feature = "redis")]
use pubmark_adapters::redis::RedisClients;
#[cfg(feature = "redis")]
use pubmark_adapters::redis_streams::RedisStreams;
#[cfg(feature = "zenoh")]
use pubmark_adapters::zenoh::{Peers, PeersBlocking, Routed, RoutedBlocking, Variant, ZenohClients};
#[cfg(feature = "zeromq")]
use pubmark_adapters::zeromq::{ZeroMq, peers::ZeroMqPeersClients};
use pubmark_engine::run::{self, ShardRun, Sides};
use pubmark_protocol::any::{self, Open};
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::client_program::Hello;
use pubmark_protocol::clients::Clients;
use pubmark_protocol::endpoint::Endpoint;

/// A protocol.
pub struct Protocol {
    /// What its adapter can do; its name is the one of the command line.
    pub capabilities: Capabilities,
    /// What the engine's shards do over its adapter.
    pub shard: ShardRun,
    /// Faults of a run can break its connections.
    pub breaks: bool,
    /// Its subscribers can take their time over each message.
    pub pauses: bool,
    /// Opens its adapter for anyone else.
    pub open: Open,
    /// Client library, where a protocol has rows for several; the first that is there is the default.
    pub client: Option<Client>,
    /// Name and version of the library of a program of the user's that is the client ([`of_program`]).
    pub program: Option<&'static str>,
}

/// Stands for a program of the user's where client libraries are named.
pub const PROGRAM: &str = "program";

/// The protocol as a program speaks it that said this hello: what it claims, of what pubmark's own client can. It stays until the end of
/// the process.
///
/// # Errors
/// The program does not speak it; with what it speaks.
pub fn of_program(own: &Protocol, hello: &Hello) -> Result<&'static Protocol, Vec<String>> {
    let Some(claims) = hello.claims(own.capabilities.name) else {
        return Err(hello.protocols.iter().map(|claims| claims.name.clone()).collect());
    };
    let capabilities = client_program::capabilities(&own.capabilities, claims);
    // Whether a system is ready is asked by pubmark's own client, whatever the program does.
    let row = Protocol { program: Some(hello.title().leak()), open: own.open, ..row::<ProgramClients>(capabilities) };
    Ok(Box::leak(Box::new(row)))
}

/// What shards do over any program. Its capabilities are checked where the run is prepared.
pub fn program_shard() -> ShardRun {
    run::over::<ProgramClients>()
}

/// A client library.
#[derive(Clone, Copy)]
pub struct Client {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name and version as its makers write them, of the one that is there.
    pub version: fn() -> String,
    /// Why it cannot be used on this machine, if so.
    pub missing: fn() -> Option<String>,
}

/// All protocols, in the order of help and reference; the first is the default. A new one is a row here.
pub const PROTOCOLS: &[Protocol] = &[
    #[cfg(feature = "mqtt")]
    stream::<Mqtt<V5>>(),
    #[cfg(feature = "mqtt")]
    stream::<Mqtt<V311>>(),
    #[cfg(feature = "nats")]
    stream::<Nats>(),
    #[cfg(feature = "nats")]
    stream::<JetStream>(),
    #[cfg(feature = "redis")]
    row::<RedisClients>(RedisClients::capabilities()),
    #[cfg(feature = "redis")]
    stream::<RedisStreams>(),
    #[cfg(feature = "amqp091")]
    stream::<Amqp091>(),
    #[cfg(feature = "amqp10")]
    stream::<Amqp10>(),
    #[cfg(feature = "coap")]
    row::<CoapClients>(CoapClients::<Standard>::capabilities()),
    #[cfg(feature = "coap")]
    row::<CoapClients>(CoapClients::<Standard>::capabilities_between_peers()),
    #[cfg(feature = "zeromq")]
    stream::<ZeroMq>(),
    #[cfg(feature = "zeromq")]
    row::<ZeroMqPeersClients>(ZeroMqPeersClients::capabilities()),
    #[cfg(feature = "zenoh")]
    zenoh::<Routed>(),
    #[cfg(feature = "zenoh")]
    zenoh::<RoutedBlocking>(),
    #[cfg(feature = "zenoh")]
    zenoh::<Peers>(),
    #[cfg(feature = "zenoh")]
    zenoh::<PeersBlocking>(),
    #[cfg(feature = "dds-cyclone")]
    row::<CycloneClients>(CycloneClients::capabilities()).by(
        "cyclone",
        CycloneClients::version,
        CycloneClients::missing,
    ),
    #[cfg(feature = "dds")]
    row::<RustClients>(RustClients::capabilities()).by("rustdds", RustClients::version, RustClients::missing),
];

const _: () = assert!(!PROTOCOLS.is_empty(), "a build without any protocol: choose at least one feature");

/// A protocol that we speak ourselves over stream sockets.
#[allow(dead_code, reason = "a build with other protocols only has no use for it")]
const fn stream<D: Dialect + 'static>() -> Protocol {
    row::<StreamClients<D>>(D::CAPABILITIES)
}

/// Zenoh, by its library.
#[cfg(feature = "zenoh")]
const fn zenoh<V: Variant>() -> Protocol {
    row::<ZenohClients<V>>(ZenohClients::<V>::capabilities())
}

const fn row<C: Clients + 'static>(capabilities: Capabilities) -> Protocol {
    Protocol {
        capabilities,
        shard: run::over::<C>(),
        breaks: C::BREAKS,
        pauses: C::PAUSES,
        open: any::open::<C>,
        client: None,
        program: None,
    }
}

impl Protocol {
    #[allow(dead_code, reason = "a build without DDS has no use for it")]
    const fn by(self, name: &'static str, version: fn() -> String, missing: fn() -> Option<String>) -> Protocol {
        Protocol { client: Some(Client { name, version, missing }), ..self }
    }

    /// The client library with its version, where a protocol has several.
    pub fn client_version(&self) -> Option<String> {
        self.client.map(|client| (client.version)())
    }

    /// Why the protocol's default client library is not used, where this one is another.
    pub fn stands_in_for(&self) -> Option<String> {
        let usual = PROTOCOLS.iter().find(|other| other.capabilities.name == self.capabilities.name)?.client?;
        (usual.missing)().filter(|_| self.client.is_some_and(|client| client.name != usual.name))
    }

    fn is_missing(&self) -> bool {
        self.client.is_some_and(|client| (client.missing)().is_some())
    }

    /// The same protocol by another client library; the names of those there are, if that is none of them.
    pub fn with_client(&self, name: &str) -> Result<&'static Protocol, Vec<&'static str>> {
        let same = || PROTOCOLS.iter().filter(|other| other.capabilities.name == self.capabilities.name);
        let known = || same().filter_map(|other| other.client).map(|client| client.name).collect();
        same().find(|other| other.client.is_some_and(|client| client.name == name)).ok_or_else(known)
    }

    /// Devices and subscribers over it.
    pub const fn sides(&self) -> Sides {
        Sides { publish: self.shard, subscribe: self.shard }
    }

    /// Sends a message in at `from` and out at `to` (the same place for a single broker), and waits for it; why it did not
    /// come, otherwise.
    pub fn round_trip(&self, from: &Endpoint, to: &Endpoint) -> Result<(), String> {
        round_trip::round_trip(self.open, from, to)
    }
}

/// Their names.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = PROTOCOLS.iter().map(|protocol| protocol.capabilities.name).collect();
    names.dedup();
    names
}

/// The protocol whose endpoints have this scheme.
pub fn of_scheme(scheme: &str) -> Option<&'static Protocol> {
    first(|protocol| protocol.capabilities.schemes.contains(&scheme))
}

/// The protocol of that name.
pub fn find(name: &str) -> Option<&'static Protocol> {
    first(|protocol| protocol.capabilities.name == name)
}

/// The first row whose client library is there; the first of all if none is, whose error says so.
fn first(choose: impl Fn(&Protocol) -> bool) -> Option<&'static Protocol> {
    let chosen = || PROTOCOLS.iter().filter(|protocol| choose(protocol));
    chosen().find(|protocol| !protocol.is_missing()).or_else(|| chosen().next())
}

/// What clients speak: devices and subscribers, each a protocol of their own where a system hands messages on between two.
#[derive(Clone, Copy)]
pub struct ProtocolPair {
    /// By devices.
    pub publish: &'static Protocol,
    /// By subscribers.
    pub subscribe: &'static Protocol,
}

impl ProtocolPair {
    /// The subscribers' protocol, where it is another than the devices'.
    pub fn second(self) -> Option<&'static Protocol> {
        (self.publish.capabilities.name != self.subscribe.capabilities.name).then_some(self.subscribe)
    }

    /// Do clients find each other by themselves, on either side?
    pub fn is_brokerless(self) -> bool {
        [self.publish, self.subscribe].iter().any(|side| side.capabilities.features.brokerless)
    }

    /// For people.
    pub fn title(self) -> String {
        let title = self.publish.capabilities.title;
        self.second().map_or_else(|| title.to_owned(), |second| format!("{title} to {}", second.capabilities.title))
    }
}
