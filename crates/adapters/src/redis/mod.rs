//! Redis and Valkey at wire level, over RESP3: publish/subscribe, at most once, and requests over lists. Streams with
//! acknowledgements are another protocol ([`crate::redis_streams`]), which begins in the same way.

mod clients;
mod framing;
mod lists;
mod mapped;
pub(crate) mod opening;
mod session;

pub use clients::{PairedClients, RedisClients, Waits};
