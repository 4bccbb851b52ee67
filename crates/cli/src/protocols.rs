//! The protocols that clients can speak: a row each, with what its adapter can do and how the engine is run over it.

use std::sync::atomic::AtomicBool;

use pubmark_adapters::connection::{Dialect, StreamClients};
use pubmark_adapters::jetstream::JetStream;
use pubmark_adapters::mqtt::{Mqtt, V5, V311};
use pubmark_adapters::nats::Nats;
use pubmark_adapters::redis::Redis;
use pubmark_engine::error::EngineError;
use pubmark_engine::outcome::Outcome;
use pubmark_engine::plan::RunPlan;
use pubmark_engine::run::{self, Observer};
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::endpoint::Endpoint;

use crate::readiness::round_trip;

/// Does a run over the row's adapter.
pub type Runner = fn(&RunPlan, &AtomicBool, &mut dyn Observer) -> Result<Outcome, EngineError>;

/// Sends one message in at an endpoint and waits for it at another, or the same.
pub type RoundTrip = fn(&Endpoint, &Endpoint) -> Result<(), String>;

/// A protocol.
pub struct Protocol {
    /// What its adapter can do; its name is the one of the command line.
    pub capabilities: Capabilities,
    /// The engine over its adapter.
    pub run: Runner,
    /// One message there and back, to see whether a system is ready.
    pub round_trip: RoundTrip,
}

/// All protocols, in the order of help and reference; the first is the default. A new one is a row here.
pub const PROTOCOLS: &[Protocol] =
    &[row::<Mqtt<V5>>(), row::<Mqtt<V311>>(), row::<Nats>(), row::<JetStream>(), row::<Redis>()];

/// A protocol that we speak ourselves over stream sockets.
const fn row<D: Dialect>() -> Protocol {
    Protocol {
        capabilities: D::CAPABILITIES,
        run: run::run::<StreamClients<D>>,
        round_trip: round_trip::<StreamClients<D>>,
    }
}

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
