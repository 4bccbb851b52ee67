//! CoAP: the suite against our own broker, a server whose every datagram the test decides, a network that loses, and
//! libcoap's server.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod libcoap;
mod lossy;
mod notified;
mod published;
mod relay;
mod script;
mod suite;
