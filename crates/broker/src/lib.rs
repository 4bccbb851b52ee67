//! Brokers of our own: two for MQTT, one for CoAP.
//!
//! [`Broker`] is the built-in one: what `pubmark demo` runs against, in a process of its own ([`serve_process`]).
//! [`coap::CoapBroker`] is the same for CoAP publish/subscribe.
//! The lying broker ([`liar`]) does what a script tells it and writes down what it did; the truth tests hold a run's record against it.

mod builtin;
pub mod coap;
mod error;
pub mod liar;
mod net;
mod outgoing;
mod process;
mod settings;
mod statistics;
mod topic_tree;

pub use builtin::Broker;
pub use error::BrokerError;
pub use net::{ServerTls, TlsError};
pub use process::{OPTIONS, ProcessError, serve_process};
pub use settings::{Login, Settings};
pub use statistics::Statistics;
