//! How long either end waits for the other.

use std::time::Duration;

/// Between two questions of a node for the time, which are its signs of life.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// The same while a node has just joined, so that its clock's drift is known when a run begins.
pub const FIRST_HEARTBEATS: Duration = Duration::from_millis(100);
/// How long a node counts as having just joined.
pub const FIRST: Duration = Duration::from_secs(10);
/// A node that was silent for so long is lost: four heartbeats.
pub const NODE_SILENCE: Duration = Duration::from_secs(2);
/// After its silence a node has so long to be heard after all: it may be this process that was late.
pub const GRACE: Duration = Duration::from_millis(200);
/// A coordinator that was silent for so long is gone.
pub const COORDINATOR_SILENCE: Duration = Duration::from_secs(3);
/// Longest wait for a TLS handshake, and for a node's first words.
pub const INTRODUCTION: Duration = Duration::from_secs(5);
/// Longest wait for who was refused to read why.
pub const LAST_WORDS: Duration = Duration::from_secs(1);
/// Longest text that the other end may give as a name, a version, a reason: characters beyond are cut off, or it is refused.
pub const WORDS: usize = 256;
/// Longest wait of a node for a connection.
pub const CONNECT: Duration = Duration::from_secs(3);
/// Longest search for a coordinator by multicast: it answers within 120 ms (RFC 6762 §6), and a lost question is asked again after 1
/// and 3 s (§5.2).
pub const SEARCH: Duration = Duration::from_secs(5);
/// Between two tries to join.
pub const RETRY: Duration = Duration::from_millis(500);
/// After the last words, for them to go out.
pub const FAREWELL: Duration = Duration::from_millis(50);
/// Ports that a node is asked about at once, at most: more than a run may have subscribers on a node.
pub const PORTS: usize = 1 << 14;
/// Longest wait for a node to start a worker, or to look at its ports.
pub const BEGIN: Duration = Duration::from_secs(10);
/// A worker that was told to end has so long to do it.
pub const WORKER_END: Duration = Duration::from_secs(1);
/// Between two rows of counters while they are watched.
pub const ROWS: Duration = Duration::from_millis(100);
/// Questions of a burst, each asked when the one before was answered: what wakes both machines up makes the first slow.
pub const BURST: u32 = 100;
/// The same at each heartbeat.
pub const PAIR: u32 = 2;
/// Longest wait for an answer before the next question of a burst.
pub const ANSWER: Duration = Duration::from_millis(20);

/// A text without what is beyond [`WORDS`].
pub fn short(mut text: String) -> String {
    let end = (0..=WORDS.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}
