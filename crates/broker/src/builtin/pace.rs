//! A broker of known capacity: each message takes a fixed time, so that a search for capacity has a true answer to find.

use std::time::Duration;

use pubmark_protocol::clock::monotonic_ns;

/// Time lost to late wake-ups that is made up for, ns: without it the capacity would be lower than set.
const CREDIT_NS: f64 = 10e6;

/// Paces a broker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    cost_ns: f64,
    /// Until then the broker is busy with what it took.
    busy_until_ns: f64,
}

impl Pace {
    /// Takes `messages_per_s` at most.
    pub(super) fn new(messages_per_s: f64) -> Pace {
        Pace { cost_ns: 1e9 / messages_per_s, busy_until_ns: 0.0 }
    }

    /// A message was taken at `now_ns`.
    pub(super) fn charge(&mut self, now_ns: u64) {
        self.busy_until_ns = self.busy_until_ns.max(now_ns as f64 - CREDIT_NS) + self.cost_ns;
    }

    /// Is the time of what was taken not over yet?
    pub(super) fn is_busy(&self, now_ns: u64) -> bool {
        self.busy_until_ns > now_ns as f64
    }

    /// Stays busy until the time of what was taken is over. Meanwhile sockets fill, as they do before a slow broker.
    pub(super) fn work_off(&self) {
        let now_ns = monotonic_ns() as f64;
        if self.busy_until_ns > now_ns {
            std::thread::sleep(Duration::from_nanos((self.busy_until_ns - now_ns) as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_charged_one_after_another_and_idle_time_is_not_saved_up() {
        let mut pace = Pace::new(1_000.0);
        for _ in 0..50 {
            pace.charge(1_000_000_000);
        }
        // 50 ms of work, 10 ms of it made up for.
        assert!(pace.is_busy(1_039_000_000) && !pace.is_busy(1_041_000_000));
        pace.charge(9_000_000_000);
        assert!(!pace.is_busy(9_000_000_000), "one message after a pause is within the credit");
    }
}
