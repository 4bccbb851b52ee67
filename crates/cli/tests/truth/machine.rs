//! Was the machine ours during a run? What the hypervisor took, no test of the clock can judge: that run is made again.

use serde_json::Value;

/// Share of the CPU time that the hypervisor may take from a run that is judged by the clock: the limit of check V06.
const STEAL_LIMIT: f64 = 0.05;
/// Runs at most, for each that is wanted.
pub const TRIES: usize = 3;

/// Why a run says nothing about time, if so.
pub fn taken_away(record: &Value) -> Option<String> {
    let steal = record["environment"]["steal"].as_f64()?;
    (steal > STEAL_LIMIT).then(|| format!("the hypervisor took {:.1} % of the CPU time", steal * 100.0))
}
