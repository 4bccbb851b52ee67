//! Arrival processes: when a device sends.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::reaction::Reaction;
use crate::states::States;

/// Position of a periodic device's first message within its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// At a seeded random point of the interval, so that a fleet's load is even.
    Spread,
    /// All devices together, one interval after the start, as PSMark's timers do.
    Aligned,
}

/// The process that generates a device's due times. Open loop: the system cannot change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Arrival {
    /// Every `interval`; each due time is moved by up to ± `jitter` (uniform, below half an interval).
    Periodic {
        /// Time between two sends, above zero.
        interval: Duration,
        /// Position of the first message.
        phase: Phase,
        /// Maximum change of a due time in either direction.
        jitter: Duration,
    },
    /// Independent exponential gaps.
    Poisson {
        /// Mean rate in messages per second.
        rate_per_s: f64,
    },
    /// Periodic while on, silent while off; both times exponential.
    OnOff {
        /// Time between two sends while on.
        interval: Duration,
        /// Mean length of an on period.
        mean_on: Duration,
        /// Mean length of an off period.
        mean_off: Duration,
    },
    /// A periodic or Poisson process whose rate follows the time of day.
    Profiled {
        /// The process with multiplier 1.
        base: Box<Arrival>,
        /// The multipliers.
        profile: Profile,
    },
    /// Periodic in each of several states; the device changes between the states.
    States(States),
    /// Recorded send times, relative to the start; repeated every `period` if given.
    Trace {
        /// Ascending offsets in nanoseconds.
        offsets_ns: Arc<[u64]>,
        /// The trace starts again after this time.
        period: Option<Duration>,
    },
    /// As fast as the system accepts messages: due = ready, no latency verdict, no schedule hash.
    Flood,
    /// After another message was received, and a think time.
    Reaction(Reaction),
}

/// Maximum rate of one device while it is on, messages per second.
pub const FASTEST_PER_S: f64 = 1e6;

impl Arrival {
    /// Whether a device sends more than [`FASTEST_PER_S`] while it is on. A trace that is not repeated is not checked,
    /// because it ends.
    pub fn is_too_fast(&self) -> bool {
        let shortest = 1.0 / FASTEST_PER_S;
        // Allows for rounding of half a nanosecond.
        let is_short = |time: Duration, messages: f64| time.as_secs_f64() < messages * shortest - 0.5e-9;
        match self {
            Arrival::Periodic { interval, .. } | Arrival::OnOff { interval, .. } => is_short(*interval, 1.0),
            Arrival::Poisson { rate_per_s } => *rate_per_s > FASTEST_PER_S * (1.0 + 1e-9),
            Arrival::Profiled { .. } | Arrival::States(_) => {
                self.highest_rate_per_s().is_some_and(|rate_per_s| rate_per_s > FASTEST_PER_S * (1.0 + 1e-3))
            }
            Arrival::Trace { offsets_ns, period: Some(period) } => is_short(*period, offsets_ns.len() as f64),
            Arrival::Trace { period: None, .. } | Arrival::Flood | Arrival::Reaction(_) => false,
        }
    }

    /// Mean messages per second while online; `None` for a flood, which has no rate, and for reactions, whose rate is that
    /// of their triggers ([`crate::fleet::Fleet::links`]).
    pub fn mean_rate_per_s(&self) -> Option<f64> {
        match self {
            Arrival::Periodic { interval, .. } => Some(1.0 / interval.as_secs_f64()),
            Arrival::Poisson { rate_per_s } => Some(*rate_per_s),
            Arrival::OnOff { interval, mean_on, mean_off } => {
                let on = mean_on.as_secs_f64();
                Some(on / (on + mean_off.as_secs_f64()) / interval.as_secs_f64())
            }
            Arrival::Profiled { base, profile } => Some(base.mean_rate_per_s()? * profile.mean()),
            Arrival::States(states) => Some(states.mean_rate_per_s()),
            Arrival::Trace { offsets_ns, period } => {
                let span = period.map_or_else(
                    || offsets_ns.last().map_or(0.0, |last| *last as f64 / 1e9),
                    |period| period.as_secs_f64(),
                );
                (span > 0.0).then(|| offsets_ns.len() as f64 / span)
            }
            Arrival::Flood | Arrival::Reaction(_) => None,
        }
    }

