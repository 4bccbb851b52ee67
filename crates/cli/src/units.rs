//! Times on the command line.

use std::time::Duration;

/// Units of time, as they are written, in nanoseconds.
const UNITS: [(&str, f64); 6] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];
/// Longest time taken: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Reads `500ms`, `1.5s`, `2m`, `1h`; for clap, which puts its own words around the message.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let Ok(value) = number.parse::<f64>() else {
        return Err("a time is a number and a unit, for instance 500ms, 10s, 1.5m, 1h".to_owned());
    };
    if unit.is_empty() && value != 0.0 {
        return Err(format!("the unit is missing: `{text}s` for seconds"));
    }
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit || unit.is_empty()) else {
        return Err(format!("`{unit}` is not a unit of time; there are ns, us, ms, s, m, h"));
    };
    let nanoseconds = value * scale;
    if nanoseconds > LONGEST.as_nanos() as f64 {
        return Err("longer than a year".to_owned());
    }
    Ok(Duration::from_nanos(nanoseconds.round() as u64))
}

/// The same, but not zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than zero".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, milliseconds) in [("500ms", 500), ("1.5s", 1_500), ("2m", 120_000), ("1h", 3_600_000), ("0", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn wrong_times_say_why() {
        for (text, reason) in [
            ("10", "`10s` for seconds"),
            ("10 sec", "is not a unit"),
            ("10sec", "is not a unit"),
            ("-1s", "a number and a unit"),
            ("", "a number and a unit"),
            ("1.2.3s", "a number and a unit"),
            ("9999999h", "longer than a year"),
        ] {
            let error = duration(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(positive_duration("0s").is_err());
    }
}
