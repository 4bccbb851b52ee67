//! Filter for entries of a list.

use crate::headline::Headline;

/// A key of `key=value`, the function that reads its values from an entry, and all values that there are; empty if they are
/// not known.
type Key = (&'static str, fn(&Headline) -> Vec<String>, &'static [&'static str]);

/// All keys. A new key is a row here, and a word in the help.
const KEYS: &[Key] = &[
    ("folder", |entry| vec![entry.folder.clone()], &[]),
    ("kind", |entry| vec![entry.kind.as_str().to_owned()], &["run", "experiment", "capacity", "choice"]),
    ("workload", |entry| entry.workload.clone(), &[]),
    ("variant", |entry| entry.variant.iter().cloned().collect(), &[]),
    ("system", |entry| entry.system.clone(), &[]),
    ("protocol", |entry| entry.protocol.clone(), &[]),
    ("qos", |entry| entry.qos.clone(), &[]),
    ("verdict", verdict, &["valid", "suspect", "invalid"]),
    ("status", |entry| vec![entry.status_word().to_owned()], &["complete", "interrupted", "running"]),
    ("reason", |entry| entry.reasons.clone(), &[]),
];

fn verdict(entry: &Headline) -> Vec<String> {
    entry.verdict.iter().map(|verdict| verdict.as_str().to_owned()).collect()
}

/// A filter that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The key is not known.
    #[error("there is no key `{0}` to filter by")]
    NoKey(String),
    /// There is no value after the sign.
    #[error("`{0}=` has no value")]
    NoValue(String),
    /// No entry can have the value.
    #[error("there is no {key} `{value}`")]
    NoSuchValue {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The values that there are.
        known: &'static [&'static str],
    },
}

impl FilterError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            FilterError::NoKey(_) => {
                let keys = KEYS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
                format!("the keys are {keys}")
            }
            FilterError::NoSuchValue { known, .. } => format!("there are {}", known.join(", ")),
            FilterError::NoValue(key) => format!(
                "write what it shall be, as in `{key}=…`; several with commas between them: `verdict=valid,suspect`"
            ),
        }
    }
}

/// Conditions that an entry must all meet.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    words: Vec<String>,
    values: Vec<(&'static Key, Vec<String>)>,
    /// Earliest start, as a prefix of RFC 3339.
    pub since: Option<String>,
}

impl Filter {
    /// Parses words and `key=value`.
    ///
    /// # Errors
    /// A key is not known, or has no value, or one that no entry can have.
    pub fn read(arguments: &[String]) -> Result<Filter, FilterError> {
        let mut filter = Filter::default();
        for argument in arguments {
            match argument.split_once('=') {
                Some((key, value)) => filter.require(key, value)?,
                None => filter.words.push(argument.to_lowercase()),
            }
        }
        Ok(filter)
    }

    /// Adds `key=value`; several values are separated by commas.
    ///
    /// # Errors
    /// The key is not known, or there is no value, or none that an entry can have.
    pub fn require(&mut self, key: &str, values: &str) -> Result<(), FilterError> {
        let Some(known) = KEYS.iter().find(|(name, ..)| *name == key) else {
            return Err(FilterError::NoKey(key.to_owned()));
        };
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_lowercase()).collect();
        if values.iter().any(String::is_empty) {
            return Err(FilterError::NoValue(key.to_owned()));
        }
        let (key, _, all) = *known;
        if let Some(value) = values.iter().find(|value| !all.is_empty() && !all.contains(&value.as_str())) {
            return Err(FilterError::NoSuchValue { key, value: value.clone(), known: all });
        }
        self.values.push((known, values));
        Ok(())
    }

    /// Whether the filter has no conditions.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.values.is_empty() && self.since.is_none()
    }

    /// The conditions, as a user would type them.
    pub fn words(&self) -> String {
        let values = self.values.iter().map(|((key, ..), values)| format!("{key}={}", values.join(",")));
        let since = self.since.iter().map(|since| format!("--since {since}"));
        let all = self.words.iter().cloned().chain(values).chain(since);
        all.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" and ")
    }

    /// Whether the entry meets all conditions.
    pub fn matches(&self, entry: &Headline) -> bool {
        self.matches_with(entry, &[])
    }

    /// The same, but a word may also occur in one of these texts.
    pub fn matches_with(&self, entry: &Headline, texts: &[&str]) -> bool {
        let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
        let has = |(key, wanted): &(&Key, Vec<String>)| {
            key.1(entry).iter().any(|value| wanted.contains(&value.to_lowercase()))
        };
        let is_value = |word: &str| {
            KEYS.iter().any(|(_, values, _)| values(entry).iter().any(|value| value.to_lowercase().contains(word)))
        };
        let contains = |word: &String| is_value(word) || texts.iter().any(|text| text.contains(word.as_str()));
        self.since.as_ref().is_none_or(|since| entry.started_at >= *since)
            && self.values.iter().all(has)
            && self.words.iter().all(contains)
    }
}

