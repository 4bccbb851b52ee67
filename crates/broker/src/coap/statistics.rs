//! What a CoAP broker counted.

use serde::Serialize;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CoapStatistics {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams sent, repetitions included.
    pub datagrams_sent: u64,
    /// Datagrams that are no CoAP message.
    pub malformed: u64,
    /// Requests that came again and were answered as the first time.
    pub repeated_requests: u64,
    /// Requests refused.
    pub refused: u64,
    /// Publications taken.
    pub published: u64,
    /// Notifications sent, repetitions left out.
    pub notified: u64,
    /// Notifications and last blocks sent again.
    pub repeated: u64,
    /// Subscriptions made.
    pub subscribed: u64,
    /// Observers taken off because they rejected a notification.
    pub observers_rejecting: u64,
    /// Observers taken off because they answered nothing.
    pub observers_silent: u64,
    /// Publications dropped because too many waited for an observer, or because it was taken off.
    pub dropped_queued: u64,
    /// Publications dropped because an observer did not fetch all of their blocks.
    pub dropped_unfetched: u64,
    /// Payloads dropped because their blocks stopped coming.
    pub dropped_uploads: u64,
    /// Publications not kept because there were too many topics.
    pub not_kept: u64,
    /// Answers dropped because the socket was full; whoever waits asks again.
    pub dropped_answers: u64,
    /// Datagrams that the kernel could not deliver or refused to send.
    pub send_failures: u64,
    /// Datagrams that the kernel threw away because we did not read in time.
    pub dropped_by_kernel: u64,
}
