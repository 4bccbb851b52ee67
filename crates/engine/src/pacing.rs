//! How long a shard lets messages gather before it sends or reads them together: its quantum.
//!
//! A sleep before each message costs more than the message. With a quantum, what becomes due, and what arrives, within that time of the
//! turn before is handled in one turn. What is late by that is scheduler lag and receive lateness like any other, message by message,
//! so it widens the interval of the latency and no more. A shard with little to do is never late: it waits only where it has turned
//! less than a quantum ago.

use std::time::Duration;

use pubmark_model::pace::Pace;
use serde::{Deserialize, Serialize};

/// With [`Pace::Auto`] a quantum is this part of the latency, or of the limit for it.
pub const PART: u32 = 20;
/// Longest quantum that [`Pace::Auto`] chooses.
pub const LONGEST_AUTO: Duration = Duration::from_millis(1);
/// Shortest quantum that [`Pace::Auto`] chooses: it is exact instead. Sleeping costs about as much.
const SHORTEST_AUTO: Duration = Duration::from_micros(50);
/// Messages of the warm-up that a typical latency needs.
pub const LEAST_SAMPLES: u64 = 20;

/// How the shards of a run pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// As it was chosen.
    pub pace: Pace,
    /// With [`Pace::Auto`]: the longest quantum that the limits allow which were asked for.
    pub at_most: Duration,
}

impl Pacing {
    /// The quantum, ns; 0 for none. `typical_ns` is the smallest p50 that a shard measured in the warm-up, where one did.
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

/// When a shard turned last, and whether it does so in quanta.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    woke_ns: u64,
    quantum_ns: u64,
    /// The turn before was not long before: the next one waits.
    are_dense: bool,
}

impl Turns {
    /// A turn began.
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

    /// Until when the next one waits, whatever becomes due or arrives.
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
