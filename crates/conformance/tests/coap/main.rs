//! CoAP: the suite against our own broker and between peers, scripted servers and clients, a network with losses, and
//! the programs of libcoap.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod answering;
mod asking;
mod libcoap;
mod lossy;
mod notified;
mod overflowing;
mod published;
mod relay;
mod requests;
mod reused_ports;
mod script;
mod suite;
