//! What a broker counted.

use serde::Serialize;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Connections taken.
    pub connections: u64,
    /// Sessions accepted.
    pub sessions: u64,
    /// Clients turned away with a CONNACK.
    pub refused: u64,
    /// Connections ended because the client broke the protocol.
    pub protocol_errors: u64,
    /// Connections ended because nothing came for one and a half keep-alives.
    pub silent: u64,
    /// Connections ended because another one took the session over.
    pub taken_over: u64,
    /// Messages received, repetitions of QoS 2 left out.
    pub messages_received: u64,
    /// Messages put on their way to subscribers, repetitions left out.
    pub messages_sent: u64,
    /// Messages at QoS 0 dropped because too many bytes waited for the subscriber.
    pub dropped_queued_bytes: u64,
    /// Messages at QoS 1 and 2 dropped because too many waited for the subscriber.
    pub dropped_queued_messages: u64,
    /// Messages dropped because the subscriber takes no packets of their size.
    pub dropped_too_large: u64,
    /// Messages dropped because they expired before they could be sent.
    pub expired: u64,
    /// Retained messages not kept because there were too many topics.
    pub dropped_retained: u64,
    /// Times that no descriptor was left for a new connection.
    pub descriptors_exhausted: u64,
}
