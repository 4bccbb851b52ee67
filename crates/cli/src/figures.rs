//! Numbers for people: three significant digits, a unit, thousands apart.

pub use pubmark_report::numbers::three_digits;

/// A whole number with commas between thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in decimal units: `999 B`, `1.20 MB`.
pub fn bytes(value: f64) -> String {
    scaled(value, &["B", "KB", "MB", "GB", "TB"])
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or("");
    for next in units {
        if value < 999.5 {
            break;
        }
        value /= 1e3;
        unit = next;
    }
    format!("{} {unit}", three_digits(value))
}

/// The same as a rate: `1.20 MB/s`; `—` where there is none.
pub fn bytes_per_s(value: Option<f64>) -> String {
    value.map_or_else(|| "—".to_owned(), |value| format!("{}/s", bytes(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept() {
        for (value, text) in
            [(0.0, "0"), (1.234, "1.23"), (12.34, "12.3"), (99.96, "100"), (147.71, "148"), (12_345.6, "12,346")]
        {
            assert_eq!(three_digits(value), text);
        }
    }

    #[test]
    fn bytes_take_the_unit_that_fits() {
        assert_eq!(bytes(16.0), "16.0 B");
        assert_eq!(bytes(999.6), "1.00 KB");
        assert_eq!(bytes_per_s(Some(24_200_000.0)), "24.2 MB/s");
        assert_eq!(bytes_per_s(None), "—");
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
    }
}
