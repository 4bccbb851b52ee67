//! Settings of a CoAP broker.

use std::net::SocketAddr;

use pubmark_wire::coap::Times;

/// Settings of a [`super::CoapBroker`].
#[derive(Clone, Debug)]
pub struct CoapSettings {
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// The message layer's times.
    pub times: Times,
    /// Largest accepted payload, bytes; a larger one is refused with 4.13.
    pub maximum_payload_bytes: usize,
    /// Most bytes of incomplete payloads in blocks, of all clients; a further block is refused with 5.03.
    pub maximum_upload_bytes: usize,
    /// Most publications in the queue of one observer; further ones are dropped.
    pub maximum_queued_messages: usize,
    /// Most bytes in that queue; further publications are dropped.
    pub maximum_queued_bytes: usize,
    /// Most topics whose last publication is stored; that of further topics is not.
    pub maximum_topics: usize,
    /// Bytes of all these payloads above which no further ones are stored.
    pub maximum_kept_bytes: usize,
    /// Most clients (addresses); further ones are refused with 5.03.
    pub maximum_peers: usize,
    /// Most subscriptions of one client.
    pub maximum_observers: usize,
}

impl CoapSettings {
    /// Settings that are sufficient for the built-in workloads.
    pub fn new(listen: SocketAddr) -> CoapSettings {
        CoapSettings {
            listen,
            times: Times::STANDARD,
            maximum_payload_bytes: 16 << 20,
            maximum_upload_bytes: 256 << 20,
            maximum_queued_messages: 1_000_000,
            maximum_queued_bytes: 64 << 20,
            maximum_topics: 100_000,
            maximum_kept_bytes: 1 << 30,
            maximum_peers: 1_000_000,
            maximum_observers: 10_000,
        }
    }
}
