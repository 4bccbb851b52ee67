//! Figures as text: three significant digits, thousands separated by commas, `—` for values that were not measured.

use pubmark_record::comparison::Unit;
use pubmark_record::quantity;

use crate::columns::ColumnUnit;

/// Text for a value that was not measured.
pub const MISSING: &str = "—";

/// Most decimals of an interval, whose two numbers share a column.
const MOST_DECIMALS: i32 = 3;
/// Most decimals of an interval of a unit that is not pubmark's, whose values may be of any size.
const MOST_OWN_DECIMALS: i32 = 12;

/// Unit of a column of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// The unit for a column whose typical large value, a p99, is `value_us`: µs below 0.1 ms, s from 10 s.
    pub fn for_value(value_us: f64) -> TimeUnit {
        let size_us = value_us.abs();
        if size_us < 100.0 {
            TimeUnit::Microseconds
        } else if size_us < 10_000_000.0 {
            TimeUnit::Milliseconds
        } else {
            TimeUnit::Seconds
        }
    }

    /// Symbol of the unit.
    pub fn symbol(self) -> &'static str {
        match self {
            TimeUnit::Microseconds => "µs",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    /// Number of µs in the unit.
    fn micros(self) -> f64 {
        match self {
            TimeUnit::Microseconds => 1.0,
            TimeUnit::Milliseconds => 1e3,
            TimeUnit::Seconds => 1e6,
        }
    }

    /// `value_us` (µs) as a number in this unit, without its symbol.
    pub fn number(self, value_us: Option<f64>) -> String {
        known(value_us).map_or_else(missing, |value| significant(value / self.micros()))
    }

    /// Both bounds of a value in this unit, without the symbol; see [`bounds`].
    pub fn interval(self, bounds_us: [Option<f64>; 2]) -> String {
        bounds(bounds_us.map(|bound| bound.map(|value| value / self.micros())))
    }

    /// The same with its symbol.
    pub fn with_symbol(self, value_us: Option<f64>) -> String {
        match known(value_us) {
            Some(_) => format!("{} {}", self.number(value_us), self.symbol()),
            None => missing(),
        }
    }
}

/// Both bounds of a time (µs), the lower one first, in the unit that suits the upper one; missing if the upper one was
/// not measured.
pub fn interval(bounds_us: [Option<f64>; 2]) -> String {
    known(bounds_us[1]).map_or_else(missing, |upper| {
        let unit = TimeUnit::for_value(upper);
        format!("{} {}", unit.interval(bounds_us), unit.symbol())
    })
}

/// A single time in the unit that suits it.
pub fn time(value_us: Option<f64>) -> String {
    known(value_us).map_or_else(missing, |value| TimeUnit::for_value(value).with_symbol(Some(value)))
}

/// A time as a label of an axis: `200 µs`, `1 ms`, `5 s`.
pub fn time_label(value_us: f64) -> String {
    if !value_us.is_finite() {
        missing()
    } else if value_us < 1_000.0 {
        format!("{} µs", short(value_us))
    } else if value_us < 1e6 {
        format!("{} ms", short(value_us / 1e3))
    } else {
        format!("{} s", short(value_us / 1e6))
    }
}

/// Three significant digits: `0.310`, `1.51`, `12.3`, `1,230`.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return missing();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    // Rounded first, so that 9.996 becomes 10.0 and not 10.00.
    let rounded: f64 = format!("{value:.2e}").parse().expect("a formatted number is a number");
    let magnitude = rounded.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).max(0) as usize;
    if decimals == 0 {
        return whole(rounded);
    }
    format!("{rounded:.decimals$}").replace('-', "−")
}

/// Both bounds of a value, the lower one first: `0.018–0.106`, `−2.00 to 3.00`. The larger one has three significant digits; the other
/// one has the same decimals. They are rounded away from each other. If there is no lower bound, or both are equal,
/// only the upper one.
pub fn bounds(bounds: [Option<f64>; 2]) -> String {
    rounded_outwards(bounds, MOST_DECIMALS)
}

