//! Topics in MQTT's syntax as subjects, the way the server's own MQTT gateway maps them
//! (<https://docs.nats.io/running-a-nats-service/configuration/mqtt>): `/` becomes `.`, `+` becomes `*`, `#` becomes `>`.

/// Why a topic or filter has no subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// Between two slashes, or before the first or behind the last, is nothing.
    #[error("`{0}` has an empty level, which a NATS subject cannot have")]
    EmptyLevel(String),
    /// A character has a meaning of its own.
    #[error("`{topic}` has `{character}` in it, which a NATS subject cannot have")]
    Character {
        /// The topic.
        topic: String,
        /// The character.
        character: char,
    },
}

/// The subjects for a topic or a filter: one, or two where the filter ends with `#`, which matches its parent level as well
/// while `>` does not.
pub fn subjects(topic: &str) -> Result<Vec<String>, SubjectError> {
    let mut subject = String::with_capacity(topic.len());
    let mut parent = None;
    for (index, level) in topic.split('/').enumerate() {
        let written = match level {
            "" => return Err(SubjectError::EmptyLevel(topic.to_owned())),
            "+" => "*",
            "#" => {
                parent = (index > 0).then(|| subject.clone());
                ">"
            }
            level => level,
        };
        let special = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '*' | '>');
        if let Some(character) = level.chars().find(|c| special(*c)) {
            return Err(SubjectError::Character { topic: topic.to_owned(), character });
        }
        if index > 0 {
            subject.push('.');
        }
        subject.push_str(written);
    }
    Ok([parent].into_iter().flatten().chain([subject]).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_filters_have_the_subjects_of_the_servers_gateway() {
        assert_eq!(subjects("home/kitchen/light").unwrap(), ["home.kitchen.light"]);
        assert_eq!(subjects("home/+/light").unwrap(), ["home.*.light"]);
        assert_eq!(subjects("#").unwrap(), [">"]);
        assert_eq!(subjects("home/#").unwrap(), ["home", "home.>"]);
    }

    #[test]
    fn topics_without_a_subject_are_named() {
        assert_eq!(subjects("a//b"), Err(SubjectError::EmptyLevel("a//b".to_owned())));
        assert_eq!(subjects("/a"), Err(SubjectError::EmptyLevel("/a".to_owned())));
        for topic in ["a.b", "a b", "a/b*", "a>/b", "a\tb"] {
            assert!(matches!(subjects(topic), Err(SubjectError::Character { .. })), "{topic}");
        }
    }
}
