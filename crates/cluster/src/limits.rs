//! Times and sizes that limit how the two ends wait for each other.

use std::time::Duration;

/// Interval between a node's requests for the time, which are its heartbeats.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// Interval of the heartbeats of a node that has just joined. It is shorter, so that the drift of the node's clock is
/// known when a run starts.
pub const FIRST_HEARTBEATS: Duration = Duration::from_millis(100);
/// Time for which a node counts as having just joined.
pub const FIRST: Duration = Duration::from_secs(10);
/// A node without a message for this time is lost: four heartbeats.
pub const NODE_SILENCE: Duration = Duration::from_secs(2);
/// Additional time in which a message of a silent node is still accepted: this process itself may have been delayed.
pub const GRACE: Duration = Duration::from_millis(200);
/// A coordinator without a message for this time is lost.
pub const COORDINATOR_SILENCE: Duration = Duration::from_secs(3);
/// Longest wait for a TLS handshake, and for a node's first message.
pub const INTRODUCTION: Duration = Duration::from_secs(5);
/// Longest wait for a refused node to read the reason.
pub const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest text that the other end may send as a name, a version or a reason, bytes. Longer texts are cut off, or
/// refused.
pub const WORDS: usize = 256;
/// Longest wait of a node for a connection.
pub const CONNECT: Duration = Duration::from_secs(3);
/// Longest search for a coordinator by multicast: it responds within 120 ms (RFC 6762 §6), and a lost query is repeated
/// after 1 and 3 s (§5.2).
pub const SEARCH: Duration = Duration::from_secs(5);
/// Time between two attempts to join.
pub const RETRY: Duration = Duration::from_millis(500);
/// Time to send the last messages before a connection is closed.
pub const FAREWELL: Duration = Duration::from_millis(50);
/// Most ports in one request to a node: more than the subscribers that a run may have on a node.
pub const PORTS: usize = 1 << 14;
/// Longest wait for a node to start a worker, or to check its ports.
pub const BEGIN: Duration = Duration::from_secs(10);
/// Longest time for a worker to end after the request to end.
pub const WORKER_END: Duration = Duration::from_secs(1);
/// Time between two rows of counters while they are requested.
pub const ROWS: Duration = Duration::from_millis(100);
/// Number of time requests in a burst. Each is sent after the response to the previous one: the first one is slow
/// because both machines wake up.
pub const BURST: u32 = 100;
/// Number of time requests at each heartbeat.
pub const PAIR: u32 = 2;
/// Longest wait for a response before the next request of a burst.
pub const ANSWER: Duration = Duration::from_millis(20);

/// A text, cut off at [`WORDS`] bytes.
pub fn short(mut text: String) -> String {
    let end = (0..=WORDS.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}
