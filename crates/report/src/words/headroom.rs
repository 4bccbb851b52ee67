//! Headroom: how far the load of a workload is from the highest load that a system carries.

use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Trial};

use crate::numbers::significant;

/// Load of the workload as written, messages offered per second; `None` if no load was tried.
pub fn load_as_written(record: &CapacityRecord) -> Option<f64> {
    // Loads are proportional to their factor; the trial nearest to factor 1 gives the best estimate of the load at 1.
    let distance = |trial: &&Trial| trial.factor.ln().abs();
    let nearest =
        record.trials.iter().filter(|trial| trial.factor > 0.0).min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    Some(nearest.offered_per_s / nearest.factor)
}

/// Highest load that held as a multiple of the workload's load; `None` if nothing held.
pub fn headroom(record: &CapacityRecord) -> Option<f64> {
    Some(record.result.holds_per_s? / load_as_written(record).filter(|load| *load > 0.0)?)
}

/// The headroom as a factor: `11.5 ×`, `≥ 4.00 ×` if the limit of the system was not found.
pub fn headroom_text(record: &CapacityRecord) -> Option<String> {
    let least = if record.result.limit == CapacityLimit::System { "" } else { "≥ " };
    headroom(record).map(|times| format!("{least}{} ×", significant(times)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_record::sample_experiment::{capacity, generator_limited};

    #[test]
    fn headroom_counts_from_the_workload_as_it_is_written() {
        assert_eq!(load_as_written(&capacity()), Some(1_000.0));
        assert_eq!(headroom_text(&capacity()), Some("11.5 ×".to_string()));
        assert_eq!(headroom_text(&generator_limited()), Some("≥ 4.00 ×".to_string()));
        let mut nothing = capacity();
        nothing.trials.clear();
        assert_eq!((load_as_written(&nothing), headroom(&nothing)), (None, None));
    }
}
