//! What a CoAP broker is told when it is started.

use std::net::SocketAddr;

use pubmark_wire::coap::Times;

/// Settings of a [`super::CoapBroker`].
#[derive(Clone, Debug)]
pub struct CoapSettings {
    /// Where to listen; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// The message layer's times.
    pub times: Times,
    /// Largest payload taken, bytes; a larger one is refused with 4.13.
    pub maximum_payload_bytes: usize,
    /// Bytes of payloads that are coming in blocks, of all clients; a further one is refused with 5.03.
    pub maximum_upload_bytes: usize,
    /// Publications waiting for one observer above which further ones are dropped.
    pub maximum_queued_messages: usize,
    /// Bytes of them above which further ones are dropped.
    pub maximum_queued_bytes: usize,
    /// Topics that keep their last publication; further ones keep none.
    pub maximum_topics: usize,
    /// Clients (addresses) that are remembered; further ones are refused with 5.03.
    pub maximum_peers: usize,
    /// Subscriptions of one client.
    pub maximum_observers: usize,
}

impl CoapSettings {
    /// Settings with room for the built-in workloads.
    pub fn new(listen: SocketAddr) -> CoapSettings {
        CoapSettings {
            listen,
            times: Times::STANDARD,
            maximum_payload_bytes: 16 << 20,
            maximum_upload_bytes: 256 << 20,
            maximum_queued_messages: 1_000_000,
            maximum_queued_bytes: 64 << 20,
            maximum_topics: 100_000,
            maximum_peers: 1_000_000,
            maximum_observers: 10_000,
        }
    }
}
