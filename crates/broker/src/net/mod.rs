//! Non-blocking sockets: readiness, connections with their buffers, and a container for them. All the brokers use this.

mod connection;
mod listener;
mod poll;
mod slab;
mod stream;

pub(crate) use connection::{Connection, Received};
pub(crate) use listener::{Accepted, Listener};
pub(crate) use poll::{Events, Poll, Ready};
pub(crate) use slab::{Key, Slab};
pub use stream::{ServerTls, TlsError};
