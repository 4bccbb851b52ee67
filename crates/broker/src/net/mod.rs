//! Non-blocking sockets: readiness, connections with their buffers, and a container for them. All the brokers use this.

mod connection;
mod listener;
mod poll;
mod slab;
mod stream;
mod websocket;

pub(crate) use connection::{Connection, Received, TURN_BYTES};
pub(crate) use listener::{Accepted, Listener};
pub(crate) use poll::{Events, Poll, Ready};
pub(crate) use slab::{Key, Slab};
pub(crate) use stream::Stream;
pub use stream::{ServerTls, TlsError};
pub(crate) use websocket::WebSocket;
