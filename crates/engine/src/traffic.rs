//! Traffic of connection groups: payloads, and the packets that carried them.

use pubmark_protocol::traffic::Traffic;
use serde::{Deserialize, Serialize};

/// Traffic of a connection group's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTraffic {
    /// Messages that its sessions wrote completely in the window, including replies to requests, without withheld ones.
    pub published: u64,
    /// Payloads of these messages, bytes.
    pub published_bytes: u64,
    /// Messages that arrived at its sessions in the window: first copies and replies.
    pub delivered: u64,
    /// Payloads of these messages, bytes.
    pub delivered_bytes: u64,
    /// Packets before the window: connects, subscriptions, warm-up. `None` if they are unknown.
    pub set_up: Option<Traffic>,
    /// Packets in the window; `None` if they are unknown.
    pub window: Option<Traffic>,
}

impl Default for GroupTraffic {
    fn default() -> GroupTraffic {
        let none = Some(Traffic::default());
        GroupTraffic { published: 0, published_bytes: 0, delivered: 0, delivered_bytes: 0, set_up: none, window: none }
    }
}

impl GroupTraffic {
    /// Adds the groups of a shard to those of others.
    pub fn merge(all: &mut Vec<GroupTraffic>, others: &[GroupTraffic]) {
        all.resize(all.len().max(others.len()), GroupTraffic::default());
        for (mine, other) in all.iter_mut().zip(others) {
            mine.published += other.published;
            mine.published_bytes += other.published_bytes;
            mine.delivered += other.delivered;
            mine.delivered_bytes += other.delivered_bytes;
            mine.set_up = sum(mine.set_up, other.set_up);
            mine.window = sum(mine.window, other.window);
        }
    }
}

/// The sum, if both are known.
pub(crate) fn sum(one: Option<Traffic>, other: Option<Traffic>) -> Option<Traffic> {
    let mut sum = one?;
    sum.add(&other?);
    Some(sum)
}
