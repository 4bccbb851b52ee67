//! Changes of a whole workload for experiments: other sizes, other rates. Each is listed in the workload's deviations.

use std::sync::Arc;
use std::time::Duration;

use crate::arrival::Arrival;
use crate::payload::SizeDistribution;
use crate::workload::{Deviation, Workload};

/// Largest factor for rates; the smallest is its inverse. Beyond these, intervals would be nanoseconds or years.
pub const LARGEST_RATE_FACTOR: f64 = 1e6;

/// Reason why a workload cannot be changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AdjustError {
    /// The factor is not usable.
    #[error("a rate of {factor} times the workload's is not between 1/{LARGEST_RATE_FACTOR} and {LARGEST_RATE_FACTOR}")]
    Factor {
        /// The factor.
        factor: f64,
    },
    /// The device group sends as fast as the system accepts, so it has no rate.
    #[error("device group `{group}` sends as fast as it can, so its rate cannot be multiplied")]
    Flood {
        /// The group.
        group: String,
    },
    /// A device would send more messages per second than the maximum.
    #[error(
        "{factor} times the workload's rate is more than a million messages per second for a device of group `{group}`: use more devices, or a smaller factor"
    )]
    TooFast {
        /// The factor.
        factor: f64,
        /// The group.
        group: String,
    },
}

/// Sets the payload of all devices to one size, in bytes with the header.
pub fn set_payload(workload: &mut Workload, bytes: u32) {
    for group in &mut workload.devices {
        group.size = SizeDistribution::Fixed(bytes);
    }
    workload.deviations.push(Deviation {
        name: "payload-replaced".to_owned(),
        detail: format!("every payload has {bytes} B in place of the workload's sizes"),
    });
}

/// Multiplies the rate of every device, also that of a slowed-down one: intervals, recorded send times and jitter become shorter
/// by `factor`. On and off
/// times, lengths of states, profiles and churn are unchanged. A factor of 1 is allowed for every workload, even one
/// without a rate.
pub fn multiply_rate(workload: &mut Workload, factor: f64) -> Result<(), AdjustError> {
    if factor == 1.0 {
        return Ok(());
    }
    if !(1.0 / LARGEST_RATE_FACTOR..=LARGEST_RATE_FACTOR).contains(&factor) {
        return Err(AdjustError::Factor { factor });
    }
    if let Some(group) = workload.devices.iter().find(|group| group.arrival == Arrival::Flood) {
        return Err(AdjustError::Flood { group: group.name.clone() });
    }
    for group in &mut workload.devices {
        group.arrival = faster(&group.arrival, factor);
        if let Some(interval) = group.slowdown.as_mut().and_then(|slowdown| slowdown.interval.as_mut()) {
            *interval = shorter(*interval, factor);
        }
        if group.arrival.is_too_fast() {
            return Err(AdjustError::TooFast { factor, group: group.name.clone() });
        }
    }
    workload.deviations.push(Deviation {
        name: "rate-multiplied".to_owned(),
        detail: format!("every device sends {factor} times as often as the workload says"),
    });
    Ok(())
}

/// At least 1 ns: an interval of zero has no schedule.
fn shorter(time: Duration, factor: f64) -> Duration {
    Duration::from_nanos(((time.as_nanos() as f64 / factor).round() as u64).max(1))
}