/// The same for a unit of the user's own, whose values may be small: `0.000120–0.000340`.
pub fn own_bounds(bounds: [Option<f64>; 2]) -> String {
    rounded_outwards(bounds, MOST_OWN_DECIMALS)
}

fn rounded_outwards([lower, upper]: [Option<f64>; 2], most_decimals: i32) -> String {
    let (Some(lower), Some(upper)) = (lower, upper) else { return upper.map_or_else(missing, significant) };
    if !(lower < upper && lower.is_finite() && upper.is_finite()) {
        return significant(upper);
    }
    let largest = lower.abs().max(upper.abs());
    let decimals = (2 - largest.log10().floor() as i32).clamp(0, most_decimals);
    let step = 10f64.powi(decimals);
    let (lower, upper) = ((lower * step).floor() / step, (upper * step).ceil() / step);
    let text = |value: f64| match decimals {
        _ if value == 0.0 => "0".to_string(),
        0 => whole(value),
        decimals => format!("{value:.decimals$}", decimals = decimals as usize).replace('-', "−"),
    };
    if lower < upper { format!("{}{}{}", text(lower), between(lower), text(upper)) } else { text(upper) }
}

/// What stands between two bounds: a dash beside the sign of a negative number would be read as another sign.
pub(crate) fn between(lower: f64) -> &'static str {
    if lower < 0.0 { " to " } else { "–" }
}

/// At most three significant digits, without trailing zeros: `0.31`, `5`, `1,200`.
pub fn short(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A count with all digits.
pub fn count(value: u64) -> String {
    grouped(value)
}

/// A load or a factor with three significant digits and no exponent: `1,234`, `12.3`, `0.12`.
pub fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return missing();
    }
    if value.abs() >= 99.95 {
        return if value < 0.0 { format!("{value:.0}") } else { count(value.round() as u64) };
    }
    match value.abs() {
        0.0 => "0".to_owned(),
        9.995.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A share as a percentage. Near 100 % it is rounded down: 100 % is printed only if nothing is missing, and 0 % only if
/// the part is 0.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return missing();
    }
    let ten_thousandths = u128::from(part) * 10_000 / u128::from(whole);
    match ten_thousandths {
        10_000 if part == whole => "100 %".to_string(),
        9_900..10_000 => format!("{}.{:02} %", ten_thousandths / 100, ten_thousandths % 100),
        0 if part > 0 => "< 0.01 %".to_string(),
        _ => format!("{} %", short(part as f64 * 100.0 / whole as f64)),
    }
}

/// A share that is known as a number, 1 for all, as a percentage; rounded as [`share`] does, `—` where it is not known.
/// What is no part of a whole, such as a metric of the user's own above 100 %, has three significant digits.
pub fn percentage(share: Option<f64>) -> String {
    known(share).map_or_else(missing, |share| match share {
        0.0..=1.0 => quantity::share(share),
        _ => format!("{} %", short(share * 100.0)),
    })
}

/// A number of cores as a percentage of one core.
pub fn cores(value: Option<f64>) -> String {
    known(value).map_or_else(missing, |cores| format!("{} %", short(cores * 100.0)))
}

/// Bytes in decimal units.
pub fn bytes(value: Option<f64>) -> String {
    let Some(value) = known(value) else { return missing() };
    for (size, symbol) in [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if value.abs() >= size {
            return format!("{} {symbol}", short(value / size));
        }
    }
    format!("{} B", short(value))
}

/// Seconds on the time axis of a run: `2 s`, `0.31 s`, `−2 s`.
pub fn seconds(value: f64) -> String {
    if value.is_finite() { format!("{} s", short(value)) } else { missing() }
}

/// A duration: `84 s`, `41 min 10 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return missing();
    }
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..3_600 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        120..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}

