//! The table of protocols: one row for each, with the capabilities of its adapter and the function that runs the engine over it.
//!
//! The engine's shards are generic over the adapter. They are compiled here, once, and not in every binary and test.

pub mod known;
mod round_trip;

use std::time::Duration;

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
use pubmark_adapters::redis_streams::RedisStreamsClients;
#[cfg(feature = "zenoh")]
use pubmark_adapters::zenoh::{Peers, PeersBlocking, Routed, RoutedBlocking, Variant, ZenohClients};
#[cfg(feature = "zeromq")]
use pubmark_adapters::zeromq::{ZeroMq, peers::ZeroMqPeersClients};
use pubmark_engine::run::{self, ShardRun, Sides};
use pubmark_model::fleet::SecondConnection;
use pubmark_protocol::any::{self, Open};
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::client_program::Hello;
use pubmark_protocol::clients::Clients;
use pubmark_protocol::endpoint::Endpoint;

/// A protocol.
pub struct Protocol {
    /// Capabilities of its adapter, which include the name on the command line.
    pub capabilities: Capabilities,
    /// Runs the engine's shards over its adapter.
    pub shard: ShardRun,
    /// Faults of a run can break its connections.
    pub breaks: bool,
    /// Its subscribers can have a processing time for each message.
    pub pauses: bool,
    /// Opens its adapter for users other than the engine.
    pub open: Open,
    /// Client library, where a protocol has rows for several; the first that is installed is the default.
    pub client: Option<Client>,
    /// Name and version of the library, if the client is a program of the user's ([`of_program`]).
    pub program: Option<&'static str>,
}

/// Name of a program of the user's in lists of client libraries.
pub const PROGRAM: &str = "program";

/// The protocol for a program that sent this hello: the capabilities that it claims, limited to those of pubmark's own client.
/// The row exists until the end of the process.
///
/// # Errors
/// The program does not implement the protocol; the error lists those that it implements.
pub fn of_program(own: &Protocol, hello: &Hello) -> Result<&'static Protocol, Vec<String>> {
    let Some(claims) = hello.claims(own.capabilities.name) else {
        return Err(hello.protocols.iter().map(|claims| claims.name.clone()).collect());
    };
    let capabilities = client_program::capabilities(&own.capabilities, claims);
    // Readiness of a system is always checked by pubmark's own client, not by the program.
    let row = Protocol { program: Some(hello.title().leak()), open: own.open, ..row::<ProgramClients>(capabilities) };
    Ok(Box::leak(Box::new(row)))
}

/// Runs shards over any program. Its capabilities are checked where the run is prepared.
pub fn program_shard() -> ShardRun {
    run::over::<ProgramClients>()
}

/// A client library.
#[derive(Clone, Copy)]
pub struct Client {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name and version as its makers write them, of the installed one.
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
    row::<RedisStreamsClients>(RedisStreamsClients::capabilities()),
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

/// The row of a protocol over stream sockets that pubmark implements itself.
#[allow(dead_code, reason = "a build with other protocols only has no use for it")]
const fn stream<D: Dialect + 'static>() -> Protocol {
    row::<StreamClients<D>>(D::CAPABILITIES)
}

/// The row of a Zenoh variant, which uses Zenoh's library.
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

    /// Why the protocol's default client library is not used, if this is another one.
    pub fn stands_in_for(&self) -> Option<String> {
        let usual = PROTOCOLS.iter().find(|other| other.capabilities.name == self.capabilities.name)?.client?;
        (usual.missing)().filter(|_| self.client.is_some_and(|client| client.name != usual.name))
    }

    fn is_missing(&self) -> bool {
        self.client.is_some_and(|client| (client.missing)().is_some())
    }

    /// The same protocol with another client library; if there is none of that name, the names of those that there are.
    pub fn with_client(&self, name: &str) -> Result<&'static Protocol, Vec<&'static str>> {
        let same = || PROTOCOLS.iter().filter(|other| other.capabilities.name == self.capabilities.name);
        let known = || same().filter_map(|other| other.client).map(|client| client.name).collect();
        same().find(|other| other.client.is_some_and(|client| client.name == name)).ok_or_else(known)
    }

    /// Devices and subscribers over it.
    pub const fn sides(&self) -> Sides {
        Sides { publish: self.shard, subscribe: self.shard }
    }

    /// Sends a message in at `from` and out at `to` (the same endpoint for a single broker), and waits for it; the error states
    /// why it did not arrive.
    pub fn round_trip(&self, from: &Endpoint, to: &Endpoint) -> Result<(), String> {
        round_trip::round_trip(self.open, from, to)
    }
}

/// Names of the protocols.
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

/// The first row whose client library is installed; if none is, the first row, whose error then states that.
fn first(choose: impl Fn(&Protocol) -> bool) -> Option<&'static Protocol> {
    let chosen = || PROTOCOLS.iter().filter(|protocol| choose(protocol));
    chosen().find(|protocol| !protocol.is_missing()).or_else(|| chosen().next())
}

/// The protocols of clients: devices and subscribers, which differ where a system translates between two.
#[derive(Clone, Copy)]
pub struct ProtocolPair {
    /// Protocol of the devices.
    pub publish: &'static Protocol,
    /// Protocol of the subscribers.
    pub subscribe: &'static Protocol,
}

impl ProtocolPair {
    /// The subscribers' protocol, if it differs from the devices'.
    pub fn second(self) -> Option<&'static Protocol> {
        (self.publish.capabilities.name != self.subscribe.capabilities.name).then_some(self.subscribe)
    }

    /// Returns whether clients on either side find each other without a broker.
    pub fn is_brokerless(self) -> bool {
        [self.publish, self.subscribe].iter().any(|side| side.capabilities.features.brokerless)
    }

    /// Which sessions have two connections. Those that could have need one protocol on both sides: clients that publish and
    /// subscribe, requesters and responders.
    pub fn second_connection(self) -> SecondConnection {
        match self.second() {
            Some(_) => SecondConnection::Never,
            None => self.subscribe.capabilities.features.second_connection,
        }
    }

    /// Longest time until a message is sent again on an open connection, on either side; see
    /// [`pubmark_protocol::capabilities::Features::redelivers_after`].
    pub fn redelivers_after(self) -> Option<Duration> {
        self.publish.capabilities.features.redelivers_after.max(self.subscribe.capabilities.features.redelivers_after)
    }

    /// The name of the protocol, or of both, as text for people.
    pub fn title(self) -> String {
        let title = self.publish.capabilities.title;
        self.second().map_or_else(|| title.to_owned(), |second| format!("{title} to {}", second.capabilities.title))
    }
}
