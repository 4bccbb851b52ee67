//! NATS at wire level: at most once, as in the server's core. Streams with acknowledgements are another protocol
//! ([`crate::jetstream`]), which begins in the same way.

pub(crate) mod headers;
mod inbox;
pub(crate) mod opening;
mod session;

pub use session::Nats;

use crate::connection::StreamClients;

/// Clients for NATS.
pub type NatsClients = StreamClients<Nats>;
