//! Codecs without I/O for the protocols, shared by adapters and built-in servers: bytes to borrowed packets, and back.
//!
//! Start with [`mqtt`].

pub mod amqp091;
pub mod amqp10;
pub mod coap;
pub mod front;
pub mod mqtt;
pub mod nats;
pub mod resp;
pub mod zmtp;

mod decimal;
