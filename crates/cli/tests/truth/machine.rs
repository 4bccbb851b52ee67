//! Whether a run had the machine to itself. If the hypervisor took CPU time, times cannot be judged: the run is
//! repeated.

use serde_json::Value;

/// Share of the CPU time that the hypervisor may take from a run that is judged by the clock: the limit of check V06.
const STEAL_LIMIT: f64 = 0.05;
/// Largest number of tries for each required run.
pub const TRIES: usize = 3;

/// The reason why times of a run cannot be judged, if there is one.
pub fn taken_away(record: &Value) -> Option<String> {
    let steal = record["environment"]["steal"].as_f64()?;
    (steal > STEAL_LIMIT).then(|| format!("the hypervisor took {:.1} % of the CPU time", steal * 100.0))
}
