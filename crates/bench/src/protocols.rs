//! The protocols that are measured: a row each.

use pubmark_adapters::amqp091::Amqp091Clients;
use pubmark_adapters::jetstream::JetStreamClients;
use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_adapters::nats::NatsClients;
use pubmark_adapters::redis::RedisClients;
use pubmark_engine::run::Sides;
use pubmark_protocol::clients::Clients;

use crate::idle;

/// A protocol.
pub struct Protocol {
    /// Its name, as `pubmark run --protocol` takes it.
    pub name: &'static str,
    /// What shards do over its adapter.
    pub sides: fn() -> Sides,
    /// Brings idle sessions up over its adapter.
    pub idle: fn(&idle::Order) -> Result<idle::Finding, String>,
}

/// All of them.
const PROTOCOLS: &[Protocol] = &[
    row::<Mqtt5>("mqtt5"),
    row::<Mqtt311>("mqtt311"),
    row::<NatsClients>("nats"),
    row::<JetStreamClients>("jetstream"),
    row::<RedisClients>("redis"),
    row::<Amqp091Clients>("amqp091"),
];

const fn row<C: Clients>(name: &'static str) -> Protocol {
    Protocol { name, sides: Sides::both::<C>, idle: idle::bring_up_all::<C> }
}

/// The one of that name.
pub fn find(name: &str) -> Result<&'static Protocol, String> {
    PROTOCOLS.iter().find(|protocol| protocol.name == name).ok_or_else(|| format!("no protocol `{name}` is measured"))
}
