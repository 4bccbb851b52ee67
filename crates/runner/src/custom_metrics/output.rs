//! The output of a metric's program: a JSON object with the metric's name.
//!
//! ```json
//! {"jitter": 0.12}
//! {"jitter": {"lower": 0.08, "upper": 0.12, "by": {"thermostat": 0.1, "camera": {"lower": 0.2, "upper": 0.3}}}}
//! ```

use std::collections::BTreeMap;

use pubmark_record::custom::CustomBounds;
use serde_json::{Map, Value};

/// Most keys by which a metric may have values.
const MOST_KEYS: usize = 10_000;
/// Longest key, characters.
const LONGEST_KEY: usize = 256;
/// Most characters of invalid output that an error shows.
const MOST_SHOWN: usize = 80;

/// The values of a metric.
#[derive(Debug, Default, PartialEq)]
pub struct Values {
    /// Value over all messages; `None` where the program prints `null` or no value.
    pub whole: Option<CustomBounds>,
    /// Values by the keys of the program.
    pub by: BTreeMap<String, CustomBounds>,
}

/// Parses what a program printed; the error is the reason why it is not usable.
pub fn read(printed: &[u8], name: &str) -> Result<Values, String> {
    let text = String::from_utf8_lossy(printed);
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| format!("it printed no JSON object but {}: {error}", shown(text.trim())))?;
    let Value::Object(object) = document else {
        return Err(format!(
            "it printed {}, and a JSON object like {{\"{name}\": 1.5}} is expected",
            shown(text.trim())
        ));
    };
    if let Some(other) = object.keys().find(|key| *key != name) {
        return Err(format!("it printed a value of `{}`, and its metric is called `{name}`", shown(other)));
    }
    let value = object.get(name).ok_or_else(|| format!("it printed an object without `{name}`"))?;
    match value {
        Value::Null => Ok(Values::default()),
        Value::Object(fields) => of_fields(fields, name),
        value => Ok(Values { whole: Some(bounds(value, name)?), by: BTreeMap::new() }),
    }
}

/// The fields of a value: `value`, or `lower` and `upper`; and `by`.
fn of_fields(fields: &Map<String, Value>, name: &str) -> Result<Values, String> {
    if let Some(other) = fields.keys().find(|key| !["value", "lower", "upper", "by"].contains(&key.as_str())) {
        return Err(format!("`{name}` has a field `{}`: there are `value`, `lower`, `upper`, `by`", shown(other)));
    }
    let own: Map<String, Value> =
        fields.iter().filter(|(key, _)| *key != "by").map(|(key, value)| (key.clone(), value.clone())).collect();
    let whole = if own.is_empty() { None } else { Some(bounds(&Value::Object(own), name)?) };
    let parts = match fields.get("by") {
        None => return Ok(Values { whole, by: BTreeMap::new() }),
        Some(Value::Object(parts)) => parts,
        Some(other) => {
            return Err(format!("`by` of `{name}` is {}, and an object is expected", shown(&other.to_string())));
        }
    };
    if parts.len() > MOST_KEYS {
        return Err(format!("`by` of `{name}` has {} values, and at most {MOST_KEYS} are taken", parts.len()));
    }
    let by = parts.iter().map(|(key, value)| {
        if key.chars().count() > LONGEST_KEY {
            return Err(format!("`by` of `{name}` has a name of more than {LONGEST_KEY} letters: {}", shown(key)));
        }
        Ok((key.clone(), bounds(value, &format!("{name}` by `{}", shown(key)))?))
    });
    Ok(Values { whole, by: by.collect::<Result<_, String>>()? })
}

/// A number, or an object with `value`, or with `lower` and `upper`.
fn bounds(value: &Value, name: &str) -> Result<CustomBounds, String> {
    let number = |value: &Value| {
        value.as_f64().ok_or_else(|| format!("`{name}` is {}, and a number is expected", shown(&value.to_string())))
    };
    let Value::Object(fields) = value else {
        let value = number(value)?;
        return Ok(CustomBounds { lower: value, upper: value });
    };
    let (lower, upper) = match (fields.get("value"), fields.get("lower"), fields.get("upper")) {
        (Some(value), None, None) => (number(value)?, number(value)?),
        (None, Some(lower), Some(upper)) => (number(lower)?, number(upper)?),
        _ => return Err(format!("`{name}` has neither `value` nor both of `lower` and `upper`")),
    };
    if lower > upper {
        return Err(format!("`{name}` has a lower bound ({lower}) above its upper one ({upper})"));
    }
    Ok(CustomBounds { lower, upper })
}

/// The beginning of a text, without control characters.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let cut: String =
        text.chars().take(MOST_SHOWN).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().count() > MOST_SHOWN { format!("{cut}…") } else { cut }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn exactly(value: f64) -> CustomBounds {
        CustomBounds { lower: value, upper: value }
    }

    fn of(text: &str) -> Result<Values, String> {
        read(text.as_bytes(), "jitter")
    }

    #[test]
    fn a_value_is_a_number_or_two_bounds_with_or_without_parts() {
        assert_eq!(of(r#"{"jitter": 1.5}"#).unwrap(), Values { whole: Some(exactly(1.5)), by: BTreeMap::new() });
        assert_eq!(of(r#"{"jitter": null}"#).unwrap(), Values::default());
        let both =
            of(r#"{"jitter": {"lower": 1, "upper": 2, "by": {"a": 3, "b": {"lower": 4, "upper": 4.5}}}}"#).unwrap();
        assert_eq!(both.whole, Some(CustomBounds { lower: 1.0, upper: 2.0 }));
        assert_eq!(both.by["a"], exactly(3.0));
        assert_eq!(both.by["b"], CustomBounds { lower: 4.0, upper: 4.5 });
        let parts = of(r#"{"jitter": {"by": {"a": {"value": -1}}}}"#).unwrap();
        assert_eq!((parts.whole, parts.by["a"]), (None, exactly(-1.0)));
    }

    #[test]
    fn nonsense_is_named() {
        for (text, words) in [
            ("", "no JSON object but nothing"),
            ("Traceback\x1b[0m", "no JSON object but Traceback"),
            ("1.5", "a JSON object like"),
            ("{}", "without `jitter`"),
            (r#"{"age": 1}"#, "a value of `age`"),
            (r#"{"jitter": 1, "age": 1}"#, "a value of `age`"),
            (r#"{"jitter": "fast"}"#, "is \"fast\", and a number"),
            (r#"{"jitter": [1]}"#, "and a number is expected"),
            (r#"{"jitter": {"lower": 1}}"#, "neither `value` nor both"),
            (r#"{"jitter": {"lower": 2, "upper": 1}}"#, "above its upper one"),
            (r#"{"jitter": {"mean": 1}}"#, "has a field `mean`"),
            (r#"{"jitter": {"by": [1]}}"#, "an object is expected"),
            (r#"{"jitter": {"by": {"a": null}}}"#, "`jitter` by `a` is null"),
            (r#"{"jitter": NaN}"#, "no JSON object"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.chars().any(char::is_control), "{error}");
        }
        let many: String = (0..=MOST_KEYS).map(|key| format!("\"{key}\":1,")).collect();
        let error = of(&format!("{{\"jitter\": {{\"by\": {{{}}}}}}}", many.trim_end_matches(','))).unwrap_err();
        assert!(error.contains("at most 10000 are taken"), "{error}");
    }
}
