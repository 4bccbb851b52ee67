//! Sockets without blocking: readiness, connections with their buffers, and a place to keep them. Both brokers stand on this.

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
