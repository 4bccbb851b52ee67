//! Counters of a CoAP broker.

use serde::Serialize;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CoapStatistics {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams sent, retransmissions included.
    pub datagrams_sent: u64,
    /// Datagrams that are not a CoAP message.
    pub malformed: u64,
    /// Repeated requests, which got the same response as the first time.
    pub repeated_requests: u64,
    /// Requests refused.
    pub refused: u64,
    /// Publications accepted.
    pub published: u64,
    /// Notifications sent, without retransmissions.
    pub notified: u64,
    /// Notifications and last blocks that were retransmitted.
    pub repeated: u64,
    /// Subscriptions accepted.
    pub subscribed: u64,
    /// Observers removed because they rejected a notification.
    pub observers_rejecting: u64,
    /// Observers removed because they did not respond.
    pub observers_silent: u64,
    /// Publications dropped because an observer's queue was full, or because the observer was removed.
    pub dropped_queued: u64,
    /// Publications dropped because an observer did not fetch all of their blocks.
    pub dropped_unfetched: u64,
    /// Payloads dropped because their next block did not arrive in time.
    pub dropped_uploads: u64,
    /// Publications not stored because there were too many topics, or too many bytes.
    pub not_kept: u64,
    /// Responses dropped because the socket would block; the client repeats its request.
    pub dropped_answers: u64,
    /// Datagrams that the kernel could not deliver or refused to send.
    pub send_failures: u64,
    /// Datagrams that the kernel dropped because the broker did not read in time.
    pub dropped_by_kernel: u64,
}
