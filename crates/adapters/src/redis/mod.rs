//! Redis and Valkey at wire level: publish/subscribe, at most once, over RESP3. Streams with acknowledgements are another
//! protocol ([`crate::redis_streams`]), which begins in the same way.

pub(crate) mod opening;
mod session;

pub use session::Redis;

use crate::connection::StreamClients;

/// Clients that speak Redis publish/subscribe.
pub type RedisClients = StreamClients<Redis>;
