//! A broker of known capacity: each message takes a fixed time, so that a test of the capacity search knows the true result.

use std::time::Duration;

use pubmark_protocol::clock::monotonic_ns;

/// Most time lost to late wake-ups that is compensated, ns: without it the capacity would be lower than set.
const CREDIT_NS: f64 = 10e6;

/// Shortest sleep: the error of the wake-up would be larger than a shorter one.
const SHORTEST: Duration = Duration::from_micros(500);

/// Limits a broker's rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    cost_ns: f64,
    /// Until then the broker is busy with accepted messages.
    busy_until_ns: f64,
}

impl Pace {
    /// Accepts at most `messages_per_s`.
    pub(super) fn new(messages_per_s: f64) -> Pace {
        Pace { cost_ns: 1e9 / messages_per_s, busy_until_ns: 0.0 }
    }

    /// A message was accepted at `now_ns`.
    pub(super) fn charge(&mut self, now_ns: u64) {
        self.busy_until_ns = self.busy_until_ns.max(now_ns as f64 - CREDIT_NS) + self.cost_ns;
    }

    /// Time until all accepted messages are processed; zero if they are.
    fn left(&self, now_ns: u64) -> Duration {
        Duration::from_nanos((self.busy_until_ns - now_ns as f64).max(0.0) as u64)
    }

    /// How long the broker must read nothing, to process what it accepted; `None` if that is too short for a sleep. In that
    /// time the sockets fill, as they do with a slow broker.
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
        // 50 ms of processing, of which 10 ms are compensated.
        assert_eq!(pace.left(1_000_000_000), Duration::from_millis(40));
        pace.charge(9_000_000_000);
        assert_eq!(pace.left(9_000_000_000), Duration::ZERO, "one message after a pause is within the credit");
    }
}
