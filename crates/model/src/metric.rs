//! Metrics of the user's own: programs that compute a figure from the message log of a run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::UnitError;

/// Maximum number of metrics of one run.
pub const MOST_METRICS: usize = 32;
/// Default time limit of a program.
pub const USUAL_LIMIT: Duration = Duration::from_secs(60);
/// Maximum length of a name, characters.
const LONGEST_NAME: usize = 48;
/// Maximum length of a unit, characters.
const LONGEST_UNIT: usize = 16;
/// Maximum time limit of a program.
const LONGEST_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// A program that computes a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub struct MetricProgram {
    /// Name of the metric: lower-case letters, digits and `_`. Limits refer to it as `custom.NAME`.
    pub name: String,
    /// The program and its arguments; they are not passed to a shell.
    pub command: Vec<String>,
    /// Unit of the values, such as `ms`, `B`, `%`; a plain number if left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Time limit of the program, such as `60s`; it is stopped after this time.
    #[serde(default = "usual_limit", with = "written")]
    #[schemars(with = "String")]
    pub within: Duration,
}

fn usual_limit() -> Duration {
    USUAL_LIMIT
}

/// Durations in the form that people write.
mod written {
    use std::time::Duration;

    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&crate::units::written(*time))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        crate::units::duration(&text).map_err(|error| {
            let hint = error.hint.map_or_else(String::new, |hint| format!(": {hint}"));
            D::Error::custom(format!("{}{hint}", error.message))
        })
    }
}

impl MetricProgram {
    /// Checks a declaration.
    ///
    /// # Errors
    /// The first thing in it that cannot be used.
    pub fn check(&self) -> Result<(), UnitError> {
        let wrong = |message: String, hint: &str| Err(UnitError { message, hint: Some(hint.to_owned()) });
        let name = &self.name;
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
        if !begins || !name.chars().all(is_letter) || name.len() > LONGEST_NAME {
            return wrong(
                format!("`{name}` is no name of a metric"),
                "it begins with a small letter, and has small letters, digits and `_`, 48 at most",
            );
        }
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong(
                format!("the metric `{name}` has no command"),
                "name its program: `command: [\"python3\", \"jitter.py\"]`",
            );
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            return wrong(format!("the command of the metric `{name}` has a NUL in it"), "leave it out");
        }
        let is_symbol = |letter: char| !letter.is_control() && !letter.is_whitespace() && letter != ',';
        if self.unit.chars().count() > LONGEST_UNIT || !self.unit.chars().all(is_symbol) {
            return wrong(
                format!("`{}` is no unit", self.unit.escape_debug()),
                "write a symbol of at most 16 letters, such as `ms`, `B`, `%`, `mJ`",
            );
        }
        if self.within.is_zero() || self.within > LONGEST_LIMIT {
            return wrong(
                format!("the metric `{name}` has no time to run in"),
                "`within` is above 0 and at most `24h`",
            );
        }
        Ok(())
    }
}

/// Checks declarations together.
///
/// # Errors
/// The first one that cannot be used; two of one name, or too many.
pub fn check(metrics: &[MetricProgram]) -> Result<(), UnitError> {
    for (place, metric) in metrics.iter().enumerate() {
        metric.check()?;
        if metrics[..place].iter().any(|other| other.name == metric.name) {
            return Err(UnitError {
                message: format!("there are two metrics `{}`", metric.name),
                hint: Some("give each a name of its own".to_owned()),
            });
        }
    }
    if metrics.len() > MOST_METRICS {
        return Err(UnitError { message: format!("there are more than {MOST_METRICS} metrics"), hint: None });
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn metric(name: &str) -> MetricProgram {
        MetricProgram {
            name: name.to_owned(),
            command: vec!["true".to_owned()],
            unit: "ms".to_owned(),
            within: USUAL_LIMIT,
        }
    }

    #[test]
    fn a_declaration_that_cannot_be_used_is_refused_with_what_to_write() {
        assert_eq!(metric("jitter").check(), Ok(()));
        assert_eq!(metric("age_99").check(), Ok(()));
        type Change = fn(&mut MetricProgram);
        let wrong: [(&str, Change); 9] = [
            ("is no name", |metric| metric.name = String::new()),
            ("is no name", |metric| metric.name = "Jitter".to_owned()),
            ("is no name", |metric| metric.name = "9th".to_owned()),
            ("is no name", |metric| metric.name = "a".repeat(49)),
            ("has no command", |metric| metric.command.clear()),
            ("has no command", |metric| metric.command = vec![" ".to_owned()]),
            ("has a NUL", |metric| metric.command.push("\0".to_owned())),
            ("is no unit", |metric| metric.unit = "ms per message".to_owned()),
            ("has no time", |metric| metric.within = Duration::ZERO),
        ];
        for (words, change) in wrong {
            let mut one = metric("jitter");
            change(&mut one);
            let error = one.check().unwrap_err();
            assert!(error.message.contains(words) && error.hint.is_some(), "{words}: {error:?}");
        }
        assert!(check(&[metric("a"), metric("a")]).unwrap_err().message.contains("two metrics"));
        let many: Vec<_> = (0..=MOST_METRICS).map(|number| metric(&format!("a{number}"))).collect();
        assert!(check(&many).unwrap_err().message.contains("more than"));
    }

    #[test]
    fn a_declaration_is_written_as_it_is_read() {
        let text = r#"{"name":"jitter","command":["python3","jitter.py"],"unit":"ms","within":"1m"}"#;
        let read: MetricProgram = serde_json::from_str(text).unwrap();
        assert_eq!(read.within, Duration::from_secs(60));
        let short: MetricProgram = serde_json::from_str(r#"{"name":"jitter","command":["x"]}"#).unwrap();
        assert_eq!((short.within, &*short.unit), (USUAL_LIMIT, ""));
        let again: MetricProgram = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, read);
        let error = serde_json::from_str::<MetricProgram>(r#"{"name":"a","command":["x"],"within":"soon"}"#);
        assert!(error.unwrap_err().to_string().contains("soon"));
    }
}
