//! From samples to the usage in a window, and over time.

use pubmark_record::cost::{Cost, GroupUsage, LimitEffect, ResourceRow, Usage};

use crate::cgroup::usage::LimitCounters;
use crate::meter::{ORDINARY_NS, Reading};

/// Most rows of a series. If there are more, samples are merged in groups of 2, 4, 8, ….
const MOST_ROWS: usize = 600;

/// Usage until one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The system with all its brokers; `None` if we cannot read it, and after one of its brokers has ended.
    pub system: Option<Reading>,
    /// pubmark's own processes.
    pub generator: Option<Reading>,
    /// Client programs, which are not part of pubmark's own processes; `None` in a run without them, and after they
    /// have ended.
    pub programs: Option<Reading>,
    /// The part of `generator` that belongs to each group with processes of its own, as far as they had been started.
    pub groups: Vec<Option<Reading>>,
    /// Counters of the system's limits; `None` without limits.
    pub limits: Option<LimitCounters>,
}

/// All samples of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    samples: Vec<Sample>,
    brokers: usize,
    /// Names of the groups that have processes of their own.
    groups: Vec<String>,
}

/// Current usage of a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsageNow {
    /// CPU seconds per second, over the last second or a little more.
    pub cores: f64,
    /// Resident set, bytes.
    pub rss_bytes: u64,
}

/// Current usage of both sides; `None` for a side that cannot be sampled, or has not been sampled for long enough.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveUsage {
    /// The system.
    pub system: Option<UsageNow>,
    /// pubmark's own processes.
    pub generator: Option<UsageNow>,
}

/// Shortest time over which [`LiveUsage`] computes cores, ns.
const LIVE_NS: u64 = 1_000_000_000;

impl LiveUsage {
    /// Usage at the newest of these samples, which are in order of time.
    pub fn of(samples: &[Sample]) -> LiveUsage {
        let Some(newest) = samples.last() else { return LiveUsage::default() };
        let earlier = samples.iter().rev().find(|sample| newest.at_ns - sample.at_ns >= LIVE_NS);
        let side = |side: Side| {
            let (now, then) = (side(newest)?, side(earlier?)?);
            let passed_ns = newest.at_ns - earlier?.at_ns;
            let cores = now.cpu_ns.saturating_sub(then.cpu_ns) as f64 / passed_ns as f64;
            Some(UsageNow { cores, rss_bytes: now.rss_bytes })
        };
        LiveUsage { system: side(SYSTEM), generator: side(GENERATOR) }
    }
}

type Side = fn(&Sample) -> Option<Reading>;
const SYSTEM: Side = |sample| sample.system;
const GENERATOR: Side = |sample| sample.generator;
const PROGRAMS: Side = |sample| sample.programs;

impl Samples {
    /// Creates it from samples in order of time, of a system with this many brokers.
    pub fn new(samples: Vec<Sample>, brokers: usize) -> Samples {
        Samples { samples, brokers, groups: vec![] }
    }

    /// Adds the names of the groups that have processes of their own.
    #[must_use]
    pub fn of_groups(self, groups: Vec<String>) -> Samples {
        Samples { groups, ..self }
    }

    /// All samples.
    pub fn all(&self) -> &[Sample] {
        &self.samples
    }

    /// Cost of both sides between two instants of `CLOCK_MONOTONIC`; `None` for a side that was not sampled both before
    /// the first and after the second. The host is not set here.
    pub fn resources(&self, start_ns: u64, end_ns: u64) -> Cost {
        Cost {
            system: self.usage(SYSTEM, start_ns, end_ns),
            generator: self.usage(GENERATOR, start_ns, end_ns),
            // Client programs start after the first sample, so their idle memory is unknown. Programs without memory were
            // not found, because their environment cannot be read or was replaced: nothing is known of them.
            client_programs: self
                .usage(PROGRAMS, start_ns, end_ns)
                .filter(|usage| usage.peak_rss_bytes > 0)
                .map(|usage| Usage { idle_rss_bytes: None, ..usage }),
            groups: (0..).zip(&self.groups).map(|(place, name)| self.group(place, name, start_ns, end_ns)).collect(),
            host: None,
            limits: self.limit_effect(start_ns, end_ns),
            ..Cost::default()
        }
    }

