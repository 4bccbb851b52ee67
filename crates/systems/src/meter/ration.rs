//! How often a figure that is expensive to read is read.

use std::time::Duration;

/// Shortest time between two readings. It is a little less than a second, so that samples every 250 ms do not miss it.
const LEAST: Duration = Duration::from_millis(990);
/// Pause after a reading, as a multiple of the CPU time that the reading took: at most 0.25 % of a core. CPU time is
/// used so that the load of the machine does not change how often figures are read.
const TIMES: u64 = 400;
/// A reading that costs no more than this is cheap.
const CHEAP: Duration = Duration::from_millis(2);

/// Limits readings to 0.25 % of a core: after a reading that took 10 ms, there is none for 4 s. So a system with ten
/// times as many connections is read less often, instead of costing ten times as much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ration {
    next_ns: u64,
    last_cost_ns: u64,
}

impl Ration {
    /// Is the next reading allowed?
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Was the last reading so cheap that an extra one does no harm?
    pub fn is_cheap(&self) -> bool {
        self.last_cost_ns <= CHEAP.as_nanos() as u64
    }

    /// Records a reading at `now_ns` that took `cpu_ns` of CPU time.
    pub fn spend(&mut self, now_ns: u64, cpu_ns: u64) {
        self.last_cost_ns = cpu_ns;
        self.next_ns = now_ns + cpu_ns.saturating_mul(TIMES).max(LEAST.as_nanos() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_expensive_reading_is_taken_less_often() {
        let mut ration = Ration::default();
        assert!(ration.is_due(0) && ration.is_cheap());
        ration.spend(0, MS / 10);
        assert!(!ration.is_due(989 * MS) && ration.is_due(990 * MS) && ration.is_cheap());
        ration.spend(1_000 * MS, 10 * MS);
        assert!(!ration.is_due(4_999 * MS) && ration.is_due(5_000 * MS) && !ration.is_cheap());
    }
}
