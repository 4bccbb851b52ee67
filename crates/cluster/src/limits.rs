//! How long either end waits for the other.

use std::time::Duration;

/// Interval between a node's requests for the time, which are its heartbeats.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// The same while a node has just joined, so that its clock's drift is known when a run begins.
pub const FIRST_HEARTBEATS: Duration = Duration::from_millis(100);
/// How long a node counts as having just joined.
pub const FIRST: Duration = Duration::from_secs(10);
/// A node without a message for this time is lost: four heartbeats.
pub const NODE_SILENCE: Duration = Duration::from_secs(2);
/// Further time in which a message of a silent node still counts: this process itself may have been late.
pub const GRACE: Duration = Duration::from_millis(200);
/// A coordinator without a message for this time is gone.
pub const COORDINATOR_SILENCE: Duration = Duration::from_secs(3);
/// Longest wait for a TLS handshake, and for a node's first message.
pub const INTRODUCTION: Duration = Duration::from_secs(5);
/// Longest wait for a refused node to read the reason.
pub const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest text that the other end may give as a name, a version, a reason: characters beyond are cut off, or it is refused.
pub const WORDS: usize = 256;
/// Longest wait of a node for a connection.
pub const CONNECT: Duration = Duration::from_secs(3);
/// Longest search for a coordinator by multicast: it answers within 120 ms (RFC 6762 §6), and a lost question is asked again after 1
/// and 3 s (§5.2).
pub const SEARCH: Duration = Duration::from_secs(5);
/// Between two tries to join.
pub const RETRY: Duration = Duration::from_millis(500);
/// Time for the last messages to be sent.
pub const FAREWELL: Duration = Duration::from_millis(50);
/// Ports in one request to a node, at most: more than a run may have subscribers on a node.
pub const PORTS: usize = 1 << 14;
/// Longest wait for a node to start a worker, or to check its ports.
pub const BEGIN: Duration = Duration::from_secs(10);
/// Longest time for a worker to end after the request to end.
pub const WORKER_END: Duration = Duration::from_secs(1);
/// Between two rows of counters while they are watched.
pub const ROWS: Duration = Duration::from_millis(100);
/// Time requests in a burst, each sent after the response to the one before: the first is slow because both machines wake up.
pub const BURST: u32 = 100;
/// The same at each heartbeat.
pub const PAIR: u32 = 2;
/// Longest wait for a response before the next request of a burst.
pub const ANSWER: Duration = Duration::from_millis(20);

/// A text without what is beyond [`WORDS`].
pub fn short(mut text: String) -> String {
    let end = (0..=WORDS.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}
