//! Protocol adapters: one module for each protocol, with its [`pubmark_protocol::clients::Clients`] and its capabilities.
//!
//! Protocols over stream sockets that pubmark implements itself share [`connection`].

#[cfg(feature = "amqp091")]
pub mod amqp091;
#[cfg(feature = "amqp10")]
pub mod amqp10;
pub mod client_program;
#[cfg(feature = "coap")]
pub mod coap;
pub mod connection;
#[cfg(any(feature = "dds", feature = "dds-cyclone"))]
pub mod dds;
#[cfg(feature = "nats")]
pub mod jetstream;
#[cfg(feature = "mqtt")]
pub mod mqtt;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redis_streams;
#[cfg(feature = "zenoh")]
pub mod zenoh;
#[cfg(feature = "zeromq")]
pub mod zeromq;

mod payload;
mod unread;
#[cfg(any(feature = "amqp091", feature = "amqp10"))]
mod virtual_host;
