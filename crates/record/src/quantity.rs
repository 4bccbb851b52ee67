//! Figures in sentences: three significant digits and a suitable unit.

/// Text for what is no number, such as a quotient by 0.
pub(crate) const MISSING: &str = "—";

/// Significant digits of a figure in a sentence.
pub(crate) const DIGITS: usize = 3;

/// A time in µs.
pub(crate) fn micros(value_us: f64) -> String {
    if !value_us.is_finite() {
        return MISSING.to_string();
    }
    let (size, symbol) = time_unit(value_us);
    format!("{} {symbol}", digits(value_us / size))
}

/// The unit that suits a time in µs: its length in µs, and its symbol.
pub(crate) fn time_unit(value_us: f64) -> (f64, &'static str) {
    match value_us.abs() {
        value if value < 1_000.0 => (1.0, "µs"),
        value if value < 1_000_000.0 => (1_000.0, "ms"),
        _ => (1_000_000.0, "s"),
    }
}

/// A quotient as a percentage, which may be above 100 %; 1.0 is 100 %.
pub(crate) fn percent(quotient: f64) -> String {
    if quotient.is_finite() { format!("{} %", digits(quotient * 100.0)) } else { MISSING.to_string() }
}

/// A share of messages as a percentage; 1.0 is all. Near 100 % it is rounded down: 100 % is printed only if nothing is missing, and 0 %
/// only if the share is 0.
pub fn share(share: f64) -> String {
    if !share.is_finite() {
        return MISSING.to_string();
    }
    // A quotient may be the least bit below the hundredth of a percent that it stands for.
    match (share * 1e4 + 1e-6).floor() as u64 {
        _ if share >= 1.0 => "100 %".to_string(),
        // The addition must not make a whole of it.
        9_999.. => "99.99 %".to_string(),
        hundredths @ 9_900..9_999 => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
        0 if share > 0.0 => "< 0.01 %".to_string(),
        _ => percent(share),
    }
}

/// A count with thousands separated by commas.
pub(crate) fn count(value: u64) -> String {
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

/// A count with what is counted: `1 run`, `2 runs`.
pub(crate) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Bytes in decimal units.
pub(crate) fn bytes(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_string();
    }
    let (size, symbol) = size_unit(value);
    format!("{} {symbol}", digits(value / size))
}

/// The unit that suits a number of bytes: its size in bytes, and its symbol.
pub(crate) fn size_unit(value: f64) -> (f64, &'static str) {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    units.into_iter().find(|(size, _)| value.abs() >= *size).unwrap_or((1.0, "B"))
}

/// Three significant digits; trailing zeros of a fraction are removed.
pub(crate) fn digits(value: f64) -> String {
    significant(value, DIGITS)
}

/// Rounds a fraction so that the number has at most `most` significant digits, and removes trailing zeros of the fraction. Digits
/// before the point are not rounded.
pub(crate) fn significant(value: f64, most: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let most = most as i32;
    let decimals = (most - 1 - magnitude).clamp(0, 2 * most) as usize;
    without_zeros(format!("{value:.decimals$}"))
}

/// Both bounds of a value with as many decimals as the larger one needs for `most` significant digits, rounded away from each other
/// as in tables; trailing zeros of the fractions are removed.
pub(crate) fn outwards([lower, upper]: [f64; 2], most: usize) -> [String; 2] {
    let magnitude = lower.abs().max(upper.abs()).log10().floor() as i32;
    let most = most as i32;
    let decimals = (most - 1 - magnitude).clamp(0, 2 * most);
    let step = 10_f64.powi(decimals);
    // A product may be the least bit beside what it stands for.
    let rounded = [(lower * step + 1e-9).floor(), (upper * step - 1e-9).ceil()];
    // A sum with 0 has no sign of its own.
    rounded.map(|steps| without_zeros(format!("{:.decimals$}", steps / step + 0.0, decimals = decimals as usize)))
}

fn without_zeros(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit_that_fits() {
        assert_eq!(micros(8.0), "8 µs");
        assert_eq!(micros(31.25), "31.2 µs");
        assert_eq!(micros(1_234.0), "1.23 ms");
        assert_eq!(micros(2_500_000.0), "2.5 s");
        assert_eq!([bytes(999.0), bytes(9_640.0), bytes(1.2e9)], ["999 B", "9.64 kB", "1.2 GB"]);
        assert_eq!([3, 4, 6].map(|most| significant(49.9612, most)), ["50", "49.96", "49.9612"]);
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!([counted(1, "run", "runs"), counted(1_000, "run", "runs")], ["1 run", "1,000 runs"]);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!([micros(value), percent(value), bytes(value), digits(value)], [MISSING; 4]);
        }
        assert_eq!(digits(-0.0), "0");
    }

    #[test]
    fn bounds_are_rounded_away_from_each_other() {
        for (bounds, text) in [
            ([283.6, 310.2], ["283", "311"]),
            ([49.96, 50.04], ["49.9", "50.1"]),
            ([0.41, 1.23], ["0.41", "1.23"]),
            ([0.0, 104.0], ["0", "104"]),
            ([-3.0, 0.0], ["-3", "0"]),
            ([0.1 + 0.2, 0.31], ["0.3", "0.31"]),
        ] {
            assert_eq!(outwards(bounds, DIGITS), text, "{bounds:?}");
        }
    }

    #[test]
    fn a_share_is_whole_only_when_nothing_is_missing() {
        let shares = [0.9998, 0.999_999, 0.99, 0.989_96, 1.0, 0.333, 1e-6, 0.0, f64::NAN].map(share);
        assert_eq!(shares, ["99.98 %", "99.99 %", "99.00 %", "99 %", "100 %", "33.3 %", "< 0.01 %", "0 %", MISSING]);
    }
}
