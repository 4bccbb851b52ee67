//! Adapters: one module a protocol, each with [`pubmark_protocol::clients::Clients`] and its capabilities.
//!
//! Protocols over stream sockets that we speak ourselves share [`connection`].

pub mod amqp091;
pub mod amqp10;
pub mod coap;
pub mod connection;
pub mod jetstream;
pub mod mqtt;
pub mod nats;
pub mod redis;
pub mod redis_streams;

mod payload;
