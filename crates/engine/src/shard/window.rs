//! The measured window on the shard's clock.

/// The measured window, ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    start_ns: u64,
    end_ns: u64,
    /// When publishing really ended: `end_ns`, or earlier if the run was interrupted. Which messages are measured does not
    /// depend on it, so that both sides of the books always agree.
    closed_ns: u64,
}

impl Window {
    /// A window that measures nothing, until the real one is known.
    pub const NONE: Window = Window { start_ns: u64::MAX, end_ns: u64::MAX, closed_ns: u64::MAX };

    /// From `start_ns` for `duration_ns`.
    pub fn new(start_ns: u64, duration_ns: u64) -> Window {
        let end_ns = start_ns.saturating_add(duration_ns);
        Window { start_ns, end_ns, closed_ns: end_ns }
    }

    /// Is it known?
    pub fn is_set(&self) -> bool {
        self.start_ns != u64::MAX
    }

    /// First instant after it, or at which publishing was interrupted.
    pub fn closed_ns(&self) -> u64 {
        self.closed_ns
    }

    /// Notes that publishing ended earlier.
    pub fn close(&mut self, at_ns: u64) {
        self.closed_ns = at_ns.clamp(self.start_ns, self.end_ns);
    }

    /// Is a message due at this instant measured?
    pub fn measures(&self, due_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&due_ns)
    }

    /// Does this instant lie in the window, as far as it was lived through?
    pub fn holds(&self, at_ns: u64) -> bool {
        (self.start_ns..self.closed_ns).contains(&at_ns)
    }

    /// Time since its start, ns; negative before it.
    pub fn relative(&self, at_ns: u64) -> i64 {
        at_ns.wrapping_sub(self.start_ns) as i64
    }

    /// The instant of a time since its start.
    pub fn absolute(&self, relative_ns: i64) -> u64 {
        self.start_ns.saturating_add_signed(relative_ns)
    }
}
