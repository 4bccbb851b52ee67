//! The limits for what our own side may add to a latency.

use super::Measure;
use crate::quantity::micros;
use crate::record::{CheckLimits, CheckUnit, Summary, VerdictStatus};

/// What our own side may add, µs: a floor, or a share of the latency where that is more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Up to here a run is valid, µs.
    pub valid_us: f64,
    /// Up to here it is suspect, beyond it invalid, µs.
    pub suspect_us: f64,
}

impl Limits {
    /// Valid up to 0.1 ms or 10 % of the latency, suspect up to 0.5 ms or 50 %. Without a latency the floors stand alone.
    pub fn of(latency_us: Option<f64>) -> Limits {
        let latency_us = latency_us.unwrap_or(0.0);
        Limits { valid_us: f64::max(100.0, 0.10 * latency_us), suspect_us: f64::max(500.0, 0.50 * latency_us) }
    }

    /// Where a value stands.
    pub fn judge(&self, value_us: f64) -> VerdictStatus {
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

    /// The limits in words.
    pub fn words(&self) -> String {
        format!("valid up to {}, suspect up to {}", micros(self.valid_us), micros(self.suspect_us))
    }
}

/// The 99th percentile, or the largest sample where there are too few for it; with the word for which it is.
pub(super) fn p99_or_max(summary: &Summary) -> (f64, &'static str) {
    match summary.p99 {
        Some(p99) => (p99, "p99"),
        None => (summary.max, "max (too few samples for p99)"),
    }
}
