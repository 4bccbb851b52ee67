//! The quantum of a shard: the time within which messages are collected before the shard sends or reads them together.
//!
//! A sleep before each message costs more than the message. With a quantum, messages that become due or arrive within
//! that time after the last turn are handled in one turn. The delay that this causes is scheduler lag and receive
//! lateness like any other, recorded for each message, so it only widens the interval of the latency. A shard with
//! little load is never delayed: it waits only if its last turn was less than a quantum ago.

use std::time::Duration;

use pubmark_model::pace::Pace;
use serde::{Deserialize, Serialize};

/// With [`Pace::Auto`], a quantum is the latency, or the limit for the latency, divided by this.
pub const PART: u32 = 20;
/// Longest quantum that [`Pace::Auto`] chooses.
pub const LONGEST_AUTO: Duration = Duration::from_millis(1);
/// Shortest quantum that [`Pace::Auto`] chooses. Below it the shard sends exactly, without a quantum, because a sleep
/// costs about as much time.
const SHORTEST_AUTO: Duration = Duration::from_micros(50);
/// Number of warm-up messages that are needed to measure a typical latency.
pub const LEAST_SAMPLES: u64 = 20;

/// How the shards of a run pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// The chosen pace.
    pub pace: Pace,
    /// With [`Pace::Auto`]: the longest quantum that the requested limits allow.
    pub at_most: Duration,
}

impl Pacing {
    /// The quantum, ns; 0 for none. `typical_ns` is the smallest p50 that a shard measured in the warm-up, if any.
    pub fn quantum_ns(&self, typical_ns: Option<u64>) -> u64 {
        match (self.pace, typical_ns) {
            (Pace::Exact, _) | (Pace::Auto, None) => 0,
            (Pace::Quantum(quantum), _) => quantum.as_nanos() as u64,
            (Pace::Auto, Some(typical_ns)) => {
                let quantum_ns = (typical_ns / u64::from(PART)).min(self.at_most.as_nanos() as u64);
                if quantum_ns < SHORTEST_AUTO.as_nanos() as u64 { 0 } else { quantum_ns }
            }
        }
    }
}

/// When a shard's last turn began, and whether its turns are spaced by quanta.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    woke_ns: u64,
    quantum_ns: u64,
    /// The turns are less than two quanta apart, so the next one waits.
    are_dense: bool,
}

impl Turns {
    /// Records that a turn began.
    pub fn note(&mut self, woke_ns: u64, quantum_ns: u64) {
        self.are_dense = woke_ns.saturating_sub(self.woke_ns) < 2 * quantum_ns;
        (self.woke_ns, self.quantum_ns) = (woke_ns, quantum_ns);
    }

    /// The quantum at the latest turn, ns; 0 for none.
    pub fn quantum_ns(&self) -> u64 {
        self.quantum_ns
    }

    /// When the latest turn began.
    pub fn woke_ns(&self) -> u64 {
        self.woke_ns
    }

    /// Time until which the next turn waits, whatever becomes due or arrives; `None` if it does not wait.
    pub fn rest_until_ns(&self) -> Option<u64> {
        self.are_dense.then(|| self.woke_ns + self.quantum_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_quantum_of_its_own_is_a_twentieth_of_the_latency_or_of_the_limit() {
        let auto = Pacing { pace: Pace::Auto, at_most: LONGEST_AUTO };
        assert_eq!(auto.quantum_ns(None), 0, "nothing is known yet");
        assert_eq!(auto.quantum_ns(Some(100_000)), 0, "5 µs: exact");
        assert_eq!(auto.quantum_ns(Some(10 * MS)), MS / 2);
        assert_eq!(auto.quantum_ns(Some(200 * MS)), MS);
        let limited = Pacing { at_most: Duration::from_millis(5) / PART, ..auto };
        assert_eq!(limited.quantum_ns(Some(200 * MS)), MS / 4, "of a limit of 5 ms");
        let fixed = Pacing { pace: Pace::Quantum(Duration::from_micros(200)), ..auto };
        assert_eq!(fixed.quantum_ns(None), 200_000);
        assert_eq!(Pacing { pace: Pace::Exact, ..auto }.quantum_ns(Some(200 * MS)), 0);
    }

    #[test]
    fn only_a_shard_with_much_to_do_rests() {
        let mut turns = Turns::default();
        turns.note(100 * MS, MS);
        assert_eq!(turns.rest_until_ns(), None, "it slept long before");
        turns.note(100 * MS + 900_000, MS);
        assert_eq!(turns.rest_until_ns(), Some(101 * MS + 900_000));
        turns.note(102 * MS, MS);
        assert_eq!(turns.rest_until_ns(), Some(103 * MS), "within twice the quantum");
        turns.note(104 * MS + 500_000, MS);
        assert_eq!(turns.rest_until_ns(), None, "two quanta and a half");
        turns.note(104 * MS + 600_000, 0);
        assert_eq!(turns.rest_until_ns(), None, "without a quantum none rests");
    }
}
