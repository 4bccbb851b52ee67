//! The queue of an interface's outgoing side (a *qdisc*): how it fares.

use super::Netlink;
use super::message::{Message, find};
use crate::error::LinkError;

/// Parent of an interface's own queue (linux/pkt_sched.h: TC_H_ROOT).
pub const ROOT: u32 = u32::MAX;

/// In the statistics of a queue (linux/gen_stats.h: TCA_STATS_QUEUE, a `gnet_stats_queue`).
const OF_QUEUE: u16 = 3;

/// Length of `tcmsg`, which comes before the attributes.
const FIXED_PART: usize = 20;

/// What a queue has dropped and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Packets that wait now.
    pub waiting_packets: u64,
    /// Their bytes, with Ethernet's headers.
    pub waiting_bytes: u64,
    /// Packets dropped so far, for whichever reason.
    pub dropped_packets: u64,
}

/// `tcmsg` of an interface's own queue: family, index, handle, parent, info.
pub fn fixed_part(index: u32) -> [u8; FIXED_PART] {
    let mut part = [0; FIXED_PART];
    part[4..8].copy_from_slice(&index.to_ne_bytes());
    part[12..16].copy_from_slice(&ROOT.to_ne_bytes());
    part
}

impl QueueCounters {
    /// From `gnet_stats_queue`: qlen, backlog, drops, requeues, overlimits.
    fn from_answer(answer: &[u8]) -> Option<QueueCounters> {
        let statistics = find(answer.get(FIXED_PART..)?, libc::TCA_STATS2)?;
        let queue = find(statistics, OF_QUEUE)?;
        let number = |index: usize| -> Option<u64> {
            Some(u32::from_ne_bytes(queue.get(index * 4..index * 4 + 4)?.try_into().ok()?).into())
        };
        Some(QueueCounters { waiting_packets: number(0)?, waiting_bytes: number(1)?, dropped_packets: number(2)? })
    }
}

impl Netlink {
    /// The queue of interface `index` now.
    pub fn queue(&mut self, index: u32) -> Result<QueueCounters, LinkError> {
        let what = || format!("read the queue of interface {index}");
        // Without NLM_F_ECHO the kernel notifies listeners of the change, but not the sender of the request.
        let message = Message::new(libc::RTM_GETQDISC, libc::NLM_F_ECHO, &fixed_part(index));
        let answer = self.query(what, message)?;
        QueueCounters::from_answer(&answer)
            .ok_or_else(|| LinkError::refused(what(), std::io::ErrorKind::InvalidData.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_read_from_its_statistics() {
        let queue = [3u32, 300, 7, 1, 2].map(u32::to_ne_bytes).concat();
        let message = Message::new(libc::RTM_NEWQDISC, 0, &fixed_part(2)).attribute(libc::TCA_KIND, b"netem\0").nested(
            libc::TCA_STATS2,
            false,
            &[],
            |inside| inside.attribute(1, &[9; 16]).attribute(OF_QUEUE, &queue),
        );
        let bytes = message.finish(1);
        let expected = QueueCounters { waiting_packets: 3, waiting_bytes: 300, dropped_packets: 7 };
        assert_eq!(QueueCounters::from_answer(&bytes[16..]), Some(expected));
        for length in 0..bytes.len() - 16 {
            assert_eq!(QueueCounters::from_answer(&bytes[16..16 + length]), None, "cut at {length}");
        }
    }
}
