//! Codecs without I/O, shared by adapters and built-in servers: bytes in, borrowed packets out, and back.
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
