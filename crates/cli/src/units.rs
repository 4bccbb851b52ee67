//! Times on the command line, read like those in workload files.

use std::time::Duration;

/// Reads `500ms`, `1.5s`, `2m`, `1h`; for clap, which puts its own words around the message.
pub fn duration(text: &str) -> Result<Duration, String> {
    pubmark_model::units::duration(text).map_err(|error| match error.hint {
        Some(hint) => format!("{}: {hint}", error.message),
        None => error.message,
    })
}

/// The same, but not zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than zero".to_owned()),
        time => Ok(time),
    }
}

/// Seconds for a sentence: `10 s`, `2.5 s`.
pub fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(duration("10").expect_err("no unit").contains("10"));
        assert!(positive_duration("0s").is_err());
        assert_eq!(seconds(Duration::from_millis(2_500)), "2.5 s");
        assert_eq!(seconds(Duration::from_secs(10)), "10 s");
    }
}
