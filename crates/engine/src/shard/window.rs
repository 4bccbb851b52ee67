//! The measured window on the shard's clock.

use pubmark_protocol::header::COMPACT_STEP_NS;

/// The measured window, ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    schedule_start_ns: u64,
    start_ns: u64,
    end_ns: u64,
    /// When publishing actually ended: `end_ns`, or earlier if the run was interrupted. Which messages are measured
    /// does not depend on it, so that both sides of the message accounting always agree.
    closed_ns: u64,
    /// Messages due before this instant are offered. Earlier than `closed_ns` if a run is interrupted in its warm-up.
    until_ns: u64,
}

impl Window {
    /// A window that measures nothing, used until the window is known.
    pub const NONE: Window = Window {
        schedule_start_ns: u64::MAX,
        start_ns: u64::MAX,
        end_ns: u64::MAX,
        closed_ns: u64::MAX,
        until_ns: u64::MAX,
    };

    /// A window from `start_ns` for `duration_ns`, after a warm-up.
    pub fn new(start_ns: u64, warmup_ns: u64, duration_ns: u64) -> Window {
        let end_ns = start_ns.saturating_add(duration_ns);
        let schedule_start_ns = start_ns.saturating_sub(warmup_ns);
        Window { schedule_start_ns, start_ns, end_ns, closed_ns: end_ns, until_ns: end_ns }
    }

    /// Is it known?
    pub fn is_set(&self) -> bool {
        self.start_ns != u64::MAX
    }

    /// First instant after the window, or the instant at which publishing was interrupted.
    pub fn closed_ns(&self) -> u64 {
        self.closed_ns
    }

    /// Records that publishing ended earlier.
    pub fn close(&mut self, at_ns: u64) {
        self.closed_ns = at_ns.clamp(self.start_ns, self.end_ns);
        self.until_ns = at_ns.min(self.end_ns);
    }

    /// Length up to the end of publishing, ns.
    pub fn length_ns(&self) -> u64 {
        self.closed_ns - self.start_ns
    }

    /// Is a message due at this instant offered? It is if publishing had not ended by then, however late the shard
    /// reaches it.
    pub fn offers(&self, due_ns: u64) -> bool {
        due_ns < self.until_ns
    }

    /// Time since the schedule's start, ns; 0 before it.
    pub fn since_schedule(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.schedule_start_ns)
    }

    /// Is a message due at this instant measured?
    pub fn measures(&self, due_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&due_ns)
    }

    /// Can a message that was delivered at `at_ns` have had this due time? A peer can write any time into a header. A
    /// time before the schedule or after the delivery belongs to no bin of a time series. The clocks of two machines
    /// may differ by a second here; their difference is judged elsewhere (V22).
    #[inline]
    pub fn is_plausible(&self, due_ns: u64, at_ns: u64) -> bool {
        due_ns.saturating_add(COMPACT_STEP_NS) > self.schedule_start_ns && due_ns <= at_ns.saturating_add(1_000_000_000)
    }

    /// Is this instant within the window, up to the end of publishing?
    pub fn holds(&self, at_ns: u64) -> bool {
        (self.start_ns..self.closed_ns).contains(&at_ns)
    }

    /// Time relative to the window's start, ns; negative before it.
    pub fn relative(&self, at_ns: u64) -> i64 {
        at_ns.wrapping_sub(self.start_ns) as i64
    }

    /// The instant of a time relative to the window's start.
    pub fn absolute(&self, relative_ns: i64) -> u64 {
        self.start_ns.saturating_add_signed(relative_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_due_time_before_the_schedule_or_after_its_delivery_is_not_plausible() {
        let window = Window::new(100 * SECOND_NS, 5 * SECOND_NS, 10 * SECOND_NS);
        let at_ns = 103 * SECOND_NS;
        let year_ns = 365 * 86_400 * SECOND_NS;
        for (due_ns, is_plausible) in [
            (102 * SECOND_NS, true),
            (95 * SECOND_NS, true),
            (95 * SECOND_NS - COMPACT_STEP_NS, false),
            (94 * SECOND_NS, false),
            (0, false),
            (at_ns, true),
            (at_ns + SECOND_NS, true),
            (at_ns + SECOND_NS + 1, false),
            (at_ns + year_ns, false),
            (u64::MAX, false),
        ] {
            assert_eq!(window.is_plausible(due_ns, at_ns), is_plausible, "{due_ns}");
        }
        assert!(!Window::NONE.is_plausible(at_ns, at_ns), "nothing has a time before the window is known");
    }
}
