//! CoAP: the suite against our own broker and between peers, servers and clients whose every datagram the test
//! decides, a network that loses, and libcoap's programs.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod answering;
mod asking;
mod libcoap;
mod lossy;
mod notified;
mod published;
mod relay;
mod requests;
mod script;
mod suite;
