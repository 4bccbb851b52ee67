//! Zenoh, by its own library: clients of a router, or peers without one.
//!
//! A session is a session of the library's. The library blocks, reads sockets on threads of its own and calls back on them, so
//! nothing of it is called on a shard's thread: `helpers` open and close, the `sender` hands messages over, and what comes
//! back goes through the `mailbox`. `clients` is the shard's side of it all. What the library can promise, and what cannot be
//! known behind it: docs/explanation/zenoh.md.

mod clients;
mod connection;
mod helpers;
mod keys;
mod mailbox;
mod opening;
mod requesting;
mod sender;
mod session;
mod settings;
mod variant;

pub use clients::ZenohClients;
pub use variant::{Peers, PeersBlocking, Routed, RoutedBlocking, Variant};
