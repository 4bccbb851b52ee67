//! ZeroMQ without a proxy: each subscriber listens at its endpoint, each device connects to every endpoint of its shard.
//!
//! Below are the sessions of [`super::ZeroMq`], one for each connection; here they are put together to those of the engine. What
//! a device sends is one message, whatever the number of subscribers that want it: docs/explanation/zeromq.md.

mod clients;
mod mapped;
mod publisher;
mod subscriber;

pub use clients::ZeroMqPeersClients;
