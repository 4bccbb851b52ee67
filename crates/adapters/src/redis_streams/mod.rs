//! Redis Streams at wire level: messages stored in a list and acknowledged, over RESP3.

mod reading;
mod responses;
mod session;

pub use session::RedisStreams;

use crate::connection::StreamClients;

/// Clients for Redis Streams.
pub type RedisStreamsClients = StreamClients<RedisStreams>;
