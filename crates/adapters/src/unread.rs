//! The times in which a connection had bytes that were not read yet.
//!
//! Meanwhile the system may have been unable to send what it had: TCP sends no more than its congestion window and the
//! receiver's window before an acknowledgement, nothing small with Nagle's algorithm (RFC 9293 §3.7.4), and a server sends no
//! more messages than its in-flight window. What it held back arrives after the late read, without having waited in our socket.
//!
//! What one acknowledgement releases may come in several reads, and hold back more until those are acknowledged. So the sum
//! counts: of each time that is kept here, the part between the write of a message and its arrival. Compare the connection with
//! one that is read at once. While no byte is unread, the generator does not prevent the system from sending, and both connections
//! make the same progress; while bytes are unread, this one may make none. So a message is later than on the other connection by no
//! more than that sum. A message that was sent after a time has no part of it, so that nothing has to be forgotten.

use pubmark_protocol::events::Unread;

/// A read with fewer packets and fewer bytes than these leaves every window open: TCP's first window is ten segments (RFC
/// 6928), half of its first receive window is 32 KiB, and no server known to us has an in-flight window below ten, but for the blocks
/// of CoAP, which are parts.
const WINDOW_PACKETS: u32 = 8;
pub(crate) const WINDOW_BYTES: usize = 32 * 1024;
/// What waited longer than this in the socket is acknowledged at once, as it would have been if it had been read at once.
const LATE_NS: u64 = 100_000;
/// A thread that reads so late was stopped, or had no processor. Its time is kept however little it read: few messages may have been
/// on their way, and many held back behind them. Shorter times are not kept: a read of several packets has no stamp, so its time
/// begins with the read before, and those of a reader in time would be nearly all the time.
const STOPPED_NS: u64 = 5_000_000;
/// Times that are stored for a connection.
const MOST_TIMES: usize = 8;

/// The unread times of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnreadTimes {
    /// In their order; they do not overlap. The newest is that of the last read.
    times: [Unread; MOST_TIMES],
    count: usize,
    /// The last read may not have released all that was held back.
    goes_on: bool,
    /// Its time is kept then, for all that was sent before its end. Otherwise it is added to that of the next read.
    is_kept: bool,
    /// It, or one that awaits the same responses, was read by a thread that was stopped.
    was_stopped: bool,
    /// The protocol's responses to it are to be written next.
    has_responses: bool,
    /// The read that is being handled has a part of what the peer has, and the next part waits for our request.
    is_part: bool,
    /// The peer is on this machine: what TCP's acknowledgement releases is in our socket before the call that sent it returns.
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
    /// The protocol's responses to it are to be written next.
    pub has_responses: bool,
}

impl Read {
    fn may_have_filled_a_window(&self) -> bool {
        self.packets >= WINDOW_PACKETS || self.bytes >= WINDOW_BYTES
    }

    fn late_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.absent_at_ns)
    }

    /// The acknowledgement of this read may release something, so it is sent at once, and the socket is read again.
    pub(crate) fn may_release(&self) -> bool {
        self.late_ns() > LATE_NS || self.may_have_filled_a_window()
    }
}

impl UnreadTimes {
    /// Of a new connection.
    pub(crate) fn new(is_loopback: bool) -> UnreadTimes {
        UnreadTimes { is_loopback, ..UnreadTimes::default() }
    }

    /// The times in which what arrives next may have been held back.
    pub(crate) fn all(&self) -> &[Unread] {
        &self.times[..self.count]
    }

