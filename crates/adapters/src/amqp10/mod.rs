//! AMQP 1.0 at wire level: at most once by deliveries that are settled before they are sent, at least once by deliveries
//! that the server accepts.
//!
//! One connection has one session, in it a sender for each topic and level, and a receiver for each subscription. `session` is
//! the dialect; `opening` goes from TCP to a session and `links` to its links, `outgoing` and `incoming` are a session's state
//! for each direction, `sending`, `replying` and `receiving` use it. Design: `docs/explanation/amqp.md`.

mod causes;
mod incoming;
mod links;
mod opening;
mod outgoing;
mod receiving;
mod replying;
mod sending;
mod session;
mod unsettled;

pub use session::Amqp10;

use crate::connection::StreamClients;

/// Clients for AMQP 1.0.
pub type Amqp10Clients = StreamClients<Amqp10>;
