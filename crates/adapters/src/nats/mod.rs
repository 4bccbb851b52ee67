//! NATS at wire level: at most once, as the server's core gives it. Streams with acknowledgements are another protocol
//! ([`crate::jetstream`]), which begins in the same way.

pub(crate) mod headers;
mod inbox;
pub(crate) mod opening;
mod session;

pub use session::Nats;

use crate::connection::StreamClients;

/// Clients that speak NATS.
pub type NatsClients = StreamClients<Nats>;
