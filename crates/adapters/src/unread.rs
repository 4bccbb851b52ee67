//! The time in which a connection had bytes that were not read yet.
//!
//! Meanwhile the system may have been unable to send what it had: TCP sends no more than its congestion window and the
//! receiver's window before an acknowledgement, nothing small with Nagle's algorithm (RFC 9293 §3.7.4), and a server sends no
//! more messages than its in-flight window. What it held back arrives after the late read, without having waited in our socket.

use pubmark_protocol::events::Unread;

/// A read with fewer packets and fewer bytes than these leaves every window open: TCP's first window is ten segments (RFC
/// 6928), half of its first receive window is 32 KiB, and no server known to us has an in-flight window below ten.
const WINDOW_PACKETS: u32 = 8;
pub(crate) const WINDOW_BYTES: usize = 32 * 1024;
/// What waited longer than this in the socket is acknowledged at once, as it would have been if it had been read at once.
const LATE_NS: u64 = 100_000;

/// The unread time of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnreadTime {
    last: Unread,
    /// The last read may not have released all that was held back: its time is added to that of the next one.
    goes_on: bool,
    /// The read that is being handled has a part of what the peer has, and the next part waits for our request.
    is_part: bool,
    /// The last read had such a part.
    was_part: bool,
    /// The peer is on this machine: what an acknowledgement releases is in our socket before the call that sent it returns.
    is_loopback: bool,
}

/// A read of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// A time at which none of it had arrived, ns of `CLOCK_MONOTONIC`.
    pub absent_at_ns: u64,
    /// Time after it.
    pub at_ns: u64,
    /// Packets of the protocol that ended in it, those of one message counted as one.
    pub packets: u32,
    /// Bytes taken from the socket.
    pub bytes: usize,
}

impl Read {
    fn may_have_filled_a_window(&self) -> bool {
        self.packets >= WINDOW_PACKETS || self.bytes >= WINDOW_BYTES
    }

    /// The acknowledgement of this read may release something, so it is sent at once, and the socket is read again.
    pub(crate) fn may_release(&self) -> bool {
        self.at_ns.saturating_sub(self.absent_at_ns) > LATE_NS || self.may_have_filled_a_window()
    }
}

impl UnreadTime {
    /// Of a new connection.
    pub(crate) fn new(is_loopback: bool) -> UnreadTime {
        UnreadTime { is_loopback, ..UnreadTime::default() }
    }

    /// The time in which what arrives next may have been held back.
    pub(crate) fn last(&self) -> Unread {
        self.last
    }

    /// Bytes were read, and acknowledged at `acknowledged_ns`.
    pub(crate) fn note_read(&mut self, read: &Read, acknowledged_ns: u64) {
        let before = if self.goes_on || self.was_part { self.last } else { Unread::default() };
        // The times without anything unread, between the reads, do not count.
        let since_ns = acknowledged_ns.saturating_sub(read.absent_at_ns.max(before.to_ns));
        let from_ns = acknowledged_ns.saturating_sub(since_ns + (before.to_ns - before.from_ns));
        self.last = Unread { from_ns, to_ns: acknowledged_ns };
        self.was_part = std::mem::take(&mut self.is_part);
        self.goes_on = read.may_have_filled_a_window();
    }

    /// The read that is being handled has a part of what the peer has, and the next part is requested.
    #[cfg(any(feature = "coap", feature = "redis"))]
    pub(crate) fn note_part(&mut self) {
        self.is_part = true;
    }

    /// The protocol's acknowledgements of what was read last were written.
    pub(crate) fn note_written(&mut self, at_ns: u64) {
        self.last.to_ns = self.last.to_ns.max(at_ns);
    }

    /// The socket was empty after an acknowledgement.
    pub(crate) fn note_nothing(&mut self) {
        self.goes_on &= !self.is_loopback;
    }

    /// The subscriber was done: the time in which it processed a message is not the generator's.
    pub(crate) fn note_resumed(&mut self) {
        self.goes_on = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Read = Read { absent_at_ns: 1_000, at_ns: 51_000, packets: 1, bytes: 100 };
    const FULL: Read = Read { packets: WINDOW_PACKETS, ..SMALL };

    fn later(read: Read, by_ns: u64) -> Read {
        Read { absent_at_ns: read.absent_at_ns + by_ns, at_ns: read.at_ns + by_ns, ..read }
    }

    #[test]
    fn a_read_that_may_have_filled_a_window_is_continued_by_the_next_one() {
        let mut time = UnreadTime::new(true);
        for (reads, read) in (1..).zip([FULL, later(FULL, 60_000), later(SMALL, 120_000)]) {
            time.note_read(&read, read.at_ns);
            // 50 µs each; the 10 µs between them are not counted.
            assert_eq!(time.last(), Unread { from_ns: read.at_ns - reads * 50_000, to_ns: read.at_ns }, "{reads}");
        }
        let last = later(SMALL, 180_000);
        time.note_read(&last, last.at_ns);
        assert_eq!(time.last(), Unread { from_ns: last.absent_at_ns, to_ns: last.at_ns }, "the one before was small");
    }

    #[test]
    fn an_empty_socket_after_the_acknowledgement_ends_it_only_where_nothing_is_under_way() {
        for (is_loopback, from_ns) in [(true, 61_000), (false, 11_000)] {
            let mut time = UnreadTime::new(is_loopback);
            time.note_read(&FULL, FULL.at_ns);
            time.note_nothing();
            let next = later(FULL, 60_000);
            time.note_read(&next, next.at_ns);
            assert_eq!(time.last().from_ns, from_ns);
        }
    }

    #[cfg(any(feature = "coap", feature = "redis"))]
    #[test]
    fn the_reads_of_parts_count_together_though_the_socket_is_empty_between_them() {
        let mut time = UnreadTime::new(true);
        for read in [SMALL, later(SMALL, 5_000_000)] {
            time.note_part();
            time.note_read(&read, read.at_ns);
            time.note_nothing();
        }
        assert_eq!(time.last(), Unread { from_ns: 4_951_000, to_ns: 5_051_000 });
        for (by_ns, from_ns) in [(10_000_000, 9_901_000), (20_000_000, 20_001_000)] {
            let read = later(SMALL, by_ns);
            time.note_read(&read, read.at_ns);
            time.note_nothing();
            assert_eq!(time.last().from_ns, from_ns, "{by_ns}");
        }
    }

    #[test]
    fn reads_that_overlap_are_not_counted_twice() {
        let mut time = UnreadTime::new(true);
        time.note_read(&FULL, FULL.at_ns);
        let next = later(FULL, 20_000);
        time.note_read(&next, next.at_ns);
        assert_eq!(time.last(), Unread { from_ns: 1_000, to_ns: 71_000 });
    }

    #[test]
    fn the_time_lasts_until_the_acknowledgements_are_written() {
        let mut time = UnreadTime::new(true);
        time.note_read(&SMALL, 52_000);
        assert_eq!(time.last().to_ns, 52_000);
        time.note_written(60_000);
        assert_eq!(time.last().to_ns, 60_000);
    }

    #[test]
    fn a_late_read_and_one_of_many_packets_may_release_something() {
        assert!(!SMALL.may_release());
        assert!(FULL.may_release());
        assert!(Read { bytes: WINDOW_BYTES, ..SMALL }.may_release());
        assert!(Read { at_ns: SMALL.absent_at_ns + LATE_NS + 1, ..SMALL }.may_release());
    }
}
