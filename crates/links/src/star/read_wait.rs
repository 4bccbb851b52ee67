//! How long packets wait in the queue of an interface until the emulator reads them.

/// Computes upper bounds of waits. A TUN interface gives no arrival time, but what a read finds came after the read or the poll that
/// found nothing. Of packets that came while the thread slept, only the wait from its wake-up on is known: how long it took to wake up
/// is not. All times are those of `clock::machine_ns`.
#[derive(Debug)]
pub struct ReadWait {
    /// By port.
    queues: Vec<Queue>,
    /// When the last poll looked, or the thread woke up from it, ns: a queue that it did not name was empty.
    polled_ns: u64,
    /// The same of the poll before: what the last one found in such a queue came later.
    since_ns: u64,
}

/// The queue of an interface.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    /// What is in it came later than this, ns.
    empty_ns: u64,
    /// When the last reads ended and may have left packets, ns; `None` if they found it empty. If they left some, the next poll that
    /// is not full names the queue.
    left_ns: Option<u64>,
}

impl ReadWait {
    /// Of this many interfaces, from `now_ns` on.
    pub fn new(ports: usize, now_ns: u64) -> ReadWait {
        ReadWait { queues: vec![Queue::default(); ports], polled_ns: now_ns, since_ns: now_ns }
    }

    /// A poll is done that began at `polled_ns`; if it found nothing and the thread slept, `woke_ns` is when that was over. If it is
    /// full, it may not have named all queues with packets.
    pub fn polled(&mut self, polled_ns: u64, woke_ns: Option<u64>, is_full: bool) {
        self.since_ns = woke_ns.unwrap_or(self.polled_ns);
        if woke_ns.is_some() || !is_full {
            self.polled_ns = woke_ns.unwrap_or(polled_ns);
        }
    }

    /// From when the wait of what is found now in the queue of this port counts, ns.
    pub fn since_ns(&self, port: usize) -> u64 {
        let Queue { empty_ns, left_ns } = self.queues[port];
        // A poll since then did not name it, otherwise it would have been read: the reads had left nothing.
        let has_more = left_ns.is_some_and(|left_ns| left_ns >= self.since_ns);
        if has_more { empty_ns } else { empty_ns.max(self.since_ns) }
    }

    /// A read of the port at `now_ns` found nothing.
    pub fn emptied(&mut self, port: usize, now_ns: u64) {
        self.queues[port] = Queue { empty_ns: now_ns, left_ns: None };
    }

    /// The reads of the port end at `now_ns` before one found nothing: what they left may have come as early as `since_ns`.
    pub fn left(&mut self, port: usize, since_ns: u64, now_ns: u64) {
        self.queues[port] = Queue { empty_ns: since_ns, left_ns: Some(now_ns) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_from_the_last_read_or_from_when_the_thread_woke_up() {
        let mut wait = ReadWait::new(2, 500);
        wait.polled(1_000, Some(5_000), false);
        assert_eq!(wait.since_ns(0), 5_000);
        wait.emptied(0, 5_020);
        // Both came while the thread was busy: port 0 after its last read, port 1 after the thread had woken up.
        wait.polled(5_100, None, false);
        assert_eq!([wait.since_ns(0), wait.since_ns(1)], [5_020, 5_000]);
        wait.emptied(0, 5_110);
        wait.emptied(1, 5_120);
        wait.polled(9_000, Some(90_000), false);
        assert_eq!([wait.since_ns(0), wait.since_ns(1)], [90_000, 90_000], "time asleep is no wait");
    }

    #[test]
    fn a_queue_that_a_poll_did_not_name_was_empty_then() {
        let mut wait = ReadWait::new(2, 500);
        for polled_ns in [3_000, 4_000, 5_000] {
            wait.polled(polled_ns, None, false);
            wait.emptied(0, polled_ns + 10);
        }
        wait.polled(6_000, None, false);
        assert_eq!(wait.since_ns(1), 5_000);
        wait.emptied(1, 6_150);
        // A full poll says nothing of those that it did not name.
        wait.polled(7_000, None, true);
        wait.polled(8_000, None, true);
        wait.polled(9_000, None, false);
        assert_eq!(wait.since_ns(1), 6_150);
    }

    #[test]
    fn packets_that_the_reads_left_have_waited_since_those() {
        let mut wait = ReadWait::new(1, 500);
        wait.polled(1_000, Some(2_000), false);
        wait.emptied(0, 2_500);
        for polled_ns in [3_000, 4_000] {
            wait.polled(polled_ns, None, false);
            assert_eq!(wait.since_ns(0), 2_500);
            wait.left(0, 2_500, polled_ns + 100);
        }
        wait.polled(5_000, None, false);
        assert_eq!(wait.since_ns(0), 2_500);
        wait.emptied(0, 5_600);
        wait.polled(6_000, None, false);
        assert_eq!(wait.since_ns(0), 5_600);
    }

    #[test]
    fn reads_that_end_with_the_last_packet_have_left_none() {
        let mut wait = ReadWait::new(2, 500);
        wait.polled(1_000, Some(2_000), false);
        wait.left(0, 2_000, 2_600);
        // The poll found nothing, and the thread slept.
        wait.polled(3_000, Some(90_000), false);
        assert_eq!(wait.since_ns(0), 90_000);
        wait.left(0, 90_000, 90_600);
        // The poll named the other port only.
        wait.polled(91_000, None, false);
        wait.emptied(1, 91_100);
        wait.polled(92_000, None, false);
        assert_eq!(wait.since_ns(0), 91_000);
        wait.left(0, 91_000, 92_600);
        // A full poll need not name it, although it has packets.
        wait.polled(93_000, None, true);
        wait.polled(94_000, None, false);
        assert_eq!(wait.since_ns(0), 91_000);
    }
}