    fn group(&self, place: usize, name: &str, start_ns: u64, end_ns: u64) -> GroupUsage {
        let side = |sample: &Sample| sample.groups.get(place).copied().flatten();
        GroupUsage { group: name.to_owned(), usage: self.usage(side, start_ns, end_ns) }
    }

    fn usage(&self, side: impl Fn(&Sample) -> Option<Reading>, start_ns: u64, end_ns: u64) -> Option<Usage> {
        let window_s = end_ns.checked_sub(start_ns).filter(|length| *length > 0)? as f64 / 1e9;
        let cpu_ns = |sample: &Sample| Some(side(sample)?.cpu_ns);
        let cpu_seconds = (self.at(end_ns, cpu_ns)? - self.at(start_ns, cpu_ns)?) / 1e9;
        let within = self.around(start_ns, end_ns);
        let most = |of: fn(&Reading) -> Option<u64>| {
            within.iter().filter_map(|sample| side(sample).and_then(|reading| of(&reading))).max()
        };
        let grown = |of: fn(&Reading) -> Option<u64>| {
            self.grown(start_ns, end_ns, |sample| side(sample).and_then(|reading| of(&reading)))
        };
        Some(
            Usage {
                cpu_seconds,
                cores: cpu_seconds / window_s,
                peak_rss_bytes: most(|reading| Some(reading.rss_bytes))?,
                idle_rss_bytes: self.samples.first().and_then(&side).map(|reading| reading.rss_bytes),
                peak_pss_bytes: most(|reading| reading.pss_bytes),
                cgroup_peak_bytes: most(|reading| reading.cgroup_peak_bytes),
                threads: most(|reading| Some(reading.threads)),
                descriptors: most(|reading| reading.descriptors),
                voluntary_switches: grown(|reading| Some(reading.switches?.voluntary)),
                involuntary_switches: grown(|reading| Some(reading.switches?.involuntary)),
                received_bytes: grown(|reading| Some(reading.traffic?.received_bytes)),
                sent_bytes: grown(|reading| Some(reading.traffic?.sent_bytes)),
                run_queue_long_wait_ns: long_wait_ns(
                    grown(|reading| reading.long_wait_ns),
                    grown(|reading| Some(reading.run_queue?.wait_ns)),
                    grown(|reading| Some(reading.run_queue?.slices)),
                ),
                ..Usage::default()
            }
            .with_run_queue_wait(
                grown(|reading| Some(reading.run_queue?.wait_ns)),
                grown(|reading| Some(reading.run_queue?.slices)),
            ),
        )
    }

    /// Time between two instants in which the system's threads were ready to run and had no CPU, ns.
    pub fn system_run_queue_wait_ns(&self, start_ns: u64, end_ns: u64) -> Option<u64> {
        self.grown(start_ns, end_ns, |sample| Some(sample.system?.run_queue?.wait_ns))
    }

    fn limit_effect(&self, start_ns: u64, end_ns: u64) -> Option<LimitEffect> {
        let last = self.samples.iter().rev().find_map(|sample| sample.limits)?;
        let grown = |of: fn(&LimitCounters) -> Option<u64>| {
            self.grown(start_ns, end_ns, |sample| sample.limits.and_then(|limits| of(&limits)))
        };
        Some(LimitEffect {
            periods: grown(|limits| limits.periods),
            throttled_periods: grown(|limits| limits.throttled_periods),
            throttled_seconds: grown(|limits| limits.throttled_ns).map(|ns| ns as f64 / 1e9),
            memory_limit_hits: grown(|limits| limits.memory_limit_hits),
            out_of_memory_kills: last.out_of_memory_kills,
        })
    }

    /// The samples of a window, and one on each side: memory at an edge of the window lies between two samples.
    fn around(&self, start_ns: u64, end_ns: u64) -> &[Sample] {
        let first = self.samples.partition_point(|sample| sample.at_ns <= start_ns).saturating_sub(1);
        let after = self.samples.partition_point(|sample| sample.at_ns < end_ns).saturating_add(1);
        &self.samples[first..after.min(self.samples.len())]
    }

    /// Increase of a counter between two instants, rounded.
    fn grown(&self, start_ns: u64, end_ns: u64, counter: impl Fn(&Sample) -> Option<u64>) -> Option<u64> {
        let (start, end) = (self.at(start_ns, &counter)?, self.at(end_ns, &counter)?);
        // Counters never fall. Interpolated values can be out of order only because of rounding.
        Some((end - start).max(0.0).round() as u64)
    }

