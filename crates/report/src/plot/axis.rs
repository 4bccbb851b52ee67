//! Scales of axes, and their ticks.

use crate::numbers::{count, short, time_label};

/// How a value is converted to a position on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Linear from one value to another.
    Linear {
        /// Value at the start.
        from: f64,
        /// Value at the end.
        to: f64,
    },
    /// Logarithmic; both ends are above 0.
    Log {
        /// Value at the start.
        from: f64,
        /// Value at the end.
        to: f64,
    },
}

impl Scale {
    /// Position of a value: 0 at the start of the axis, 1 at its end; clamped to this range.
    pub fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear { from, to } => (value - from) / (to - from),
            Scale::Log { from, to } => (value.max(from).ln() - from.ln()) / (to.ln() - from.ln()),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A tick of an axis with its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Value of the tick, in the unit of the axis.
    pub value: f64,
    /// Label of the tick.
    pub label: String,
    /// A second line below the label.
    pub note: String,
}

impl Tick {
    fn new(value: f64, label: String) -> Tick {
        Tick { value, label, note: String::new() }
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Scale of the axis.
    pub scale: Scale,
    /// Ticks of the axis.
    pub ticks: Vec<Tick>,
    /// What the axis shows, with its unit, and its scale if that is not linear.
    pub title: String,
    /// Whether the ticks are evenly spaced, and must remain so if not all labels fit.
    pub even: bool,
}

impl Axis {
    /// A linear axis from 0 to at least `largest`, with labels formatted by `label`.
    pub fn from_zero(largest: f64, title: &str, label: impl Fn(f64) -> String) -> Axis {
        let largest = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
        let step = nice_step(largest / 4.0);
        let steps = (largest / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as u32).map(|index| f64::from(index) * step).map(|v| Tick::new(v, label(v))).collect();
        Axis { scale: Scale::Linear { from: 0.0, to: steps * step }, ticks, title: title.to_string(), even: false }
    }

    /// A logarithmic axis of times in µs that includes `smallest` to `largest`.
    pub fn log_time(smallest: f64, largest: f64, title: &str) -> Axis {
        // Values below 1 µs are not relevant.
        Axis::log(smallest.max(1.0), largest.max(1.0), title, time_label)
    }

    /// A logarithmic axis that includes `smallest` to `largest`, both above 0, with labels formatted by `label`.
    pub fn log(smallest: f64, largest: f64, title: &str, label: impl Fn(f64) -> String) -> Axis {
        let largest = if largest.is_finite() { largest } else { smallest };
        let from = round_log(smallest, f64::floor, |candidate, value| candidate <= value * (1.0 + 1e-9));
        let mut to = round_log(largest, f64::ceil, |candidate, value| candidate >= value * (1.0 - 1e-9));
        if to <= from {
            to = from * 10.0;
        }
        let decades = (to / from).log10();
        let steps: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = from.log10().floor() as i32;
        let last = to.log10().ceil() as i32;
        let mut ticks = Vec::new();
        for decade in first..=last {
            for step in steps {
                let value = step * 10f64.powi(decade);
                if value >= from * (1.0 - 1e-9) && value <= to * (1.0 + 1e-9) {
                    ticks.push(Tick::new(value, label(value)));
                }
            }
        }
        Axis { scale: Scale::Log { from, to }, ticks, title: title.to_string(), even: false }
    }

    /// An axis for these values: linear from 0, or logarithmic if the largest is more than 20 times the smallest.
    pub fn fitting(values: &[f64], title: &str, label: impl Fn(f64) -> String) -> Axis {
        let smallest = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(0.0, f64::max);
        if smallest.is_finite() && largest > 20.0 * smallest && !values.contains(&0.0) {
            return Axis::log(smallest, largest, &format!("{title}, log scale"), label);
        }
        Axis { even: true, ..Axis::from_zero(largest, title, label) }
    }

    /// Named positions, evenly spaced: the first at 0, the next at 1 and so on.
    pub fn named(names: &[String], title: &str) -> Axis {
        let last = names.len().saturating_sub(1) as f64;
        // Half a step on both sides, so that marks are not drawn on the frame.
        let scale = Scale::Linear { from: -0.5, to: last + 0.5 };
        let ticks = names.iter().enumerate().map(|(place, name)| Tick::new(place as f64, name.clone())).collect();
        Axis { scale, ticks, title: title.to_string(), even: true }
    }

    /// Percentiles on a scale of nines (0 %, 90 %, 99 %, …), up to the highest that `samples` supports. Positions are
    /// those of [`nines`]; the number of samples beyond is below each label.
    pub fn log_nines(samples: u64, title: &str) -> Axis {
        let to = nines(1.0, samples).max(1.0);
        let mut ticks = vec![Tick { value: 0.0, label: "0 %".to_string(), note: count(samples) }];
        let mut add = |value: f64, label: String, one_in: f64| {
            if value <= to + 1e-9 {
                let note = count((samples as f64 / one_in).round() as u64);
                ticks.push(Tick { value, label, note });
            }
        };
        add(0.5f64.log10().abs(), "50 %".to_string(), 2.0);
        for digits in 1..=12usize {
            let label = match digits {
                1 => "90 %".to_string(),
                2 => "99 %".to_string(),
                more => format!("99.{} %", "9".repeat(more - 2)),
            };
            add(digits as f64, label, 10f64.powi(digits as i32));
        }
        Axis { scale: Scale::Linear { from: 0.0, to }, ticks, title: title.to_string(), even: false }
    }

