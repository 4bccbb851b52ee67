//! Counters of the built-in broker.

use serde::Serialize;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Connections accepted.
    pub connections: u64,
    /// Sessions accepted.
    pub sessions: u64,
    /// Clients refused with a CONNACK, and new tokens refused on open connections.
    pub refused: u64,
    /// Connections ended because the client violated the protocol.
    pub protocol_errors: u64,
    /// Connections ended because for one and a half keep-alive intervals nothing was received, or nothing was read by a client
    /// from which reading was paused; or because no CONNECT came in time.
    pub silent: u64,
    /// New tokens accepted on open connections.
    pub tokens_renewed: u64,
    /// Connections ended because their token had expired.
    pub tokens_expired: u64,
    /// Connections ended because another one took over the session.
    pub taken_over: u64,
    /// Messages received, without repetitions of QoS 2.
    pub messages_received: u64,
    /// Messages sent to subscribers, without repetitions.
    pub messages_sent: u64,
    /// Messages at QoS 0 dropped because too many bytes waited for the subscriber.
    pub dropped_queued_bytes: u64,
    /// Times that reading from a client was paused because too many bytes waited for it.
    pub reading_paused: u64,
    /// Messages at QoS 1 and 2 dropped because too many, or too many bytes, waited for the subscriber.
    pub dropped_queued_messages: u64,
    /// Messages dropped because the subscriber accepts no packets of their size.
    pub dropped_too_large: u64,
    /// Messages dropped because they expired before they could be sent.
    pub expired: u64,
    /// Retained messages not stored because there were too many topics, or too many bytes.
    pub dropped_retained: u64,
    /// Subscriptions refused because the client had too many.
    pub subscriptions_refused: u64,
    /// Times that no descriptor or memory was left for a new connection.
    pub descriptors_exhausted: u64,
}
