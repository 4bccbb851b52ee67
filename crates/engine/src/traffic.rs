//! What connection groups carry: their payloads, and the packets that these took.

use pubmark_protocol::traffic::Traffic;
use serde::{Deserialize, Serialize};

/// What a connection group's sessions carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTraffic {
    /// Messages that its sessions wrote wholly in the window, answers to requests among them.
    pub published: u64,
    /// Their payloads, bytes.
    pub published_bytes: u64,
    /// Messages that arrived at its sessions in the window, first copies and answers.
    pub delivered: u64,
    /// Their payloads, bytes.
    pub delivered_bytes: u64,
    /// Packets before the window: connects, subscriptions, warm-up. `None` where they are not known.
    pub set_up: Option<Traffic>,
    /// Packets in the window.
    pub window: Option<Traffic>,
}

impl Default for GroupTraffic {
    fn default() -> GroupTraffic {
        let none = Some(Traffic::default());
        GroupTraffic { published: 0, published_bytes: 0, delivered: 0, delivered_bytes: 0, set_up: none, window: none }
    }
}

impl GroupTraffic {
    /// Adds a shard's groups to those of others.
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
