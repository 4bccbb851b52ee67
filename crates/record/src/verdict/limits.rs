//! The limits for our own lateness, and for that of emulated links.

use super::Measure;
use crate::quantity::micros;
use crate::record::{CheckLimits, CheckUnit, Summary, VerdictStatus};

/// Up to here a load is what was scheduled, µs: the step in which load tools with a timer pace, and well below the period of
/// a device.
const LATE_US: f64 = 10_000.0;
/// The most after which it is not, µs.
const LATEST_US: f64 = 100_000.0;
/// The same as a share of the window: what was sent and read in it is what was due in it, but for as much.
const LATE_SHARE: f64 = 0.01;

/// Limits for a time that is ours, µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    valid_us: f64,
    suspect_us: f64,
}

impl Limits {
    /// How late 99 % of the messages may be sent or read for the load to be the one that was scheduled, by the length of the
    /// measured window.
    pub(super) fn of_lateness(window_s: f64) -> Limits {
        Limits { valid_us: LATE_US, suspect_us: (LATE_SHARE * window_s * 1e6).clamp(LATE_US, LATEST_US) }
    }

    /// What the emulator of a link may add: 0.1 ms or 10 % of the latency for valid, 0.5 ms or 50 % for suspect. Without a latency
    /// the floors stand alone.
    pub(super) fn of_a_link(latency_us: Option<f64>) -> Limits {
        let latency_us = latency_us.unwrap_or(0.0);
        Limits { valid_us: f64::max(100.0, 0.10 * latency_us), suspect_us: f64::max(500.0, 0.50 * latency_us) }
    }

    /// Where a value stands.
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

    /// The limits in words.
    pub(super) fn words(&self) -> String {
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
