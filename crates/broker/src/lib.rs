//! Built-in brokers for demos and tests: two for MQTT, one for CoAP.
//!
//! [`Broker`] is the MQTT broker that `pubmark demo` uses, in a process of its own ([`serve_process`]). [`coap::CoapBroker`] is
//! the same for CoAP publish/subscribe. The lying broker ([`liar`]) follows a script and writes a journal of its actions; the
//! truth tests compare a run's record with that journal.

mod builtin;
pub mod coap;
mod error;
pub mod liar;
mod net;
mod outgoing;
mod process;
mod settings;
mod statistics;
mod tokens;
mod topic_tree;

pub use builtin::Broker;
pub use error::BrokerError;
pub use net::{ServerTls, TlsError};
pub use process::{OPTIONS, ProcessError, serve_process};
pub use settings::{Login, Settings};
pub use statistics::Statistics;
pub use tokens::{TOKEN_METHOD, TokenKey};