    /// Mean messages per second in a measured window of this length, above zero, after a warm-up of this length. The window
    /// may be only a part of a day, which begins with it, or of a trace, which begins with the warm-up.
    pub fn mean_rate_within(&self, warmup: Duration, window: Duration) -> Option<f64> {
        match self {
            Arrival::Profiled { base, profile } => Some(base.mean_rate_per_s()? * profile.mean_over(window)),
            Arrival::Trace { .. } => {
                let messages = self.trace_messages(warmup.saturating_add(window))? - self.trace_messages(warmup)?;
                Some(messages as f64 / window.as_secs_f64().max(1e-9))
            }
            arrival => arrival.mean_rate_per_s(),
        }
    }

    /// Number of messages in the first `length` of a trace; `None` if this is not a trace.
    pub(crate) fn trace_messages(&self, length: Duration) -> Option<u64> {
        let Arrival::Trace { offsets_ns, period } = self else { return None };
        let before = |end: Duration| offsets_ns.partition_point(|at| u128::from(*at) < end.as_nanos()) as u64;
        Some(match period.filter(|period| !period.is_zero()) {
            None => before(length),
            Some(period) => {
                let rounds = u64::try_from(length.as_nanos() / period.as_nanos()).unwrap_or(u64::MAX);
                let rest_ns = (length.as_nanos() % period.as_nanos()) as u64;
                rounds.saturating_mul(before(period)).saturating_add(before(Duration::from_nanos(rest_ns)))
            }
        })
    }

    /// Messages per second of a device at the peak of its group's profile. On and off periods and states differ between
    /// devices, so their mean counts.
    pub fn peak_rate_per_s(&self) -> Option<f64> {
        match self {
            Arrival::Profiled { .. } => self.highest_rate_per_s(),
            arrival => arrival.mean_rate_per_s(),
        }
    }

    /// Messages per second at a device's busiest time: while it is on, in its busiest state, at the peak of its profile.
    pub fn highest_rate_per_s(&self) -> Option<f64> {
        match self {
            Arrival::OnOff { interval, .. } => Some(1.0 / interval.as_secs_f64()),
            Arrival::Profiled { base, profile } => Some(base.mean_rate_per_s()? * profile.peak()),
            Arrival::States(states) => Some(states.highest_rate_per_s()),
            arrival => arrival.mean_rate_per_s(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_trace_is_that_of_the_window() {
        let seconds = Duration::from_secs;
        let offsets_ns: Arc<[u64]> = [0, 1, 2, 3, 3_600].map(|at_s| at_s * 1_000_000_000).into();
        let once = Arrival::Trace { offsets_ns: Arc::clone(&offsets_ns), period: None };
        let again = Arrival::Trace { offsets_ns, period: Some(seconds(7_200)) };
        for (warmup_s, window_s, from_once, from_again) in [
            (0, 2, 2, 2),
            (0, 10, 4, 4),
            (0, 7_200, 5, 5),
            (0, 7_202, 5, 7),
            (0, 14_400, 5, 10),
            // The times of the warm-up are not in the window.
            (2, 10, 2, 2),
            (5, 60, 0, 0),
            (5, 7_200, 1, 5),
            (7_200, 2, 0, 2),
        ] {
            let messages = [&once, &again].map(|trace| {
                let rate_per_s = trace.mean_rate_within(seconds(warmup_s), seconds(window_s)).unwrap_or(f64::NAN);
                (rate_per_s * window_s as f64).round() as u64
            });
            assert_eq!(messages, [from_once, from_again], "{warmup_s} s of warm-up, {window_s} s");
        }
        let single = Arrival::Trace { offsets_ns: [0].into(), period: None };
        let rate_per_s = single.mean_rate_within(Duration::ZERO, seconds(10));
        assert_eq!(rate_per_s, Some(0.1), "a trace of one message is no flood");
    }
}
