//! Estimate of the remaining time of an experiment.

use std::collections::BTreeMap;
use std::time::Duration;

use super::quiet;

/// Time to start a local system, to connect, to wait for the last messages, to stop it and to write the reports: 0.65 s
/// was measured for mosquitto and nats with 21 clients.
const AROUND: Duration = Duration::from_secs(1);

/// Usual duration of a run with this much load, including the check for a quiet machine and the overhead.
pub fn of_a_run(load: Duration) -> Duration {
    quiet::OVER + AROUND + load
}

/// Estimates the remaining time from the durations of past runs.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Usual duration of a run.
    nominal: Duration,
    /// By cell: total duration and number of its runs.
    took: BTreeMap<usize, (Duration, u32)>,
}

impl Pace {
    /// Without past runs.
    pub fn new(nominal: Duration) -> Pace {
        Pace { nominal, took: BTreeMap::new() }
    }

    /// Adds the duration of a run of a cell.
    pub fn add(&mut self, cell: usize, took: Duration) {
        let (time, runs) = self.took.entry(cell).or_default();
        *time += took;
        *runs += 1;
    }

    /// Estimated duration of runs of these cells, from earlier runs of the same cell, otherwise of all cells, otherwise
    /// the usual duration.
    pub fn left(&self, cells: impl Iterator<Item = usize>) -> Duration {
        let mean = |(time, runs): (Duration, u32)| time / runs.max(1);
        let all = self.took.values().fold((Duration::ZERO, 0), |sum, (time, runs)| (sum.0 + *time, sum.1 + runs));
        let of_any = if all.1 == 0 { self.nominal } else { mean(all) };
        cells.map(|cell| self.took.get(&cell).map_or(of_any, |took| mean(*took))).sum()
    }
}

/// A duration as text, rounded to its precision: `40 s`, `12 min`, `3 h 20 min`.
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 90.0 {
        // In steps of five seconds, because the estimate is not more precise.
        return format!("{} s", ((seconds / 5.0).ceil() * 5.0).max(5.0));
    }
    let minutes = (seconds / 60.0).round() as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_remaining_time_is_estimated_from_past_runs() {
        let mut pace = Pace::new(s(10));
        assert_eq!(pace.left([0, 1, 1].into_iter()), s(30));
        pace.add(0, s(20));
        // For cell 1 only the usual duration of 20 s is known.
        assert_eq!(pace.left([0, 1].into_iter()), s(40));
        pace.add(1, s(2));
        pace.add(1, s(4));
        assert_eq!(pace.left([0, 1].into_iter()), s(23));
        assert_eq!(pace.left([].into_iter()), s(0));
    }

    #[test]
    fn times_are_rounded_to_what_can_be_known() {
        for (seconds, shown) in [
            (0, "5 s"),
            (31, "35 s"),
            (89, "90 s"),
            (95, "2 min"),
            (3_000, "50 min"),
            (3_600, "1 h"),
            (9_000, "2 h 30 min"),
        ] {
            assert_eq!(about(s(seconds)), shown);
        }
    }
}
