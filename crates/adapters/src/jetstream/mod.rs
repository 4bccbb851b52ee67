//! NATS JetStream at wire level: messages stored in streams and acknowledged, on the same connection as NATS.

mod deliveries;
mod errors;
mod names;
mod opening;
mod responses;
mod session;
mod settings;

pub use session::JetStream;

use crate::connection::StreamClients;

/// Clients for JetStream.
pub type JetStreamClients = StreamClients<JetStream>;