    /// Bytes were read, and acknowledged at `acknowledged_ns`.
    pub(crate) fn note_read(&mut self, read: &Read, acknowledged_ns: u64) {
        let last = self.all().last().copied().unwrap_or_default();
        let was_stopped = acknowledged_ns.saturating_sub(read.absent_at_ns) > STOPPED_NS;
        // Until its responses are written, all that the last read had is unacknowledged.
        let last_to_ns = if self.has_responses { last.to_ns.max(read.absent_at_ns) } else { last.to_ns };
        let is_added = self.has_responses || (self.goes_on && !self.is_kept);
        let before_ns = if is_added { last_to_ns - last.from_ns } else { 0 };
        if is_added || !self.goes_on {
            self.count = self.count.saturating_sub(1);
        }
        // The times without anything unread, between the reads, do not count, and what is stored already does not count twice. What
        // came before the last read was acknowledged does count: that acknowledgement was not for it.
        let stored_to_ns = if is_added { last_to_ns } else { self.all().last().map_or(0, |stored| stored.to_ns) };
        let since_ns = acknowledged_ns.saturating_sub(read.absent_at_ns.max(stored_to_ns));
        self.push(Unread { from_ns: acknowledged_ns.saturating_sub(since_ns + before_ns), to_ns: acknowledged_ns });
        let is_part = std::mem::take(&mut self.is_part);
        // The same responses are to both reads: a server may be told once of all that arrived.
        self.has_responses |= read.has_responses;
        let is_one = is_added && self.has_responses;
        // A server on this machine that had more than the sockets hold passes it on after the socket was found empty.
        let had_more = was_stopped && (!self.is_loopback || read.bytes >= WINDOW_BYTES);
        self.was_stopped = (is_one && self.was_stopped) || was_stopped;
        self.is_kept = (is_one && self.is_kept) || is_part || had_more;
        self.goes_on = (is_one && self.goes_on) || is_part || was_stopped || read.may_have_filled_a_window();
    }

    /// The read that is being handled has a part of what the peer has, and the next part is requested.
    #[cfg(any(feature = "coap", feature = "redis"))]
    pub(crate) fn note_part(&mut self) {
        self.is_part = true;
    }

    /// The protocol's responses to what was read last were written, the last of them at `at_ns`, or the socket takes no more, which is
    /// the system's time. What they release is still to come, wherever the peer is.
    pub(crate) fn note_written(&mut self, at_ns: u64) {
        if std::mem::take(&mut self.has_responses)
            && let Some(last) = self.times[..self.count].last_mut()
        {
            if at_ns.saturating_sub(last.to_ns) > STOPPED_NS {
                (self.was_stopped, self.goes_on) = (true, true);
            }
            last.to_ns = last.to_ns.max(at_ns);
            self.is_kept |= self.was_stopped;
        }
    }

    /// The socket was empty after TCP's acknowledgement. What the responses of a thread that was stopped release is still to come.
    pub(crate) fn note_nothing(&mut self) {
        let is_awaited = self.has_responses && self.was_stopped;
        if self.is_loopback && !self.is_kept && !is_awaited {
            self.goes_on = false;
        }
    }

    fn push(&mut self, time: Unread) {
        if self.count == MOST_TIMES {
            self.merge_two(time.to_ns);
        }
        self.times[self.count] = time;
        self.count += 1;
    }

