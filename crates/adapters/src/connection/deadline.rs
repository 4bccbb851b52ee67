//! A deadline of a session that may be further away than the wheel reaches.

use pubmark_protocol::wheel::Wheel;

/// A time, and when the wheel brings the session next to compare it with the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at_ns: u64,
    /// Entries of the wheel for other times are not this deadline's.
    check_at_ns: u64,
}

impl Deadline {
    /// Sets a deadline of the session with this key.
    pub(super) fn new(wheel: &mut Wheel, key: u32, at_ns: u64) -> Deadline {
        Deadline { at_ns, check_at_ns: wheel.set(key, at_ns) }
    }

    /// Has its time come? If the wheel only brought the session early, as it does for times beyond it, it is set again.
    pub(super) fn has_come(&mut self, wheel: &mut Wheel, key: u32, now_ns: u64) -> bool {
        if now_ns < self.check_at_ns {
            return false;
        }
        let has_come = now_ns >= self.at_ns;
        if !has_come {
            self.check_at_ns = wheel.set(key, self.at_ns);
        }
        has_come
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KEY: u32 = 7;
    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_deadline_beyond_the_wheel_comes_at_its_time_and_not_before() {
        for after_s in [1, 15, 16, 17, 60, 3_600] {
            let (mut wheel, mut due) = (Wheel::new(0), Vec::new());
            let at_ns = after_s * SECOND_NS;
            let mut deadline = Deadline::new(&mut wheel, KEY, at_ns);
            loop {
                let now_ns = wheel.next_ns().unwrap();
                wheel.advance(now_ns, &mut due);
                assert_eq!(std::mem::take(&mut due), [KEY], "one entry at a time");
                if deadline.has_come(&mut wheel, KEY, now_ns) {
                    assert_eq!(now_ns, at_ns, "{after_s} s");
                    break;
                }
                assert!(now_ns < at_ns, "{after_s} s");
            }
        }
    }

    #[test]
    fn entries_of_the_wheel_for_other_times_change_nothing() {
        let (mut wheel, mut due) = (Wheel::new(0), Vec::new());
        let mut deadline = Deadline::new(&mut wheel, KEY, 10 * SECOND_NS);
        wheel.set(KEY, 5 * SECOND_NS);
        wheel.advance(5 * SECOND_NS, &mut due);
        assert!(!deadline.has_come(&mut wheel, KEY, 5 * SECOND_NS));
        wheel.advance(10 * SECOND_NS, &mut due);
        assert_eq!(due, [KEY; 2], "the deadline was not set again");
        assert!(deadline.has_come(&mut wheel, KEY, 10 * SECOND_NS));
    }
}
