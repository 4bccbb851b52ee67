//! How long a message that goes in blocks waits for pubmark between its first block and its last one.

use pubmark_protocol::events::Delivery;

/// pubmark's part in the time since the first block of a message was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockWait {
    /// Upper bound of it so far, ns.
    late_ns: u64,
    /// Since when the next write of a block may wait for pubmark, ns of `CLOCK_MONOTONIC`.
    since_ns: u64,
}

impl BlockWait {
    /// The first block is written at this time.
    pub(super) fn new(at_ns: u64) -> BlockWait {
        BlockWait { late_ns: 0, since_ns: at_ns }
    }

    /// The response to the block that was first sent at `block_at_ns` was read: what follows waits for pubmark since then.
    pub(super) fn note_response(&mut self, delivery: &Delivery<'_>, block_at_ns: u64) {
        self.late_ns = self.late_ns.saturating_add(delivery.late_ns(block_at_ns));
        self.since_ns = delivery.at_ns;
    }

    /// What waits is written at `at_ns`, or the socket is full then.
    pub(super) fn note_attempt(&mut self, at_ns: u64) {
        self.late_ns = self.late_ns.saturating_add(at_ns.saturating_sub(self.since_ns));
        self.since_ns = self.since_ns.max(at_ns);
    }

    /// The socket was full until this time.
    pub(super) fn note_full(&mut self, until_ns: u64) {
        self.since_ns = self.since_ns.max(until_ns);
    }

    /// A block without a response is sent again at `at_ns`, which was due at `due_ns`.
    pub(super) fn note_repetition(&mut self, due_ns: u64, at_ns: u64) {
        self.late_ns = self.late_ns.saturating_add(at_ns.saturating_sub(due_ns));
    }

    /// Upper bound of pubmark's part so far, ns.
    pub(super) fn late_ns(&self) -> u64 {
        self.late_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_from_the_arrival_of_a_response_to_the_next_block_is_pubmarks_and_a_full_socket_is_not() {
        let mut wait = BlockWait::new(1_000);
        let delivery =
            Delivery { at_ns: 5_000, empty_at_ns: Some(1_500), kernel_ns: Some(4_800), ..Delivery::default() };
        wait.note_response(&delivery, 1_000);
        wait.note_attempt(5_100);
        assert_eq!(wait.late_ns(), 200 + 100);
        wait.note_full(8_000);
        wait.note_attempt(8_050);
        assert_eq!(wait.late_ns(), 300 + 50, "full from 5,100 on");
        wait.note_response(&Delivery { at_ns: 9_000, kernel_ns: None, ..delivery }, 8_050);
        wait.note_attempt(9_000);
        assert_eq!(wait.late_ns(), 350 + 950, "it may have come at once");
    }
}