/// Whether a word is a path and no filter. What is listed contains no path.
pub fn is_path(word: &str) -> bool {
    let starts = ["/", "./", "../", "~/"];
    word == "." || word == ".." || starts.iter().any(|start| word.starts_with(start)) || word.ends_with('/')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::headline::Kind;
    use crate::record::{Status, VerdictStatus};

    fn entry() -> Headline {
        Headline {
            folder: "20260301-090507-smart-home".to_owned(),
            kind: Kind::Run,
            started_at: "2026-03-01T09:05:12Z".to_owned(),
            status: Status::Complete,
            workload: vec!["smart-home".to_owned()],
            variant: Some("corrected".to_owned()),
            system: vec!["mosquitto".to_owned()],
            protocol: vec!["mqtt5".to_owned()],
            qos: vec!["0".to_owned()],
            expected: Some(10),
            delivered: Some(10),
            delivered_share: Some(1.0),
            latency: None,
            holds_per_s: None,
            objectives: None,
            cells: None,
            runs_planned: None,
            runs_counted: None,
            verdict: Some(VerdictStatus::Suspect),
            reasons: vec!["V02".to_owned()],
            qualify: vec![],
            recommended: None,
            in_progress: false,
        }
    }

    #[test]
    fn a_word_may_be_in_a_text_beside_the_entry() {
        let filter =
            |words: &[&str]| Filter::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap();
        let texts = ["New Switch in the rack"];
        assert!(filter(&["switch", "mosquitto"]).matches_with(&entry(), &texts));
        assert!(!filter(&["switch", "nats"]).matches_with(&entry(), &texts));
        assert!(!filter(&["switch"]).matches(&entry()));
        assert!(!filter(&["workload=switch"]).matches_with(&entry(), &texts), "a key has values of its own");
    }

    fn matches(arguments: &[&str]) -> bool {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        Filter::read(&arguments).unwrap().matches(&entry())
    }

    #[test]
    fn all_requirements_must_be_met() {
        for met in
            [&[][..], &["mosq"], &["Home", "mqtt"], &["system=mosquitto"], &["verdict=valid,suspect", "reason=v02"]]
        {
            assert!(matches(met), "{met:?}");
        }
        for missed in [&["nats"][..], &["mosq", "nats"], &["system=mosq"], &["verdict=valid"], &["qos=1"]] {
            assert!(!matches(missed), "{missed:?}");
        }
    }

    #[test]
    fn an_entry_of_the_same_moment_counts_as_later() {
        for (since, met) in [("2026-03-01", true), ("2026-03-01T09:05:12Z", true), ("2026-03-01T09:06", false)] {
            let filter = Filter { since: Some(since.to_owned()), ..Filter::default() };
            assert_eq!(filter.matches(&entry()), met, "{since}");
        }
    }

    #[test]
    fn a_wrong_key_names_the_right_ones() {
        let error = Filter::read(&["sistem=nats".to_owned()]).unwrap_err();
        assert!(error.hint().contains("system"));
        assert!(Filter::read(&["system=".to_owned()]).is_err());
    }

    #[test]
    fn a_value_that_no_entry_can_have_is_refused_with_those_that_there_are() {
        let refused = |argument: &str| Filter::read(&[argument.to_owned()]).err();
        let error = refused("verdict=valid,good").unwrap();
        assert_eq!(error.to_string(), "there is no verdict `good`");
        assert_eq!(error.hint(), "there are valid, suspect, invalid");
        assert!(refused("kind=search").is_some() && refused("status=done").is_some());
        for argument in ["verdict=Valid", "kind=choice", "status=running", "system=good", "reason=V02"] {
            assert_eq!(refused(argument), None, "{argument}");
        }
        // The values in the table are those of the entries.
        let mut entry = entry();
        for kind in [Kind::Run, Kind::Experiment, Kind::Capacity, Kind::Choice] {
            assert_eq!(refused(&format!("kind={}", kind.as_str())), None);
        }
        for verdict in [VerdictStatus::Valid, VerdictStatus::Suspect, VerdictStatus::Invalid] {
            assert_eq!(refused(&format!("verdict={}", verdict.as_str())), None);
        }
        for (status, in_progress) in [(Status::Complete, false), (Status::Interrupted, false), (Status::Complete, true)]
        {
            (entry.status, entry.in_progress) = (status, in_progress);
            assert_eq!(refused(&format!("status={}", entry.status_word())), None);
        }
    }

    #[test]
    fn a_path_is_not_searched_for() {
        for word in ["/nonexistent", "./runs", "../runs", "~/runs", "runs/", "."] {
            assert!(is_path(word), "{word}");
        }
        for word in ["mosquitto", "smart-home", "verdict=valid", "n/a"] {
            assert!(!is_path(word), "{word}");
        }
    }
}
