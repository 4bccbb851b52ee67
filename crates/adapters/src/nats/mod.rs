//! NATS at wire level: at most once, as the server's core gives it, and JetStream on top of it, with acknowledgements.

mod jetstream;
mod opening;
mod session;

pub use jetstream::JetStream;
pub use session::Nats;

use crate::connection::StreamClients;

/// Clients that speak JetStream.
pub type JetStreamClients = StreamClients<JetStream>;
/// Clients that speak NATS.
pub type NatsClients = StreamClients<Nats>;
