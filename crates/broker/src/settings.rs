//! What a broker is told when it is started.

use std::net::SocketAddr;

use crate::net::ServerTls;

/// User name and password that every client must bring.
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
    /// Where to listen; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Encrypt every connection.
    pub tls: Option<ServerTls>,
    /// Turn away clients that do not bring it.
    pub login: Option<Login>,
    /// Largest packet taken, bytes; announced to 5.0 clients.
    pub maximum_packet_bytes: u32,
    /// Messages at QoS 2 that a client may have in flight towards us; announced to 5.0 clients.
    pub receive_maximum: u16,
    /// Messages at QoS 1 and 2 in flight towards a client at most; the client may allow fewer.
    pub in_flight_window: u16,
    /// Bytes waiting for one client's socket above which messages at QoS 0 for it are dropped.
    pub maximum_queued_bytes: usize,
    /// Messages at QoS 1 and 2 waiting for one client above which further ones are dropped.
    pub maximum_queued_messages: usize,
    /// Topics with a retained message above which further topics keep none.
    pub maximum_retained_topics: usize,
    /// Sessions (connected or kept) above which new clients are turned away.
    pub maximum_sessions: usize,
    /// Seconds that a connection may take until its CONNECT has come.
    pub connect_timeout_s: u16,
    /// Messages taken from all clients per second at most, for searches that must find a known capacity.
    pub most_messages_per_s: Option<f64>,
}

impl Settings {
    /// Settings with room for the built-in workloads.
    pub fn new(listen: SocketAddr) -> Settings {
        Settings {
            listen,
            tls: None,
            login: None,
            maximum_packet_bytes: 16 * 1024 * 1024,
            receive_maximum: 1_024,
            in_flight_window: 1_024,
            maximum_queued_bytes: 64 * 1024 * 1024,
            maximum_queued_messages: 1_000_000,
            maximum_retained_topics: 1_000_000,
            maximum_sessions: 1_000_000,
            connect_timeout_s: 10,
            most_messages_per_s: None,
        }
    }
}
