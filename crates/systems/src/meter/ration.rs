//! How often something that costs is looked at.

use std::time::Duration;

/// Shortest time between two looks; a little less than a second, so that beats of a quarter of one do not miss it.
const LEAST: Duration = Duration::from_millis(990);
/// A look that took so long is followed by none for so many times as long: 0.25 % of a core. CPU time counts, so
/// that a busy machine does not change what is looked at.
const TIMES: u64 = 400;
/// A look as cheap as this is taken whenever somebody asks for it.
const CHEAP: Duration = Duration::from_millis(2);

/// Keeps a look from taking more than 0.25 % of a core: one that took 10 ms is followed by none for 4 s. So a system with
/// ten times as many connections is looked at less often, instead of costing ten times as much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ration {
    next_ns: u64,
    last_cost_ns: u64,
}

impl Ration {
    /// May it be looked at again?
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Was the last look so cheap that one more does no harm?
    pub fn is_cheap(&self) -> bool {
        self.last_cost_ns <= CHEAP.as_nanos() as u64
    }

    /// It was looked at, which took so much CPU time.
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
    fn a_costly_look_is_taken_less_often() {
        let mut ration = Ration::default();
        assert!(ration.is_due(0) && ration.is_cheap());
        ration.spend(0, MS / 10);
        assert!(!ration.is_due(989 * MS) && ration.is_due(990 * MS) && ration.is_cheap());
        ration.spend(1_000 * MS, 10 * MS);
        assert!(!ration.is_due(4_999 * MS) && ration.is_due(5_000 * MS) && !ration.is_cheap());
    }
}
