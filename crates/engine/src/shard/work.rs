//! The processing time of a subscriber for each message.

use std::time::Duration;

use pubmark_protocol::events::Delivery;

/// The work of one session's subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Processing time of each message, ns; 0 for none.
    pub(super) each_ns: u64,
    /// When the processing of the last message ends, ns of `CLOCK_MONOTONIC`.
    pub(super) until_ns: u64,
    /// How much earlier that may be without the generator's lateness, at most, ns: in reading messages since the
    /// subscriber was last idle.
    pub(super) late_ns: u64,
    /// It is processing a message.
    pub(super) under_way: bool,
}

impl Work {
    /// A subscriber with this processing time for each message.
    pub fn of(each: Duration) -> Work {
        Work { each_ns: each.as_nanos() as u64, ..Work::default() }
    }

    /// Does a message take processing time?
    pub fn takes_time(&self) -> bool {
        self.each_ns > 0
    }

    /// How much later the subscriber takes a message because earlier ones were read late, at most, ns.
    #[inline]
    pub fn behind_ns(&self, delivery: &Delivery<'_>) -> u64 {
        // Nearly always: most subscribers take no time over a message.
        if self.late_ns == 0 {
            return 0;
        }
        // A message that had not arrived at the end of the work found the subscriber idle, late or not.
        let was_idle = delivery.absent_at_ns().is_some_and(|absent_at_ns| absent_at_ns > self.until_ns);
        if was_idle { 0 } else { self.late_ns }
    }

    /// Adds a message, which was taken at `at_ns`. `late_ns` is the upper bound of the generator's part in that time.
    pub fn add(&mut self, at_ns: u64, has_waited: bool, late_ns: u64) {
        // It begins when the work before it ends if it was there by then, however late pubmark noticed that end: otherwise
        // the subscriber would be slower than the workload says. A message that arrives during the work, which should not
        // happen, waits for that end too.
        if !has_waited && at_ns >= self.until_ns {
            (self.until_ns, self.late_ns) = (at_ns, late_ns);
        }
        self.until_ns += self.each_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a message that had not arrived at `absent_ns`, and returns the bound of the generator's part in that.
    fn take(work: &mut Work, at_ns: u64, absent_ns: u64, has_waited: bool) -> u64 {
        let delivery = Delivery { at_ns, empty_at_ns: Some(absent_ns), has_waited, ..Delivery::default() };
        let delivery = Delivery { behind_ns: work.behind_ns(&delivery), ..delivery };
        let late_ns = delivery.late_ns(0);
        work.add(at_ns, has_waited, late_ns);
        late_ns
    }

    #[test]
    fn lateness_adds_up_until_the_subscriber_is_idle() {
        let mut work = Work::of(Duration::from_nanos(1_000));
        assert_eq!((take(&mut work, 5_030, 5_000, false), work.until_ns), (30, 6_030));
        // It may have come before the end of the work, or any time until it was read.
        assert_eq!((take(&mut work, 6_100, 6_030, false), work.until_ns), (100, 7_100));
        assert_eq!((take(&mut work, 7_150, 7_100, false), work.until_ns), (150, 8_150));
        assert_eq!((take(&mut work, 9_010, 9_000, false), work.until_ns), (10, 10_010), "it was idle");
    }

    #[test]
    fn a_message_that_waited_begins_when_the_work_before_it_should_have_ended() {
        let mut work = Work::of(Duration::from_nanos(1_000));
        take(&mut work, 5_030, 5_000, false);
        assert_eq!((take(&mut work, 6_400, 6_030, true), work.until_ns, work.late_ns), (400, 7_030, 30));
        assert_eq!((take(&mut work, 7_060, 7_030, true), work.until_ns, work.late_ns), (60, 8_030, 30));
    }
}
