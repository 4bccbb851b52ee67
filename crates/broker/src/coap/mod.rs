//! A CoAP publish/subscribe broker: the data plane of draft-ietf-core-coap-pubsub, with all state in memory.
//!
//! A topic is the resource `/ps/…`. PUT publishes, and creates a topic that is new; GET with Observe subscribes, also to a
//! topic that does not exist yet; GET alone reads the last publication. Beyond the draft, `+` and `#` in a subscription's path
//! are MQTT's wildcards. An observer that subscribed with a confirmable message is notified with confirmable ones, any other
//! with non-confirmable ones. Every publication is notified, in order, although the standard (RFC 7641 §1.3) requires only the
//! last state.

mod answered;
mod broker;
mod notify;
mod observer;
mod peer;
mod process;
mod read;
mod requests;
mod settings;
mod statistics;
mod upload;

pub use broker::CoapBroker;
pub use process::{OPTIONS, serve_process};
pub use settings::CoapSettings;
pub use statistics::CoapStatistics;