    /// Seconds since the start of the measured window.
    pub fn run_time(from_s: f64, to_s: f64) -> Axis {
        let to_s = if to_s > from_s { to_s } else { from_s + 1.0 };
        let steps = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0];
        let wanted = (to_s - from_s) / 10.0;
        let step =
            steps.into_iter().find(|step| *step >= wanted).unwrap_or_else(|| (wanted / 3_600.0).ceil() * 3_600.0);
        let mut ticks = Vec::new();
        let mut index = (from_s / step).ceil();
        while index * step <= to_s + 1e-9 {
            ticks.push(Tick::new(index * step, run_time_label(index * step)));
            index += 1.0;
        }
        Axis {
            scale: Scale::Linear { from: from_s, to: to_s },
            ticks,
            title: "time in the measured window".to_string(),
            even: true,
        }
    }
}

/// A time of a run: `12 s`, `2 min`, `2 min 30 s`.
pub fn run_time_label(seconds: f64) -> String {
    if seconds.abs() < 60.0 {
        return format!("{} s", short((seconds * 10.0).round() / 10.0));
    }
    let sign = if seconds < 0.0 { "−" } else { "" };
    let whole = seconds.abs().round() as u64;
    match whole % 60 {
        0 => format!("{sign}{} min", whole / 60),
        rest => format!("{sign}{} min {rest} s", whole / 60),
    }
}

/// Position of a fraction on the scale of nines: 0 at 0 %, 1 at 90 %, 2 at 99 %. The largest of `samples` samples is at
/// the position where one sample remains, because 100 % has no finite position.
pub fn nines(fraction: f64, samples: u64) -> f64 {
    let least = 1.0 / samples.max(1) as f64;
    -(1.0 - fraction).max(least).log10()
}

/// The smallest number that is 1, 2 or 5 times a power of ten and not below `value`.
fn nice_step(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= value * (1.0 - 1e-9))
        .unwrap_or(power * 10.0)
}

/// The nearest 1, 2 or 5 times a power of ten for which `fits` is true.
fn round_log(value: f64, towards: fn(f64) -> f64, fits: fn(f64, f64) -> bool) -> f64 {
    let decade = towards(value.log10());
    let candidates = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0].map(|factor| factor * 10f64.powf(decade));
    let distance = |candidate: &f64| (candidate / value).ln().abs();
    candidates
        .into_iter()
        .filter(|candidate| fits(*candidate, value))
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_axes_start_at_zero_and_hold_the_largest_value() {
        let axis = Axis::from_zero(1_018.0, "", short);
        assert_eq!(labels(&axis), ["0", "500", "1,000", "1,500"]);
        assert_eq!(axis.scale.place(0.0), 0.0);
        assert_eq!(labels(&Axis::from_zero(0.0, "", short))[0], "0");
    }

    #[test]
    fn log_axes_hold_both_ends_and_label_every_decade() {
        let axis = Axis::log_time(260.0, 3_246.0, "");
        assert_eq!(labels(&axis), ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]);
        let wide = Axis::log_time(3.0, 9_000_000.0, "");
        assert_eq!(labels(&wide), ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
        assert!(wide.scale.place(3.0) >= 0.0 && wide.scale.place(3.0) < wide.scale.place(4.0));
        assert_eq!(labels(&Axis::log_time(100.0, 100.0, "")).len(), 4, "equal ends still give an axis");
    }

    #[test]
    fn a_largest_value_that_is_no_number_still_gives_an_axis() {
        for largest in [f64::NAN, f64::INFINITY] {
            assert!(Axis::from_zero(largest, "", short).ticks.len() < 10);
            assert!(Axis::log_time(100.0, largest, "").ticks.len() < 10);
        }
    }

    #[test]
    fn nines_are_evenly_spaced_and_end_with_the_last_sample() {
        assert!((nines(0.99, 10_000) - 2.0).abs() < 1e-9);
        assert!((nines(1.0, 10_000) - 4.0).abs() < 1e-9);
        let axis = Axis::log_nines(10_000, "");
        assert_eq!(labels(&axis), ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!(axis.ticks[4].note, "10");
    }

    #[test]
    fn run_time_is_labelled_in_seconds_then_minutes() {
        assert_eq!(labels(&Axis::run_time(-2.0, 10.0)), ["−2 s", "0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
        assert_eq!(labels(&Axis::run_time(0.0, 600.0))[..3], ["0 s", "1 min", "2 min"]);
        assert_eq!(run_time_label(150.0), "2 min 30 s");
        assert_eq!(run_time_label(-60.0), "−1 min");
    }

    #[test]
    fn values_outside_stay_on_the_axis() {
        let scale = Scale::Log { from: 1.0, to: 10.0 };
        assert_eq!((scale.place(0.0), scale.place(100.0)), (0.0, 1.0));
        assert_eq!(Scale::Linear { from: 1.0, to: 1.0 }.place(1.0), 0.0);
    }
}
