//! MQTT 3.1.1 and 5.0 at wire level: codec, session state and socket in one thread, no task and no queue between them.
//!
//! `clients` is the trait's implementation and its event loop, `session` one session and how it ends. What a session
//! does is in a file each: `connecting`, `sending`, `receiving`, `keep_alive`; what it remembers is in
//! `in_flight` (messages of ours) and `received_ids` (messages of the server's at QoS 2).

mod body;
mod clients;
mod connecting;
mod in_flight;
mod keep_alive;
mod received_ids;
mod receiving;
mod sending;
mod session;
mod version;

pub use clients::MqttClients;
pub use version::{ProtocolVersion, V5, V311};

/// Clients that speak MQTT 3.1.1.
pub type Mqtt311 = MqttClients<V311>;
/// Clients that speak MQTT 5.0.
pub type Mqtt5 = MqttClients<V5>;
