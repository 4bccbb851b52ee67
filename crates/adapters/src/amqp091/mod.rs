//! AMQP 0-9-1 at wire level: a topic exchange, a queue for every subscriber, publisher confirms.
//!
//! `session` is the dialect: what a session remembers and which frame does what. What it does is in a file each: `opening`,
//! `subscribing`, `sending`, `receiving`; `cause` has words for what a server closes with.

mod cause;
mod opening;
mod receiving;
mod sending;
mod session;
mod subscribing;

pub use session::Amqp091;

use crate::connection::StreamClients;

/// Clients that speak AMQP 0-9-1.
pub type Amqp091Clients = StreamClients<Amqp091>;
