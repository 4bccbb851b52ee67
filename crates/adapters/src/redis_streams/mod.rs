//! Redis Streams at wire level: messages stored in a list and acknowledged, over RESP3.

mod reading;
mod responses;
mod session;

pub(crate) use session::RedisStreams;

use crate::redis::PairedClients;

/// Clients for Redis Streams.
pub type RedisStreamsClients = PairedClients<RedisStreams>;