/// `1 device`, `2 devices`.
pub fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A figure of a comparison with its unit; `—` where it was not measured.
pub fn figure(unit: Unit, value: Option<f64>) -> String {
    let Some(value) = known(value) else { return missing() };
    match unit {
        Unit::Count => count(value as u64),
        Unit::Share => percentage(Some(value)),
        Unit::Microseconds => time(Some(value)),
        Unit::PerSecond => format!("{}/s", significant(value)),
        Unit::Cores => cores(Some(value)),
        Unit::CpuSecondsPerMillion => format!("{} s", significant(value)),
        Unit::Bytes => bytes(Some(value)),
        Unit::Number => significant(value),
    }
}

/// The same with both bounds, the lower one first; only the value if it has no lower bound, or if both are equal.
pub fn bounded_figure(unit: Unit, bounds: [Option<f64>; 2]) -> String {
    match bounds.map(known) {
        [Some(lower), Some(value)] if lower < value => {
            ColumnUnit::of(unit, lower.abs().max(value.abs())).bounds_with_symbol(bounds)
        }
        [_, value] => figure(unit, value),
    }
}

/// A value that is a number: a quotient by 0 is none, and is shown as a value that was not measured.
pub fn known(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// Text for a value that was not measured.
pub fn missing() -> String {
    MISSING.to_string()
}

/// A number without decimals, with its sign.
fn whole(value: f64) -> String {
    let digits = grouped(value.abs() as u64);
    if value < 0.0 { format!("−{digits}") } else { digits }
}

fn grouped(value: u64) -> String {
    let plain = value.to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3);
    for (position, digit) in plain.chars().enumerate() {
        if position > 0 && (plain.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_one_number_of_decimals_and_is_rounded_outwards() {
        let interval = |lower, upper| TimeUnit::Milliseconds.interval([Some(lower), Some(upper)]);
        assert_eq!(interval(18.431, 105.919), "0.018–0.106");
        assert_eq!(interval(11_949.0, 12_301.0), "11.9–12.4");
        assert_eq!(interval(1_198_700.0, 1_230_100.0), "1,198–1,231");
        assert_eq!(interval(0.0, 105.0), "0–0.105");
        assert_eq!(interval(104.2, 104.4), "0.104–0.105");
        assert_eq!(interval(17.8, 89.3), "0.017–0.090");
        assert_eq!(interval(105.0, 105.0), "0.105");
        assert_eq!(TimeUnit::Milliseconds.interval([None, Some(105.0)]), "0.105");
        assert_eq!(TimeUnit::Milliseconds.interval([None, None]), MISSING);
    }

    #[test]
    fn a_negative_bound_is_printed_as_it_is() {
        let both = |lower, upper| bounds([Some(lower), Some(upper)]);
        assert_eq!(both(-2.0, 3.0), "−2.00 to 3.00");
        assert_eq!(both(-2.0, -1.0), "−2.00 to −1.00");
        assert_eq!(both(-1_234.5, 0.0), "−1,235 to 0");
        assert_eq!(both(-0.5, 1_234.0), "−1 to 1,234");
        assert_eq!(both(-4.0, -4.0), "−4.00");
        assert_eq!([time(Some(-5e6)), bytes(Some(-2e6))], ["−5,000 ms", "−2 MB"]);
        assert_eq!(bounded_figure(Unit::Bytes, [Some(-2e6), Some(1e6)]), "−2.00 to 1.00 MB");
        assert_eq!(bounded_figure(Unit::Number, [Some(-2.5), Some(-2.5)]), "−2.50");
    }

    #[test]
    fn small_values_of_an_own_unit_keep_their_digits() {
        assert_eq!(own_bounds([Some(0.00012), Some(0.00034)]), "0.000120–0.000340");
        assert_eq!(own_bounds([Some(0.00012), Some(0.00012)]), "0.000120");
        assert_eq!(bounds([Some(0.00012), Some(0.00012)]), "0.000120", "the same as without a lower bound");
    }

    #[test]
    fn every_percentage_follows_one_rule() {
        for (share, expected) in
            [(0.999_96, "99.99 %"), (0.000_04, "< 0.01 %"), (0.0, "0 %"), (1.0, "100 %"), (0.333_3, "33.3 %")]
        {
            let column = ColumnUnit::of(Unit::Share, 1.0);
            assert_eq!([figure(Unit::Share, Some(share)), percentage(Some(share))], [expected; 2]);
            assert_eq!(column.with_symbol(share), expected);
        }
        assert_eq!(figure(Unit::Share, Some(2.5)), "250 %", "a metric of the user's own");
        assert_eq!(figure(Unit::Share, Some(-0.05)), "−5 %");
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.00841, "0.00841"),
            (0.31, "0.310"),
            (1.512, "1.51"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (12_345.0, "12,300"),
            (-2.0, "−2.00"),
            (-1234.0, "−1,230"),
            (f64::NAN, "—"),
        ] {
            assert_eq!(significant(value), expected);
        }
    }

    #[test]
    fn a_missing_value_is_a_dash_and_zero_is_zero() {
        assert_eq!(time(None), "—");
        assert_eq!(time(Some(0.0)), "0 µs");
        assert_eq!(bytes(None), "—");
        assert_eq!(share(0, 0), "—");
        assert_eq!(share(0, 5), "0 %");
    }

    #[test]
    fn what_is_no_number_is_a_dash_without_a_unit() {
        let units = [
            Unit::Count,
            Unit::Share,
            Unit::Microseconds,
            Unit::PerSecond,
            Unit::Cores,
            Unit::CpuSecondsPerMillion,
            Unit::Bytes,
            Unit::Number,
        ];
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for unit in units {
                assert_eq!(figure(unit, Some(value)), MISSING, "{unit:?}");
            }
            let texts = [
                significant(value),
                short(value),
                three_digits(value),
                time_label(value),
                seconds(value),
                duration(value),
                time(Some(value)),
                interval([Some(1.0), Some(value)]),
                TimeUnit::Seconds.with_symbol(Some(value)),
                percentage(Some(value)),
                cores(Some(value)),
                bytes(Some(value)),
            ];
            assert_eq!(texts, texts.clone().map(|_| MISSING));
        }
    }

    #[test]
    fn durations_are_shown_in_two_units() {
        for (value, expected) in [(84.2, "84 s"), (2_470.0, "41 min 10 s"), (120.0, "2 min"), (7_530.0, "2 h 5 min")] {
            assert_eq!(duration(value), expected);
        }
    }

    #[test]
    fn a_share_is_whole_only_when_it_is() {
        assert_eq!(share(10_000, 10_000), "100 %");
        assert_eq!(share(999_999, 1_000_000), "99.99 %");
        assert_eq!(share(9_999, 10_000), "99.99 %");
        assert_eq!(share(1, 1_000_000), "< 0.01 %");
        assert_eq!(share(1, 3), "33.3 %");
    }

    #[test]
    fn a_share_as_a_number_reads_like_one_of_two_counts() {
        for (part, whole) in [
            (10_000, 10_000),
            (999_999, 1_000_000),
            (999_999_999_999, 1_000_000_000_000),
            (9_999, 10_000),
            (9_950, 10_000),
            (1, 1_000_000),
            (0, 5),
            (1, 3),
            (4, 8),
        ] {
            assert_eq!(percentage(Some(part as f64 / whole as f64)), share(part, whole));
        }
        assert_eq!((percentage(Some(0.0)), percentage(None)), ("0 %".to_string(), MISSING.to_string()));
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(time(Some(31.44)), "31.4 µs");
        assert_eq!(time(Some(841.0)), "0.841 ms");
        assert_eq!(time(Some(12_000_000.0)), "12.0 s");
        assert_eq!(time_label(200.0), "200 µs");
        assert_eq!(time_label(1_000.0), "1 ms");
        assert_eq!(bytes(Some(14_300_000.0)), "14.3 MB");
    }
}
