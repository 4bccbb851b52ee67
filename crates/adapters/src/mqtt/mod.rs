//! MQTT 3.1.1 and 5.0 at wire level: codec, session state and socket in one thread, no task and no queue between them.
//!
//! `session` is the dialect: what a session remembers and which packet does what. What it does is in a file each:
//! `connecting`, `sending`, `replying`, `receiving`; the server's messages at QoS 2 that it remembers are in `received_ids`, the numbers that
//! stand for topics in `aliases`.

mod aliases;
mod authenticating;
mod connecting;
mod received_ids;
mod receiving;
mod replying;
mod sending;
mod session;
mod version;

pub use session::Mqtt;
pub use version::{ProtocolVersion, V5, V311};

use crate::connection::StreamClients;

/// Clients that speak MQTT 3.1.1.
pub type Mqtt311 = StreamClients<Mqtt<V311>>;
/// Clients that speak MQTT 5.0.
pub type Mqtt5 = StreamClients<Mqtt<V5>>;
