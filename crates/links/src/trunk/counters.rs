//! What one end of a trunk carried.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::direction::Tally;
use crate::lateness::{Lateness, SharedLateness};

/// Counters of one end. Packets and bytes are those of IP, without the trunk's own headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrunkCounters {
    /// Accepted by the machine's kernel.
    pub sent: Tally,
    /// Received, and passed on to the link of the group.
    pub received: Tally,
    /// Received before they were sent, by the run's clock; they are in `received` as well.
    pub negative: u64,
    /// Sent by another end and missing here: lost, or so far behind later ones that they were refused. No condition requires
    /// that: a run in which it happens is invalid. Those lost after the last one that came are not known.
    pub missing: u64,
    /// Not accepted by the machine's kernel. As for `missing`, this makes a run invalid.
    pub unsent: u64,
    /// The kernel's last error for one of these (`errno`); 0 without one.
    pub unsent_errno: i32,
    /// Datagrams of other senders, or that came twice or too late, or with a packet that the sender's group may not send here.
    pub refused: u64,
}

/// What is known of one end at one time.
#[derive(Clone, Debug)]
pub struct TrunkSnapshot {
    /// Its counters.
    pub counters: TrunkCounters,
    /// From the hand-over at the sender to the read by this end, by the run's clock: the network between the two, what
    /// both kernels need, and the error of both clocks. A negative time counts as 0 here, and in [`TrunkCounters::negative`].
    pub transit: Lateness,
}

/// Counters that one thread writes and any thread reads; each is right by itself.
#[derive(Debug)]
pub struct SharedTrunk {
    counters: [AtomicU64; 8],
    unsent_errno: AtomicI32,
    /// See [`TrunkSnapshot::transit`].
    pub transit: SharedLateness,
}

impl SharedTrunk {
    /// Of a new trunk.
    pub fn new() -> SharedTrunk {
        SharedTrunk { counters: Default::default(), unsent_errno: AtomicI32::new(0), transit: SharedLateness::new() }
    }

    /// Shows the counters.
    pub fn publish(&self, counters: &TrunkCounters) {
        let TrunkCounters { sent, received, negative, missing, unsent, unsent_errno, refused } = *counters;
        let values = [sent.packets, sent.bytes, received.packets, received.bytes, negative, missing, unsent, refused];
        self.counters.iter().zip(values).for_each(|(shared, value)| shared.store(value, Ordering::Relaxed));
        self.unsent_errno.store(unsent_errno, Ordering::Relaxed);
    }

    /// The counters as they were shown last.
    pub fn read(&self) -> TrunkSnapshot {
        let [sent, sent_bytes, received, received_bytes, negative, missing, unsent, refused] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|index: usize| self.counters[index].load(Ordering::Relaxed));
        let counters = TrunkCounters {
            sent: Tally { packets: sent, bytes: sent_bytes },
            received: Tally { packets: received, bytes: received_bytes },
            negative,
            missing,
            unsent,
            unsent_errno: self.unsent_errno.load(Ordering::Relaxed),
            refused,
        };
        TrunkSnapshot { counters, transit: self.transit.read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_they_were_shown() {
        let shared = SharedTrunk::new();
        let counters = TrunkCounters {
            sent: Tally { packets: 1, bytes: 2 },
            received: Tally { packets: 3, bytes: 4 },
            negative: 5,
            missing: 6,
            unsent: 7,
            unsent_errno: 8,
            refused: 9,
        };
        shared.publish(&counters);
        assert_eq!(shared.read().counters, counters);
    }
}
