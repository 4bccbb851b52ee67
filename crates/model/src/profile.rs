//! Rate by time of day: a curve of multipliers over a day, whose length in the run can be chosen, such as a minute.
//!
//! The curve stretches and shortens the time of a device's process: where it is 2, twice as many messages are due. For a
//! periodic device the intervals change; a Poisson process becomes one with a variable rate. Start with [`Profile::new`].

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Minutes of a day, the unit of a curve's points.
pub const MINUTES: u32 = 24 * 60;

/// A curve of multipliers, linear between its points and equal every day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Length of a day in the run, above zero.
    pub day: Duration,
    /// (ns since the beginning of the day, where the day begins with the measured window; multiplier). The first point is
    /// at 0, the last one at the end of the day with the same multiplier.
    points: Arc<[(u64, f64)]>,
}

impl Profile {
    /// Creates a profile from points (minute of the day below [`MINUTES`], multiplier from 0) in ascending order, at least
    /// one. The measured window begins at the minute `start`.
    pub fn new(day: Duration, start: u32, points: &[(u32, f64)]) -> Profile {
        let day_ns = day.as_nanos() as u64;
        let place = |minute: u32| {
            let since_start = (minute + MINUTES - start) % MINUTES;
            (u128::from(day_ns) * u128::from(since_start) / u128::from(MINUTES)) as u64
        };
        let mut placed: Vec<(u64, f64)> =
            points.iter().map(|(minute, multiplier)| (place(*minute), *multiplier)).collect();
        placed.sort_by_key(|(at_ns, _)| *at_ns);
        let (first, last) = (placed[0], placed[placed.len() - 1]);
        if first.0 > 0 {
            // Between the last point of a day and the first of the next.
            let gap_ns = (day_ns - last.0 + first.0) as f64;
            let share = (day_ns - last.0) as f64 / gap_ns;
            placed.insert(0, (0, last.1 + (first.1 - last.1) * share));
        }
        placed.push((day_ns, placed[0].1));
        Profile { day, points: placed.into() }
    }

    /// The largest multiplier.
    pub fn peak(&self) -> f64 {
        self.points.iter().map(|(_, multiplier)| *multiplier).fold(0.0, f64::max)
    }

    /// The mean multiplier of a day.
    pub fn mean(&self) -> f64 {
        self.mean_over(self.day)
    }

    /// Time that passes for a device's process in a warm-up and a measured window of these lengths.
    pub(crate) fn passed(&self, warmup: Duration, window: Duration) -> Duration {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let time = DeviceTime::new(self);
        Duration::from_nanos(time.at(ns(window)).abs_diff(time.at(-ns(warmup))))
    }

    /// The mean multiplier of a measured window of this length, above zero.
    pub fn mean_over(&self, window: Duration) -> f64 {
        let window_ns = i64::try_from(window.as_nanos()).unwrap_or(i64::MAX).max(1);
        DeviceTime::new(self).at(window_ns) as f64 / window_ns as f64
    }
}

/// Converts between the time of a device's process and the time of the run: the process advances in proportion to the
/// curve. Both times are in ns and 0 where the measured window begins.
#[derive(Clone, Debug)]
pub(crate) struct DeviceTime {
    day_ns: i64,
    /// Device time per day, at least 1.
    of_a_day_ns: i64,
    pieces: Arc<[Piece]>,
}

/// A part of the day in which the curve is linear.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from_ns: f64,
    length_ns: f64,
    /// Device time from the beginning of the day to the beginning of the piece.
    before_ns: f64,
    multiplier: f64,
    /// Change of the multiplier per ns.
    slope: f64,
}

impl Piece {
    /// Device time of the first `into_ns` of the piece.
    fn area(&self, into_ns: f64) -> f64 {
        into_ns * (self.multiplier + self.slope * into_ns / 2.0)
    }

    /// Time within the piece at which this device time has passed: the root of [`Piece::area`], in a numerically stable
    /// form.
    fn inverse(&self, area_ns: f64) -> f64 {
        if area_ns <= 0.0 {
            return 0.0;
        }
        let discriminant = (self.multiplier * self.multiplier + 2.0 * self.slope * area_ns).max(0.0);
        (2.0 * area_ns / (self.multiplier + libm::sqrt(discriminant))).min(self.length_ns)
    }
}

impl DeviceTime {
    pub fn new(profile: &Profile) -> DeviceTime {
        let mut before_ns = 0.0;
        let piece = |pair: &[(u64, f64)]| {
            let length_ns = (pair[1].0 - pair[0].0) as f64;
            let slope = if length_ns > 0.0 { (pair[1].1 - pair[0].1) / length_ns } else { 0.0 };
            let piece = Piece { from_ns: pair[0].0 as f64, length_ns, before_ns, multiplier: pair[0].1, slope };
            before_ns += length_ns * (pair[0].1 + pair[1].1) / 2.0;
            piece
        };
        let pieces = profile.points.windows(2).map(piece).collect();
        let day_ns = i64::try_from(profile.day.as_nanos()).unwrap_or(i64::MAX).max(1);
        DeviceTime { day_ns, of_a_day_ns: (before_ns.round() as i64).max(1), pieces }
    }