    /// A counter at an instant, interpolated linearly between the nearest samples that have it; `None` without one on
    /// either side.
    fn at(&self, at_ns: u64, counter: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let after = self.samples.partition_point(|sample| sample.at_ns < at_ns);
        let value = |sample: &Sample| Some((sample.at_ns, counter(sample)? as f64));
        let (later_ns, later) = self.samples[after..].iter().find_map(value)?;
        if later_ns == at_ns {
            return Some(later);
        }
        let (earlier_ns, earlier) = self.samples[..after].iter().rev().find_map(value)?;
        let share = (at_ns - earlier_ns) as f64 / (later_ns - earlier_ns) as f64;
        Some(earlier + share * (later - earlier))
    }

    /// Cost over time, until `end_ns`. Times are relative to `start_ns`, so those of the warm-up are negative. At most
    /// 600 rows. Rates of figures that are not in every sample are interpolated between the samples that have them.
    pub fn rows(&self, start_ns: u64, end_ns: u64) -> Vec<ResourceRow> {
        let samples = &self.samples[..self.samples.partition_point(|sample| sample.at_ns <= end_ns)];
        let step = samples.len().saturating_sub(1).div_ceil(MOST_ROWS).next_power_of_two();
        let ends = (step..samples.len()).step_by(step);
        ends.map(|end| self.row(&samples[end - step..=end], start_ns)).collect()
    }

    /// The row for the interval from the first of these samples to the last.
    fn row(&self, samples: &[Sample], start_ns: u64) -> ResourceRow {
        let (first, last) = (&samples[0], &samples[samples.len() - 1]);
        let passed_ns = (last.at_ns - first.at_ns).max(1) as f64;
        let most = |side: Side, of: fn(&Reading) -> Option<u64>| {
            samples[1..].iter().filter_map(|sample| side(sample).and_then(|reading| of(&reading))).max()
        };
        let cores = |side: Side| Some(side(last)?.cpu_ns.saturating_sub(side(first)?.cpu_ns) as f64 / passed_ns);
        let per_s = |of: fn(&Reading) -> Option<u64>| {
            let counter = |sample: &Sample| sample.system.and_then(|reading| of(&reading));
            let grown = self.at(last.at_ns, counter)? - self.at(first.at_ns, counter)?;
            Some(grown.max(0.0) * 1e9 / passed_ns)
        };
        ResourceRow {
            t_s: (last.at_ns as f64 - start_ns as f64) / 1e9,
            system_cores: cores(SYSTEM),
            system_rss_bytes: most(SYSTEM, |reading| Some(reading.rss_bytes)),
            system_pss_bytes: most(SYSTEM, |reading| reading.pss_bytes),
            system_cgroup_bytes: most(SYSTEM, |reading| reading.cgroup_bytes),
            system_threads: most(SYSTEM, |reading| Some(reading.threads)),
            system_descriptors: most(SYSTEM, |reading| reading.descriptors),
            system_switches_per_s: per_s(|reading| {
                let switches = reading.switches?;
                Some(switches.voluntary + switches.involuntary)
            }),
            system_received_per_s: per_s(|reading| Some(reading.traffic?.received_bytes)),
            system_sent_per_s: per_s(|reading| Some(reading.traffic?.sent_bytes)),
            system_throttled: self.throttled(first, last),
            generator_cores: cores(GENERATOR),
            generator_rss_bytes: most(GENERATOR, |reading| Some(reading.rss_bytes)),
        }
    }

    /// Share of the time between two samples in which brokers were throttled, as a mean over brokers. The kernel adds
    /// up the throttled time of all cores, so the sum can exceed the time that has passed; the share is limited to 1.
    fn throttled(&self, first: &Sample, last: &Sample) -> Option<f64> {
        let held_ns = last.limits?.throttled_ns?.saturating_sub(first.limits?.throttled_ns?) as f64;
        let passed_ns = (last.at_ns - first.at_ns).max(1) as f64 * self.brokers.max(1) as f64;
        Some((held_ns / passed_ns).min(1.0))
    }
}