    /// Makes one of two that follow each other: the earlier one is moved up to the later one, so that for no message the sum becomes
    /// smaller. It becomes larger for those that were sent between their begin and their end. So the two are chosen for which
    /// that is the smallest part of the time since: of their latency.
    fn merge_two(&mut self, now_ns: u64) {
        let share = |index: &usize| {
            let (from_ns, to_ns) = (self.times[*index].from_ns, self.times[index + 1].to_ns);
            to_ns.saturating_sub(from_ns) as f64 / now_ns.saturating_sub(to_ns).max(1) as f64
        };
        let pairs = 0..self.count - 1;
        let Some(index) = pairs.min_by(|one, other| share(one).total_cmp(&share(other))) else { return };
        let earlier = self.times[index];
        let later = &mut self.times[index + 1];
        later.from_ns = later.from_ns.saturating_sub(earlier.to_ns.saturating_sub(earlier.from_ns));
        self.times.copy_within(index + 1..self.count, index);
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Read = Read { absent_at_ns: 1_000, at_ns: 51_000, packets: 1, bytes: 100, has_responses: false };
    const FULL: Read = Read { packets: WINDOW_PACKETS, ..SMALL };
    const STOPPED: Read = Read { at_ns: 20_001_000, ..SMALL };

    fn later(read: Read, by_ns: u64) -> Read {
        Read { absent_at_ns: read.absent_at_ns + by_ns, at_ns: read.at_ns + by_ns, ..read }
    }

    /// All of it that counts for a message that was sent then, ns.
    fn after_ns(times: &UnreadTimes, sent_ns: u64) -> u64 {
        Unread::all_between_ns(times.all(), sent_ns, u64::MAX)
    }

    /// A read with responses, which are written 10 µs after it; before and behind it nothing is in the socket.
    fn note_responded(times: &mut UnreadTimes, read: &Read) {
        times.note_nothing();
        times.note_read(&Read { has_responses: true, ..*read }, read.at_ns);
        times.note_nothing();
        times.note_written(read.at_ns + 10_000);
        times.note_nothing();
    }

    #[test]
    fn a_late_read_counts_for_what_was_sent_before_it_however_small_the_reads_behind_it_are() {
        for (is_loopback, packets) in [(true, 20), (false, 20), (true, 1), (false, 1)] {
            let mut times = UnreadTimes::new(is_loopback);
            note_responded(&mut times, &Read { packets, ..STOPPED });
            for round in 0..5_u64 {
                assert_eq!(
                    after_ns(&times, 0),
                    20_010_000 + round.min(1) * 60_000,
                    "{is_loopback}, {packets}: {round}"
                );
                assert_eq!(after_ns(&times, 10_001_000), 10_010_000 + round.min(1) * 60_000);
                let read = later(SMALL, 21_000_000 + round * 1_000_000);
                note_responded(&mut times, &read);
                assert_eq!(after_ns(&times, read.absent_at_ns), 60_000, "sent after it");
            }
        }
    }

    #[test]
    fn what_arrives_while_a_read_is_handled_counts_from_its_arrival() {
        let mut times = UnreadTimes::new(true);
        times.note_read(&SMALL, SMALL.at_ns + 300_000);
        let read = later(SMALL, SMALL.at_ns + 20_000);
        times.note_read(&read, SMALL.at_ns + 310_000);
        assert_eq!(times.all(), [Unread { from_ns: read.absent_at_ns, to_ns: SMALL.at_ns + 310_000 }]);
    }

    #[test]
    fn the_rounds_of_a_thread_that_is_stopped_in_each_count_together() {
        let mut times = UnreadTimes::new(true);
        for round in 0..5 {
            note_responded(&mut times, &later(STOPPED, round * 50_000_000));
        }
        assert_eq!([0, 125_000_000].map(|sent_ns| after_ns(&times, sent_ns)), [100_050_000, 40_020_000]);
    }

    #[test]
    fn the_rounds_of_a_reader_in_time_count_alone_however_much_it_reads() {
        let mut times = UnreadTimes::new(true);
        for round in 1..50 {
            // It waited for 1 ms: where in that time the messages arrived is not known.
            let read = later(FULL, round * 1_000_000);
            note_responded(&mut times, &Read { absent_at_ns: read.at_ns - 1_000_000, ..read });
            assert!((1_000_000..=1_010_000).contains(&after_ns(&times, 0)), "{round}: {:?}", times.all());
        }
    }

    #[test]
    fn a_stop_before_the_responses_are_written_counts_in_every_round() {
        let mut times = UnreadTimes::new(true);
        times.note_read(&Read { has_responses: true, ..FULL }, FULL.at_ns);
        times.note_nothing();
        times.note_written(FULL.at_ns + 40_000_000);
        for round in 1..4 {
            note_responded(&mut times, &later(SMALL, 40_000_000 + round * 1_000_000));
            assert_eq!(after_ns(&times, 0), 40_050_000 + 60_000, "{round}");
        }
    }

    #[test]
    fn a_stop_with_more_than_the_sockets_hold_counts_for_what_follows_without_responses() {
        let mut times = UnreadTimes::new(true);
        times.note_read(&Read { packets: 1_000, bytes: 3_000_000, ..STOPPED }, STOPPED.at_ns);
        times.note_nothing();
        let next = later(SMALL, 30_000_000);
        times.note_read(&next, next.at_ns);
        assert_eq!(after_ns(&times, 0), 20_050_000);
    }

    #[test]
    fn responses_to_several_reads_keep_the_time_of_all() {
        let mut times = UnreadTimes::new(false);
        times.note_read(&FULL, FULL.at_ns);
        note_responded(&mut times, &later(SMALL, 60_000));
        let next = later(SMALL, 1_000_000);
        times.note_read(&next, next.at_ns);
        // The 10 µs between the reads are not counted.
        assert_eq!(after_ns(&times, 0), 50_000 + 60_000 + 50_000);
    }

    #[test]
    fn a_read_that_may_have_filled_tcps_window_is_continued_by_the_next_one() {
        let mut times = UnreadTimes::new(true);
        for (reads, read) in (1..).zip([FULL, later(FULL, 60_000), later(SMALL, 120_000)]) {
            times.note_read(&read, read.at_ns);
            // 50 µs each; the 10 µs between them are not counted.
            assert_eq!(times.all(), [Unread { from_ns: read.at_ns - reads * 50_000, to_ns: read.at_ns }], "{reads}");
        }
        let last = later(SMALL, 180_000);
        times.note_read(&last, last.at_ns);
        assert_eq!(times.all(), [Unread { from_ns: last.absent_at_ns, to_ns: last.at_ns }], "the one before was small");
    }

    #[test]
    fn an_empty_socket_after_tcps_acknowledgement_ends_it_only_where_nothing_is_under_way() {
        for (read, is_loopback, before_ns) in
            [(FULL, true, 0), (FULL, false, 50_000), (STOPPED, true, 0), (STOPPED, false, 20_000_000)]
        {
            let mut times = UnreadTimes::new(is_loopback);
            times.note_read(&read, read.at_ns);
            times.note_nothing();
            let next = later(SMALL, 30_000_000);
            times.note_read(&next, next.at_ns);
            assert_eq!(after_ns(&times, 0), before_ns + 50_000);
        }
    }

    #[cfg(any(feature = "coap", feature = "redis"))]
    #[test]
    fn the_reads_of_parts_count_together_whatever_is_read_between_them() {
        for (is_loopback, has_responses) in [(true, true), (false, false)] {
            let mut times = UnreadTimes::new(is_loopback);
            for (parts, by_ns) in (1..).zip([0, 5_000_000, 10_000_000]) {
                let read = Read { has_responses, ..later(SMALL, by_ns) };
                times.note_part();
                times.note_read(&read, read.at_ns);
                times.note_written(read.at_ns);
                for other in [later(SMALL, by_ns + 1_000_000), later(SMALL, by_ns + 2_000_000)] {
                    times.note_nothing();
                    times.note_read(&other, other.at_ns);
                    assert_eq!(after_ns(&times, 0), parts * 50_000 + 50_000);
                }
            }
        }
    }

    #[test]
    fn reads_that_overlap_are_not_counted_twice() {
        let mut times = UnreadTimes::new(true);
        times.note_read(&FULL, FULL.at_ns);
        let next = later(FULL, 20_000);
        times.note_read(&next, next.at_ns);
        assert_eq!(times.all(), [Unread { from_ns: 1_000, to_ns: 71_000 }]);
    }

    #[test]
    fn a_time_lasts_until_the_responses_are_written() {
        let mut times = UnreadTimes::new(true);
        let responded = Read { has_responses: true, ..SMALL };
        times.note_read(&responded, 52_000);
        assert_eq!(times.all()[0].to_ns, 52_000);
        // The second read finds what came after the first one.
        times.note_read(&later(SMALL, 60_000), 112_000);
        assert_eq!(times.all(), [Unread { from_ns: 1_000, to_ns: 112_000 }]);
        times.note_written(120_000);
        assert_eq!(times.all(), [Unread { from_ns: 1_000, to_ns: 120_000 }]);
        times.note_written(130_000);
        assert_eq!(times.all()[0].to_ns, 120_000, "that was something else");
    }

    #[test]
    fn a_late_read_and_one_of_many_packets_may_release_something() {
        assert!(!SMALL.may_release());
        assert!(FULL.may_release());
        assert!(Read { bytes: WINDOW_BYTES, ..SMALL }.may_release());
        assert!(Read { at_ns: SMALL.absent_at_ns + LATE_NS + 1, ..SMALL }.may_release());
    }

    #[test]
    fn of_many_times_the_sum_is_never_too_small_and_not_much_too_large() {
        const ROUND_NS: u64 = 400_000_000;
        let mut times = UnreadTimes::new(true);
        for round in 0..1_000 {
            note_responded(&mut times, &later(STOPPED, round * ROUND_NS));
            assert!(times.all().len() <= MOST_TIMES);
            assert!(times.all().windows(2).all(|pair| pair[0].to_ns <= pair[1].from_ns));
        }
        // 20.01 ms in each round.
        for rounds in 1..=1_000 {
            let counted_ns = after_ns(&times, (1_000 - rounds) * ROUND_NS);
            let range = rounds * 20_010_000..=rounds * 20_010_000 + rounds * ROUND_NS / 5;
            assert!(range.contains(&counted_ns), "{rounds} rounds: {counted_ns} ns, not in {range:?}");
        }
    }
}
