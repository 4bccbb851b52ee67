//! What a protocol's adapter implements, and what all adapters share.
//!
//! Start with [`clients::Clients`], the trait, and [`events::Sink`], where its events go. A wire-level adapter is
//! built from [`reactor`] (readiness and time), [`stream`] (TCP, TLS and WebSocket without blocking, with receive stamps) or
//! [`datagram`] (UDP),
//! [`outbox`] (messages on their way out) and [`wheel`] (keep-alive). The engine sees only the trait.

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
pub mod token;
pub mod traffic;
pub mod transform;
pub mod websocket;
pub mod wheel;
