//! A broker of known capacity: each message takes a fixed time, so that a search for capacity has a true answer to find.

use std::time::Duration;

use pubmark_protocol::clock::monotonic_ns;

/// Time lost to late wake-ups that is made up for, ns: without it the capacity would be lower than set.
const CREDIT_NS: f64 = 10e6;

/// Shortest sleep: below it, waking up late would cost more than it lasts.
const SHORTEST: Duration = Duration::from_micros(500);

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

    /// Time until what was taken is worked off; zero if it is.
    fn left(&self, now_ns: u64) -> Duration {
        Duration::from_nanos((self.busy_until_ns - now_ns as f64).max(0.0) as u64)
    }

    /// How long it should take nothing, to work off what it took; `None` for less than a sleep is good for. Meanwhile
    /// sockets fill, as they do before a slow broker.
    pub(super) fn debt(&self) -> Option<Duration> {
        Some(self.left(monotonic_ns())).filter(|left| *left >= SHORTEST)
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
        assert_eq!(pace.left(1_000_000_000), Duration::from_millis(40));
        pace.charge(9_000_000_000);
        assert_eq!(pace.left(9_000_000_000), Duration::ZERO, "one message after a pause is within the credit");
    }
}
