//! AMQP 0-9-1 at wire level: a topic exchange, a queue for every subscriber, publisher confirms.
//!
//! `session` is the dialect: a session's state and the dispatch of frames. Its parts are in a file each: `opening`,
//! `subscribing`, `sending`, `receiving`; `cause` has texts for a server's reasons for closing.

mod cause;
mod opening;
mod receiving;
mod sending;
mod session;
mod subscribing;

pub use session::Amqp091;

use crate::connection::StreamClients;

/// Clients for AMQP 0-9-1.
pub type Amqp091Clients = StreamClients<Amqp091>;
