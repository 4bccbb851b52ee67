//! ZeroMQ at wire level: PUB and SUB sockets over ZMTP 3.1, at most once. Start with [`ZeroMq`]; without a proxy, [`peers`].
//! Design: docs/explanation/zeromq.md.

mod chosen;
mod opening;
mod peer_subscriptions;
pub mod peers;
mod session;

pub use session::ZeroMq;

use crate::connection::StreamClients;

/// Clients for ZeroMQ's publish/subscribe.
pub type ZeroMqClients = StreamClients<ZeroMq>;
