//! The interface that the adapter of a protocol implements, and what all adapters share.
//!
//! Start with [`clients::Clients`], the trait, and [`events::Sink`], which receives its events. A wire-level adapter is built
//! from [`reactor`] (readiness and time), [`stream`] (non-blocking TCP, TLS and WebSocket, with receive timestamps) or
//! [`datagram`] (UDP), [`outbox`] (outgoing messages) and [`wheel`] (keep-alive). The engine uses only the trait.

pub mod any;
pub mod body;
pub mod capabilities;
pub mod client_certificate;
pub mod client_program;
pub mod clients;
pub mod clock;
pub mod congestion;
pub mod datagram;
pub mod endpoint;
pub mod epoll;
pub mod events;
pub mod header;
pub mod lag;
pub mod log_in;
pub mod network;
pub mod nkey;
pub mod outbox;
pub mod reactor;
pub mod receive;
pub mod requests;
pub mod run_clock;
pub mod sampling;
pub mod socket;
pub mod stream;
pub mod tickets;
pub mod timing;
pub mod tls;
mod tls_records;
pub mod token;
pub mod traffic;
pub mod transform;
pub mod websocket;
pub mod wheel;
