//! Figures in sentences: three significant digits and a suitable unit.

/// Text for what is no number, such as a quotient by 0.
pub(crate) const MISSING: &str = "—";

/// A time in µs.
pub(crate) fn micros(value_us: f64) -> String {
    if !value_us.is_finite() {
        MISSING.to_string()
    } else if value_us.abs() < 1_000.0 {
        format!("{} µs", digits(value_us))
    } else if value_us.abs() < 1_000_000.0 {
        format!("{} ms", digits(value_us / 1_000.0))
    } else {
        format!("{} s", digits(value_us / 1_000_000.0))
    }
}

/// Two times (µs) in the unit that suits the longer one: `0.41–1.2 ms`.
pub(crate) fn micros_interval(lower_us: f64, upper_us: f64) -> String {
    if !upper_us.is_finite() {
        return MISSING.to_string();
    }
    let (size, symbol) = match upper_us.abs() {
        upper if upper < 1_000.0 => (1.0, "µs"),
        upper if upper < 1_000_000.0 => (1_000.0, "ms"),
        _ => (1_000_000.0, "s"),
    };
    format!("{}–{} {symbol}", digits(lower_us / size), digits(upper_us / size))
}

/// A share as a percentage; 1.0 is 100 %.
pub(crate) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{} %", digits(share * 100.0)) } else { MISSING.to_string() }
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
    for (size, symbol) in [(1e9, "GB"), (1e6, "MB"), (1e3, "KB")] {
        if value.abs() >= size {
            return format!("{} {symbol}", digits(value / size));
        }
    }
    format!("{} B", digits(value))
}

/// Three significant digits; trailing zeros of a fraction are removed.
pub(crate) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
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
        assert_eq!(micros_interval(410.0, 1_230.0), "0.41–1.23 ms");
        assert_eq!(micros_interval(2.0, 33.0), "2–33 µs");
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!([counted(1, "run", "runs"), counted(1_000, "run", "runs")], ["1 run", "1,000 runs"]);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let texts = [micros(value), micros_interval(1.0, value), percent(value), bytes(value), digits(value)];
            assert_eq!(texts, [MISSING; 5]);
        }
        assert_eq!(digits(-0.0), "0");
    }
}
