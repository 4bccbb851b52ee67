//! Topic templates and filters, in MQTT's syntax; adapters of other protocols translate them.

use serde::{Deserialize, Serialize};

/// A device's topic, in which `{workload} {group} {domain} {type} {qos} {device} {copy}` are replaced for each device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicTemplate(pub String);

/// A subscription's filter: levels by `/`, `+` for one level, a final `#` for the rest (MQTT 5.0 §4.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicFilter(pub String);

impl TopicFilter {
    /// Whether this filter matches `topic`. A leading wildcard does not match topics that start with `$` (MQTT 5.0 §4.7.2).
    pub fn matches(&self, topic: &str) -> bool {
        matches(&self.0, topic)
    }
}

fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && !filter.starts_with('$') {
        return false;
    }
    let mut wanted = filter.split('/');
    let mut levels = topic.split('/');
    loop {
        match (wanted.next(), levels.next()) {
            (Some("#"), _) => return true,
            (Some("+"), Some(_)) => {}
            (Some(a), Some(b)) if a == b => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn wildcards_match_as_the_standard_says() {
        for (filter, topic, expected) in [
            ("a/b", "a/b", true),
            ("a/+", "a/b", true),
            ("a/+", "a/b/c", false),
            ("a/#", "a", true),
            ("a/#", "a/b/c", true),
            ("#", "a/b", true),
            ("#", "$SYS/x", false),
            ("+/x", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true),
            ("+/+", "/a", true),
            ("+", "/a", false),
            ("a", "a/", false),
        ] {
            assert_eq!(matches(filter, topic), expected, "{filter} on {topic}");
        }
    }
}