/// Long waits, ns: those that frequent sampling found, or, if larger, what the sums already show, such as a wait that
/// has not ended yet.
fn long_wait_ns(found_ns: Option<u64>, wait_ns: Option<u64>, slices: Option<u64>) -> Option<u64> {
    let (wait_ns, slices) = (wait_ns?, slices?);
    Some(found_ns?.max(wait_ns.saturating_sub(slices.saturating_mul(ORDINARY_NS))).min(wait_ns))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::network::Traffic;

    const MS: u64 = 1_000_000;

    fn reading(cpu_ms: u64, rss_bytes: u64) -> Reading {
        Reading { cpu_ns: cpu_ms * MS, rss_bytes, threads: 1, ..Reading::default() }
    }

    fn sample(at_ms: u64, cpu_ms: u64, rss_bytes: u64) -> Sample {
        Sample {
            at_ns: at_ms * MS,
            system: Some(reading(cpu_ms, rss_bytes)),
            generator: None,
            programs: None,
            groups: vec![],
            limits: None,
        }
    }

    #[test]
    fn a_group_with_a_process_of_its_own_has_a_cost_of_its_own_from_its_start_on() {
        let mut samples: Vec<Sample> = (0..=4).map(|n| sample(n * 250, n, 1)).collect();
        for (index, cpu_ms) in [(1, 0), (2, 100), (3, 200), (4, 300)] {
            samples[index].groups = vec![Some(reading(cpu_ms, 1 + index as u64)), None];
        }
        let names = vec!["sensors".to_owned(), "ended".to_owned()];
        let groups = Samples::new(samples, 1).of_groups(names).resources(500 * MS, 1_000 * MS).groups;
        let usage = groups[0].usage.unwrap();
        assert_eq!((groups[0].group.as_str(), usage.peak_rss_bytes, usage.idle_rss_bytes), ("sensors", 5, None));
        assert!((usage.cpu_seconds - 0.2).abs() < 1e-9, "{usage:?}");
        assert_eq!(groups[1], GroupUsage { group: "ended".to_owned(), usage: None });
    }

    #[test]
    fn client_programs_that_start_after_the_first_sample_have_a_cost_of_their_own_over_the_window() {
        let mut samples: Vec<Sample> = (0..=4).map(|n| sample(n * 250, n, 1)).collect();
        for (index, cpu_ms) in [(1, 40), (2, 100), (3, 200), (4, 300)] {
            samples[index].programs = Some(reading(cpu_ms, 7));
        }
        let samples = Samples::new(samples, 1);
        let usage = samples.resources(500 * MS, 1_000 * MS).client_programs.unwrap();
        assert!((usage.cpu_seconds - 0.2).abs() < 1e-9 && (usage.cores - 0.4).abs() < 1e-9, "{usage:?}");
        assert_eq!((usage.peak_rss_bytes, usage.idle_rss_bytes), (7, None));
        assert_eq!(samples.resources(0, 1_000 * MS).client_programs, None, "not there at the window's start");
        // A program whose environment cannot be read is not found: no CPU time was measured, which is not none used.
        let not_found = (0..=4).map(|n| Sample { programs: Some(Reading::default()), ..sample(n * 250, n, 1) });
        let samples = Samples::new(not_found.collect(), 1);
        assert_eq!(samples.resources(500 * MS, 1_000 * MS).client_programs, None);
    }

    #[test]
    fn cpu_between_the_edges_is_measured_and_interpolated_only_between_samples() {
        let samples = Samples::new(
            vec![sample(0, 0, 9), sample(250, 50, 1), sample(500, 250, 4), sample(750, 250, 2), sample(1_000, 300, 9)],
            1,
        );
        let resources = samples.resources(375 * MS, 750 * MS);
        let usage = resources.system.unwrap();
        assert!((usage.cpu_seconds - 0.1).abs() < 1e-9 && (usage.cores - 0.1 / 0.375).abs() < 1e-9, "{usage:?}");
        assert_eq!((usage.peak_rss_bytes, resources.generator), (4, None));
    }

    #[test]
    fn a_window_that_was_not_sampled_has_no_usage() {
        let samples = Samples::new(vec![sample(100, 0, 1), sample(200, 50, 1)], 1);
        for (start_ms, end_ms) in [(50, 150), (150, 250), (150, 150)] {
            assert_eq!(samples.resources(start_ms * MS, end_ms * MS).system, None);
        }
        assert_eq!(Samples::default().resources(0, 1), Cost::default());
        assert_eq!(Samples::default().rows(0, 1), vec![]);
    }

    #[test]
    fn rows_are_merged_until_a_chart_can_hold_them() {
        let samples = Samples::new((0..=2_000).map(|n| sample(n * 250, n * 25, n)).collect(), 1);
        let rows = samples.rows(10_000 * MS, u64::MAX);
        assert_eq!(rows.len(), 500);
        assert!(rows.iter().all(|row| (row.system_cores.unwrap() - 0.1).abs() < 1e-9 && row.generator_cores.is_none()));
        assert_eq!((rows[0].t_s, rows[0].system_rss_bytes), (-9.0, Some(4)));
    }

    #[test]
    fn missing_samples_are_interpolated_and_a_peak_is_used_where_it_exists() {
        let mut samples: Vec<Sample> = (0..=8).map(|n| sample(n * 250, n, 1)).collect();
        for (index, received_bytes, pss_bytes) in [(0, 0, 70), (4, 1_000, 50), (8, 3_000, 60)] {
            let system = samples[index].system.as_mut().unwrap();
            system.traffic = Some(Traffic { received_bytes, sent_bytes: 0 });
            system.pss_bytes = Some(pss_bytes);
        }
        let samples = Samples::new(samples, 1);
        let usage = samples.resources(500 * MS, 1_500 * MS).system.unwrap();
        assert_eq!((usage.received_bytes, usage.sent_bytes), (Some(1_500), Some(0)));
        assert_eq!((usage.peak_pss_bytes, usage.idle_rss_bytes), (Some(50), Some(1)));
        // A figure that was never read is unknown, not 0.
        assert_eq!((usage.descriptors, usage.voluntary_switches, usage.cgroup_peak_bytes), (None, None, None));
        let rows = samples.rows(0, 2_000 * MS);
        let rates: Vec<f64> = rows.iter().map(|row| row.system_received_per_s.unwrap()).collect();
        assert_eq!(rates, [1_000.0, 1_000.0, 1_000.0, 1_000.0, 2_000.0, 2_000.0, 2_000.0, 2_000.0]);
        assert_eq!((rows[3].system_pss_bytes, rows[4].system_pss_bytes), (Some(50), None));
    }

    #[test]
    fn a_system_that_ends_within_the_window_has_no_cost_but_its_limits_tell_why() {
        let limits = |throttled_ms: u64, hits: u64, kills: u64| {
            Some(LimitCounters {
                periods: Some(throttled_ms / 5),
                throttled_periods: Some(throttled_ms / 10),
                throttled_ns: Some(throttled_ms * MS),
                memory_limit_hits: Some(hits),
                out_of_memory_kills: Some(kills),
            })
        };
        let mut samples: Vec<Sample> = (0..=4).map(|n| sample(n * 250, n, 1)).collect();
        for (index, limits) in
            [limits(0, 0, 0), limits(50, 0, 0), limits(100, 0, 0), limits(700, 64, 1), None].into_iter().enumerate()
        {
            samples[index].limits = limits;
        }
        (samples[3].system, samples[4].system) = (None, None);
        let samples = Samples::new(samples, 1);
        let resources = samples.resources(250 * MS, 1_000 * MS);
        assert_eq!(resources.system, None);
        // The control group no longer exists at the window's end, so increases over the window are unknown; the kill is
        // known.
        let effect = resources.limits.unwrap();
        assert_eq!((effect.periods, effect.memory_limit_hits, effect.out_of_memory_kills), (None, None, Some(1)));
        assert!(effect.was_binding());
        let effect = samples.resources(250 * MS, 500 * MS).limits.unwrap();
        assert_eq!((effect.periods, effect.throttled_periods), (Some(10), Some(5)));
        assert_eq!((effect.throttled_seconds, effect.memory_limit_hits), (Some(0.05), Some(0)));
        let rows = samples.rows(0, 1_000 * MS);
        let shares: Vec<Option<f64>> = rows.iter().map(|row| row.system_throttled).collect();
        // Throttled for 600 ms on two cores within 250 ms: the share is limited to 1.
        assert_eq!(shares, [Some(0.2), Some(0.2), Some(1.0), None]);
        assert_eq!((rows[2].system_cores, rows[3].system_rss_bytes), (None, None));
    }
}
