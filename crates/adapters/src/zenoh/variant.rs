//! The ways Zenoh is used: through a router or between peers, and what happens to a message where a queue is full.

use ::zenoh::qos::CongestionControl;
use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};

use super::keys;

/// Largest message that the library accepts by default (`transport/link/rx/max_message_size`), less what surrounds a payload.
const MOST_PAYLOAD_BYTES: u32 = (1 << 30) - (1 << 16);

/// Most sessions of one run through routers: each is a session of the library's with buffers of its own.
const MOST_SESSIONS: u32 = 20_000;

/// Most sessions of one run between peers: each publisher has a link with each subscriber, and the library takes 1,000
/// (`transport/unicast/max_sessions`).
const MOST_PEERS: u32 = 900;

/// Sessions that open in a second at least: 10,000 with one filter, on two processors that the router shares. Each subscription is
/// declared to all sessions that are open, so that each takes longer than the one before.
const OPENS_PER_S: u32 = 25;

/// One way.
pub trait Variant: Send + 'static {
    /// Name on the command line.
    const NAME: &'static str;
    /// For people.
    const TITLE: &'static str;
    /// Schemes of its endpoints.
    const SCHEMES: &'static [&'static str];
    /// What its only level means. Zenoh acknowledges nothing from end to end, so none above it is offered.
    const MEANS: &'static str;
    /// What happens where a queue is full.
    const CONGESTION: CongestionControl;
    /// Sessions connect to each other instead of a router.
    const BETWEEN_PEERS: bool;
}

/// Clients of a router; what does not fit a queue is dropped, there or in the library, which is Zenoh's default.
pub enum Routed {}
/// Clients of a router; a put blocks until there is space in the queue, from hop to hop.
pub enum RoutedBlocking {}
/// Peers without a router; what does not fit a queue is dropped.
pub enum Peers {}
/// Peers without a router; a put blocks until there is space in the queue.
pub enum PeersBlocking {}

const DROPS: &str = "reliable transport, congestion control Drop: a message that does not fit into a queue is dropped";
const BLOCKS: &str = "reliable transport, congestion control Block: the sender waits for room, from hop to hop";

impl Variant for Routed {
    const NAME: &'static str = "zenoh";
    const TITLE: &'static str = "Zenoh 1 through a router, congestion control Drop";
    const SCHEMES: &'static [&'static str] = &["zenoh"];
    const MEANS: &'static str = DROPS;
    const CONGESTION: CongestionControl = CongestionControl::Drop;
    const BETWEEN_PEERS: bool = false;
}

impl Variant for RoutedBlocking {
    const NAME: &'static str = "zenoh-block";
    const TITLE: &'static str = "Zenoh 1 through a router, congestion control Block";
    const SCHEMES: &'static [&'static str] = &["zenoh"];
    const MEANS: &'static str = BLOCKS;
    const CONGESTION: CongestionControl = CongestionControl::Block;
    const BETWEEN_PEERS: bool = false;
}

impl Variant for Peers {
    const NAME: &'static str = "zenoh-peer";
    const TITLE: &'static str = "Zenoh 1 between peers, congestion control Drop";
    const SCHEMES: &'static [&'static str] = &["zenoh-peer"];
    const MEANS: &'static str = DROPS;
    const CONGESTION: CongestionControl = CongestionControl::Drop;
    const BETWEEN_PEERS: bool = true;
}

impl Variant for PeersBlocking {
    const NAME: &'static str = "zenoh-peer-block";
    const TITLE: &'static str = "Zenoh 1 between peers, congestion control Block";
    const SCHEMES: &'static [&'static str] = &["zenoh-peer"];
    const MEANS: &'static str = BLOCKS;
    const CONGESTION: CongestionControl = CongestionControl::Block;
    const BETWEEN_PEERS: bool = true;
}

/// What a way of using Zenoh can do.
pub const fn capabilities<V: Variant>() -> Capabilities {
    Capabilities {
        name: V::NAME,
        title: V::TITLE,
        schemes: V::SCHEMES,
        tls_schemes: &[],
        default_port: 7447,
        default_tls_port: 7447,
        levels: const { &[Level { qos: Qos::BestEffort, means: V::MEANS }] },
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features {
            requests: Some("get, to a complete queryable; the library knows which reply is to which get"),
            only_responders_receive_requests: true,
            brokerless: V::BETWEEN_PEERS,
            log_in: !V::BETWEEN_PEERS,
            maximum_sessions: Some(if V::BETWEEN_PEERS { MOST_PEERS } else { MOST_SESSIONS }),
            opens_per_s: Some(OPENS_PER_S),
            ..Features::NONE
        },
        sent_means: SentMeans::HandedOver,
        maximum_payload_bytes: MOST_PAYLOAD_BYTES,
        check_topic: Some(keys::check),
        filter_matches: None,
    }
}