fn faster(arrival: &Arrival, factor: f64) -> Arrival {
    let shorter = |time: Duration| shorter(time, factor);
    match arrival {
        Arrival::Periodic { interval, phase, jitter } => Arrival::Periodic {
            interval: shorter(*interval),
            phase: *phase,
            jitter: if jitter.is_zero() { Duration::ZERO } else { shorter(*jitter) },
        },
        Arrival::Poisson { rate_per_s } => Arrival::Poisson { rate_per_s: rate_per_s * factor },
        Arrival::OnOff { interval, mean_on, mean_off } => {
            Arrival::OnOff { interval: shorter(*interval), mean_on: *mean_on, mean_off: *mean_off }
        }
        Arrival::Profiled { base, profile } => {
            Arrival::Profiled { base: Box::new(faster(base, factor)), profile: profile.clone() }
        }
        Arrival::States(states) => Arrival::States(states.with_intervals(shorter)),
        Arrival::Trace { offsets_ns, period } => Arrival::Trace {
            offsets_ns: offsets_ns
                .iter()
                .map(|offset| (*offset as f64 / factor).round() as u64)
                .collect::<Arc<[u64]>>(),
            period: period.map(shorter),
        },
        // Reactions increase with their triggers; the think time does not change.
        Arrival::Flood | Arrival::Reaction(_) => arrival.clone(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, load};

    #[test]
    fn the_mean_rate_of_every_device_is_multiplied() {
        let plain = load("smart-home", &LoadOptions::default()).unwrap();
        for factor in [0.25, 3.0] {
            let mut changed = plain.clone();
            multiply_rate(&mut changed, factor).unwrap();
            for (before, after) in plain.devices.iter().zip(&changed.devices) {
                let ratio = after.arrival.mean_rate_per_s().unwrap() / before.arrival.mean_rate_per_s().unwrap();
                assert!((ratio / factor - 1.0).abs() < 1e-6, "{}: {ratio}", before.name);
            }
            assert_eq!(changed.deviations.len(), plain.deviations.len() + 1);
        }
    }

    #[test]
    fn a_device_that_sends_less_for_a_time_is_multiplied_as_well() {
        let text = "name: test\ndevices:\n  - {name: meter, client: meter, rate: 5/s, payload: 80B, \
                    when: {receives: 'busy/+', rate: 1/s, for: 3s}}\n  - {name: busy, every: 1s, payload: 80B, topic: busy/x}\n\
                    subscribers:\n  - {name: meters, client: meter, filters: ['busy/+']}\n";
        let mut workload = crate::load::parse("test.yaml", text, &LoadOptions::default()).unwrap();
        multiply_rate(&mut workload, 10.0).unwrap();
        let slow = workload.devices[0].slowdown.as_ref().unwrap();
        assert_eq!((slow.interval, slow.length), (Some(Duration::from_millis(100)), Duration::from_secs(3)));
    }

    #[test]
    fn a_factor_that_makes_a_device_send_more_than_a_million_a_second_is_refused() {
        let mut workload = load("hello", &LoadOptions::default()).unwrap();
        workload.devices[0].arrival = Arrival::Poisson { rate_per_s: 1e3 };
        multiply_rate(&mut workload.clone(), 1e3).unwrap();
        let trace = |period| Arrival::Trace { offsets_ns: [0, 5].into(), period };
        for arrival in [
            Arrival::Poisson { rate_per_s: 1e4 },
            Arrival::OnOff {
                interval: Duration::from_micros(100),
                mean_on: Duration::from_secs(1),
                mean_off: Duration::from_secs(1),
            },
            trace(Some(Duration::from_millis(1))),
        ] {
            workload.devices[0].arrival = arrival;
            let found = multiply_rate(&mut workload.clone(), 1e3);
            assert!(matches!(found, Err(AdjustError::TooFast { .. })), "{found:?}");
        }
        workload.devices[0].arrival = trace(None);
        multiply_rate(&mut workload, 1e3).unwrap();
    }

    #[test]
    fn a_factor_that_makes_no_schedule_is_refused() {
        let mut workload = load("hello", &LoadOptions::default()).unwrap();
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(matches!(multiply_rate(&mut workload, factor), Err(AdjustError::Factor { .. })), "{factor}");
        }
        workload.devices[0].arrival = Arrival::Flood;
        assert!(matches!(multiply_rate(&mut workload, 2.0), Err(AdjustError::Flood { .. })));
    }

    #[test]
    fn every_payload_has_the_configured_size() {
        let mut workload = load("smart-home", &LoadOptions::default()).unwrap();
        set_payload(&mut workload, 512);
        assert!(workload.devices.iter().all(|group| group.size == SizeDistribution::Fixed(512)));
        assert_eq!(workload.deviations.last().unwrap().name, "payload-replaced");
    }
}
