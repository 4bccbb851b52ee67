//! Limits for the lateness of pubmark and of emulated links.

use super::Measure;
use crate::quantity::micros;
use crate::record::{CheckLimits, CheckUnit, Summary, VerdictStatus};

/// Lateness up to which the load counts as scheduled (valid), µs: the step in which load tools with a timer pace, and
/// well below the period of a device.
pub(crate) const LATE_US: f64 = 10_000.0;
/// Largest limit for suspect, µs, whatever the length of the window.
const LATEST_US: f64 = 100_000.0;
/// Limit for suspect as a share of the window: apart from this share, the messages sent and read in the window are
/// those due in it.
const LATE_SHARE: f64 = 0.01;

/// Limits for a time that pubmark caused, µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    valid_us: f64,
    suspect_us: f64,
}

impl Limits {
    /// Limits for the lateness of 99 % of the messages, sent or read, up to which the load is the scheduled one, by the
    /// length of the measured window.
    pub(super) fn of_lateness(window_s: f64) -> Limits {
        Limits { valid_us: LATE_US, suspect_us: (LATE_SHARE * window_s * 1e6).clamp(LATE_US, LATEST_US) }
    }

    /// Limits for the delay that the emulator of a link may add: 0.1 ms or 10 % of the latency for valid, 0.5 ms or
    /// 50 % for suspect. Without a latency only the absolute values apply.
    pub(super) fn of_a_link(latency_us: Option<f64>) -> Limits {
        let latency_us = latency_us.unwrap_or(0.0);
        Limits { valid_us: f64::max(100.0, 0.10 * latency_us), suspect_us: f64::max(500.0, 0.50 * latency_us) }
    }

    /// Status of a value.
    pub(super) fn judge(&self, value_us: f64) -> VerdictStatus {
        if value_us <= self.valid_us {
            VerdictStatus::Valid
        } else if value_us <= self.suspect_us {
            VerdictStatus::Suspect
        } else {
            VerdictStatus::Invalid
        }
    }

    /// A value with these limits.
    pub(super) fn measure(&self, value_us: f64) -> Measure {
        let limits = CheckLimits { valid: self.valid_us, suspect: Some(self.suspect_us) };
        Measure { value: value_us, limits, unit: CheckUnit::Microseconds }
    }

    /// The limits as text.
    pub(super) fn words(&self) -> String {
        format!("valid up to {}, suspect up to {}", micros(self.valid_us), micros(self.suspect_us))
    }
}

/// The 99th percentile, or the largest sample if there are too few samples, with its name.
pub(super) fn p99_or_max(summary: &Summary) -> (f64, &'static str) {
    match summary.p99 {
        Some(p99) => (p99, "p99"),
        None => (summary.max, "max (too few samples for p99)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::rules::RULES;

    #[test]
    fn the_page_of_v18_states_the_limits_of_a_link() {
        let (times, shares) = (Limits::of_a_link(None), Limits::of_a_link(Some(1e6)));
        let limits = |of_time: f64, of_share: f64| format!("{} ms or {} %", of_time / 1e3, of_share / 1e4);
        let expected = format!(
            "may be {} of the latency's p99, whichever is more; up to {} the run is suspect",
            limits(times.valid_us, shares.valid_us),
            limits(times.suspect_us, shares.suspect_us)
        );
        let stated = RULES.iter().filter(|rule| rule.meaning.contains(&expected)).map(|rule| rule.code);
        assert_eq!(stated.collect::<Vec<_>>(), ["V18"], "{expected}");
    }

    #[test]
    fn the_limit_for_suspect_follows_the_window_between_its_bounds() {
        let suspect_us = |window_s: f64| Limits::of_lateness(window_s).suspect_us;
        assert_eq!([0.5, 1.0, 5.0, 10.0, 60.0].map(suspect_us), [10_000.0, 10_000.0, 50_000.0, 100_000.0, 100_000.0]);
    }
}
