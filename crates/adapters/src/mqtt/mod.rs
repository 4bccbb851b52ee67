//! MQTT 3.1.1 and 5.0 at wire level: codec, session state and socket in one thread, no task and no queue between them.
//!
//! `session` is the dialect: a session's state and the dispatch of packets. Its parts are in a file each: `connecting`,
//! `sending`, `replying`, `receiving`; identifiers of the server's messages at QoS 2 are in `received_ids`, topic aliases in
//! `aliases`, whose session the server has in `stored`.

mod aliases;
mod authenticating;
mod connecting;
mod received_ids;
mod receiving;
mod replying;
mod sending;
mod session;
mod stored;
mod version;

pub use session::Mqtt;
pub use version::{ProtocolVersion, V5, V311};

use crate::connection::StreamClients;

/// Clients for MQTT 3.1.1.
pub type Mqtt311 = StreamClients<Mqtt<V311>>;
/// Clients for MQTT 5.0.
pub type Mqtt5 = StreamClients<Mqtt<V5>>;
