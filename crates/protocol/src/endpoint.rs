//! Address of a system.

use std::net::SocketAddr;
use std::path::PathBuf;

use pubmark_model::workload::Credentials;
use serde::{Deserialize, Serialize};

/// A system's address as an adapter needs it, names already resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// As the user wrote it, without the password; for messages and records.
    pub shown: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// Encrypt, and how to check the server.
    pub tls: Option<Tls>,
    /// Log-in for sessions that have none of their own.
    pub credentials: Option<Credentials>,
    /// Use a WebSocket.
    pub upgrade: Option<Upgrade>,
    /// Settings after the port, for protocols whose endpoints have some ([`crate::capabilities::Features::settings`]).
    pub settings: Option<Box<str>>,
}

/// The request that turns a connection into a WebSocket (RFC 6455 §4.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgrade {
    /// `Host`: name or address, and the port if it is not the scheme's default. Printable ASCII.
    pub host: String,
    /// The requested path, from `/` on. Printable ASCII.
    pub path: String,
    /// The subprotocol, by its registered name.
    pub subprotocol: String,
}

/// How a TLS connection is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// Name the server's certificate must carry.
    pub server_name: String,
    /// PEM file of the authorities trusted; `None` accepts any certificate (recorded as a deviation).
    pub authorities: Option<PathBuf>,
    /// The certificate for a server that requests one.
    pub identity: Option<Identity>,
}

/// A certificate of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// PEM file of the certificate, followed by its chain.
    pub certificate: PathBuf,
    /// PEM file of its key, not encrypted.
    pub key: PathBuf,
}
