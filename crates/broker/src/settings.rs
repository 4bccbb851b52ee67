//! Settings of the built-in broker.

use std::net::SocketAddr;

use crate::net::ServerTls;
use crate::tokens::TokenKey;

/// User name and password that every client must send.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// User name.
    pub user: String,
    /// Password.
    pub password: Vec<u8>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Settings of a [`crate::Broker`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Encrypt every connection.
    pub tls: Option<ServerTls>,
    /// Refuse clients that do not send it.
    pub login: Option<Login>,
    /// Refuse clients without a token of this key, unless they send the `login`: as the data of the authentication method
    /// [`TOKEN_METHOD`](crate::TOKEN_METHOD), or as a password. A connection ends when its token expires.
    pub tokens: Option<TokenKey>,
    /// Largest accepted packet, bytes; announced to 5.0 clients.
    pub maximum_packet_bytes: u32,
    /// Most messages at QoS 2 that a client may have in flight towards the broker; announced to 5.0 clients.
    pub receive_maximum: u16,
    /// Most messages at QoS 1 and 2 in flight towards a client; the client may allow fewer.
    pub in_flight_window: u16,
    /// Bytes waiting for one client's socket above which messages at QoS 0 for it are dropped, and nothing is read from it:
    /// its packets would need further responses. Also bytes of its messages at QoS 1 and 2, queued or not acknowledged, above
    /// which further ones are dropped, connected or not.
    pub maximum_queued_bytes: usize,
    /// Messages at QoS 1 and 2 waiting for one client above which further ones are dropped.
    pub maximum_queued_messages: usize,
    /// Most subscriptions of one client; further ones are refused.
    pub maximum_subscriptions: usize,
    /// Most topics with a retained message; that of further topics is not stored.
    pub maximum_retained_topics: usize,
    /// Bytes of all retained messages above which no further ones are stored.
    pub maximum_retained_bytes: usize,
    /// Most sessions (connected or persistent); further clients are refused.
    pub maximum_sessions: usize,
    /// Seconds that a connection may take until its CONNECT has arrived.
    pub connect_timeout_s: u16,
    /// Most messages accepted from all clients per second, for searches that must find a known capacity.
    pub most_messages_per_s: Option<f64>,
}

impl Settings {
    /// Settings that are sufficient for the built-in workloads.
    pub fn new(listen: SocketAddr) -> Settings {
        Settings {
            listen,
            tls: None,
            login: None,
            tokens: None,
            maximum_packet_bytes: 16 * 1024 * 1024,
            receive_maximum: 1_024,
            in_flight_window: 1_024,
            maximum_queued_bytes: 64 * 1024 * 1024,
            maximum_queued_messages: 1_000_000,
            maximum_subscriptions: 100_000,
            maximum_retained_topics: 1_000_000,
            maximum_retained_bytes: 1 << 30,
            maximum_sessions: 1_000_000,
            connect_timeout_s: 10,
            most_messages_per_s: None,
        }
    }
}
