//! Redis and Valkey at wire level: publish/subscribe, at most once, over RESP3. Streams with acknowledgements are another
//! protocol.

mod session;

pub use session::Redis;

use crate::connection::StreamClients;

/// Clients that speak Redis publish/subscribe.
pub type RedisClients = StreamClients<Redis>;
