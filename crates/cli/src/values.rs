//! Values on the command line, parsed like those in workload files; clap adds its text around the messages.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_model::units;
use pubmark_record::objectives::Undecided;
use pubmark_runner::spec::text::Text;
use pubmark_systems::limits::{self, ResourceLimits};

/// Largest payload: MQTT's largest packet (MQTT 5.0 §1.5.5), less space for its header.
const LARGEST_PAYLOAD_BYTES: u32 = 268_000_000;

/// A word, its text in the help, and its value.
pub type Word<Value> = (&'static str, &'static str, Value);

/// How an undecided limit or change counts.
pub const UNDECIDED: &[Word<Undecided>] = &[("pass", "Passed", Undecided::Pass), ("fail", "Failed", Undecided::Fail)];

/// Parses one of these words.
pub fn one_of<Value>(words: &'static [Word<Value>]) -> impl TypedValueParser<Value = Value>
where
    Value: Copy + Send + Sync + 'static,
{
    let shown = words.iter().map(|(word, meaning, _)| PossibleValue::new(*word).help(*meaning));
    PossibleValuesParser::new(shown).map(|text| {
        let found = words.iter().find(|(word, ..)| *word == text);
        found.map(|(.., value)| *value).expect("clap has refused all others")
    })
}

/// Parses `500ms`, `1.5s`, `2m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    Duration::read(text)
}

/// As [`duration`], but not zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than zero".to_owned()),
        time => Ok(time),
    }
}

/// Parses resource limits.
pub fn limits(text: &str) -> Result<ResourceLimits, String> {
    limits::parse(text).map_err(|error| error.to_string())
}

/// Parses `KEY=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    Text::read(text)
}

/// Parses a factor of rates.
pub fn rate_factor(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(factor) if (1.0 / LARGEST_RATE_FACTOR..=LARGEST_RATE_FACTOR).contains(&factor) => Ok(factor),
        _ => Err(format!(
            "a factor between 1/{LARGEST_RATE_FACTOR} and {LARGEST_RATE_FACTOR} is expected, `2` for twice as often"
        )),
    }
}

/// Parses a size of payloads.
pub fn payload_bytes(text: &str) -> Result<u32, String> {
    let bytes = units::size(text).map_err(|error| match error.hint {
        Some(hint) => format!("{}: {hint}", error.message),
        None => error.message,
    })?;
    if !(1.0..=f64::from(LARGEST_PAYLOAD_BYTES)).contains(&bytes) {
        return Err(format!("a payload has 1 to {LARGEST_PAYLOAD_BYTES} bytes, not `{text}`"));
    }
    Ok(bytes.round() as u32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(duration("10").expect_err("no unit").contains("10"));
        assert!(positive_duration("0s").is_err());
    }

    #[test]
    fn factors_and_sizes_have_bounds() {
        assert_eq!((rate_factor("2").unwrap(), rate_factor("0.5x").unwrap()), (2.0, 0.5));
        assert_eq!((payload_bytes("1KB").unwrap(), payload_bytes("16").unwrap()), (1_000, 16));
        for wrong in ["0", "-1", "nan", "inf", "1e9", "fast"] {
            assert!(rate_factor(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-5", "1GB", "big", "nan"] {
            assert!(payload_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
