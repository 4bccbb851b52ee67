//! CPU time and wake-ups of a shard's thread in the measured window.

use crate::usage::ThreadUsage;

/// The two readings at the start and end of the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowUsage {
    began: Option<ThreadUsage>,
    ended: Option<ThreadUsage>,
}

impl WindowUsage {
    /// The window begins. No effect if it was closed before, for example by an interruption during the warm-up.
    pub fn begin(&mut self, usage: ThreadUsage) {
        if self.ended.is_none() {
            self.began.get_or_insert(usage);
        }
    }

    /// The window is over. Only the first call has an effect.
    pub fn end(&mut self, usage: ThreadUsage) {
        self.ended.get_or_insert(usage);
    }

    /// The difference of the two readings; `None` for a window that did not begin or is not over.
    pub fn in_window(&self) -> Option<ThreadUsage> {
        let (began, ended) = (self.began?, self.ended?);
        Some(ThreadUsage {
            cpu_ns: ended.cpu_ns - began.cpu_ns,
            wakeups: ended.wakeups - began.wakeups,
            quantum_ns: ended.quantum_ns,
            ordinary_ns: ended.ordinary_ns.zip(began.ordinary_ns).map(|(ended_ns, began_ns)| ended_ns - began_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu_ns: u64, wakeups: u64) -> ThreadUsage {
        ThreadUsage { cpu_ns, wakeups, quantum_ns: 0, ordinary_ns: None }
    }

    #[test]
    fn only_usage_between_the_first_two_readings_counts() {
        let mut window_usage = WindowUsage::default();
        window_usage.begin(usage(1_000, 10));
        assert_eq!(window_usage.in_window(), None, "it is not over");
        window_usage.end(usage(4_000, 12));
        window_usage.end(usage(9_000, 20));
        assert_eq!(window_usage.in_window(), Some(usage(3_000, 2)));
    }

    #[test]
    fn a_window_closed_before_its_start_has_nothing() {
        let mut window_usage = WindowUsage::default();
        window_usage.end(usage(1_000, 10));
        window_usage.begin(usage(1_001, 11));
        assert_eq!(window_usage.in_window(), None);
    }
}
