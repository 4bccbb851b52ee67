//! A CoAP publish/subscribe broker: the data plane of draft-ietf-core-coap-pubsub, everything in memory.
//!
//! A topic is the resource `/ps/…`. PUT publishes, and creates a topic that is new; GET with Observe subscribes, to a topic
//! that does not exist yet as well; GET alone reads the last publication. Beyond the draft, `+` and `#` in a subscription's
//! path are MQTT's wildcards. An observer that asked in a confirmable message is notified in confirmable ones, any other in
//! non-confirmable ones. Every publication is notified, in order: to the standard (RFC 7641 §1.3) only the last state counts.

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