    /// Device time at a time of the run.
    pub fn at(&self, run_ns: i64) -> i64 {
        let (days, of_day) = (run_ns.div_euclid(self.day_ns), run_ns.rem_euclid(self.day_ns) as f64);
        let piece = self.pieces[self.pieces.partition_point(|piece| piece.from_ns <= of_day) - 1];
        let passed_ns = (piece.before_ns + piece.area(of_day - piece.from_ns)).round() as i64;
        days.saturating_mul(self.of_a_day_ns).saturating_add(passed_ns)
    }

    /// Time of the run at a device time; the latest one where the curve is 0 for some time.
    pub fn run_ns(&self, device_ns: i64) -> i64 {
        let (days, of_day) = (device_ns.div_euclid(self.of_a_day_ns), device_ns.rem_euclid(self.of_a_day_ns) as f64);
        let piece = self.pieces[self.pieces.partition_point(|piece| piece.before_ns <= of_day) - 1];
        let run_ns = (piece.from_ns + piece.inverse(of_day - piece.before_ns)).round() as i64;
        days.saturating_mul(self.day_ns).saturating_add(run_ns)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: Duration = Duration::from_secs(24);
    const SECOND: i64 = 1_000_000_000;

    /// 1 at night, 3 at noon.
    fn triangle(start: u32) -> Profile {
        Profile::new(DAY, start, &[(0, 1.0), (720, 3.0)])
    }

    #[test]
    fn a_triangle_has_the_areas_of_a_triangle() {
        let profile = triangle(0);
        assert_eq!((profile.mean(), profile.peak()), (2.0, 3.0));
        // From 1 to 2 in the first six hours, which are six seconds here.
        assert!((profile.mean_over(Duration::from_secs(6)) - 1.5).abs() < 1e-9);
        let time = DeviceTime::new(&profile);
        assert_eq!([0, 6, 12, 24, 30].map(|at| time.at(at * SECOND)), [0, 9, 24, 48, 57].map(|at| at * SECOND));
        assert_eq!([0, 9, 24, 48, 57].map(|at| time.run_ns(at * SECOND)), [0, 6, 12, 24, 30].map(|at| at * SECOND));
        assert_eq!((time.at(-6 * SECOND), time.run_ns(-9 * SECOND)), (-9 * SECOND, -6 * SECOND), "the evening before");
        let [six, twelve, day] = [6, 12, 24].map(Duration::from_secs);
        let passed = [(Duration::ZERO, six), (six, Duration::ZERO), (six, six), (twelve, day)];
        assert_eq!(passed.map(|(warmup, window)| profile.passed(warmup, window).as_secs()), [9, 9, 18, 72]);
    }

    #[test]
    fn a_window_begins_at_its_time_of_day() {
        // From 06:00 to noon the curve goes from 2 to 3; its points are at noon and midnight.
        assert!((triangle(360).mean_over(Duration::from_secs(6)) - 2.5).abs() < 1e-9);
        assert!((triangle(720).mean_over(Duration::from_secs(12)) - 2.0).abs() < 1e-9);
        assert!((triangle(1_439).mean() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_due_while_the_curve_is_zero() {
        // No messages from 06:00 to 18:00.
        let profile = Profile::new(DAY, 0, &[(359, 1.0), (360, 0.0), (1_080, 0.0), (1_081, 1.0)]);
        let time = DeviceTime::new(&profile);
        let silence = time.at(6 * SECOND);
        assert_eq!(time.at(18 * SECOND), silence);
        assert!(time.run_ns(silence - 100) <= 6 * SECOND);
        assert!(time.run_ns(silence + 100) >= 18 * SECOND);
    }

    proptest! {
        /// Compares with sums of a million narrow strips, and converts in both directions.
        #[test]
        fn device_time_is_the_integral_of_the_curve(
            minutes in proptest::collection::btree_map(0u32..MINUTES, 0.0..5.0f64, 1..8), start in 0u32..MINUTES, at in 0i64..60_000,
        ) {
            let points: Vec<(u32, f64)> = minutes.into_iter().collect();
            prop_assume!(points.iter().any(|(_, multiplier)| *multiplier > 0.1));
            let time = DeviceTime::new(&Profile::new(DAY, start, &points));
            let multiplier = |at_ms: f64| {
                let minute = (at_ms / 24_000.0 * 1_440.0 + f64::from(start)).rem_euclid(1_440.0);
                let after = points.iter().position(|(point, _)| f64::from(*point) > minute).unwrap_or(points.len());
                let (before, after) = (points[(after + points.len() - 1) % points.len()], points[after % points.len()]);
                let gap = (f64::from(after.0) - f64::from(before.0)).rem_euclid(1_440.0);
                let into = (minute - f64::from(before.0)).rem_euclid(1_440.0);
                if gap == 0.0 { before.1 } else { before.1 + (after.1 - before.1) * into / gap }
            };
            let sum_ms: f64 = (0..at).map(|ms| multiplier(ms as f64 + 0.5)).sum();
            let found_ms = time.at(at * 1_000_000) as f64 / 1e6;
            prop_assert!((found_ms - sum_ms).abs() < 10.0 + sum_ms * 1e-3, "{found_ms} is not {sum_ms}");
            let back_ns = time.run_ns(time.at(at * 1_000_000));
            prop_assert!((time.at(back_ns) - time.at(at * 1_000_000)).abs() <= 6, "{back_ns}");
        }
    }
}
