//! Topics in MQTT's syntax as routing keys and binding keys of a topic exchange (§3.1.3.3), the way RabbitMQ's MQTT plug-in
//! maps them (<https://www.rabbitmq.com/docs/mqtt>): `/` becomes `.`, `+` becomes `*`, `#` stays and means the same: any
//! number of words, none included.

use pubmark_model::topic::TopicFilter;

/// Longest routing key, bytes (a short string).
pub const LONGEST_BYTES: usize = 255;

/// Why a topic or filter has no routing key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingKeyError {
    /// A character has a meaning of its own.
    #[error("`{topic}` has `{character}` in it, which a word of an AMQP 0-9-1 routing key cannot have")]
    Character {
        /// The topic.
        topic: String,
        /// The character.
        character: char,
    },
    /// Longer than [`LONGEST_BYTES`].
    #[error("`{topic}` has {bytes} B, an AMQP 0-9-1 routing key at most {LONGEST_BYTES}")]
    TooLong {
        /// The topic.
        topic: String,
        /// Its bytes.
        bytes: usize,
    },
}

/// The routing key of a topic, or the binding key of a filter.
pub fn routing_key(topic: &str) -> Result<String, RoutingKeyError> {
    if topic.len() > LONGEST_BYTES {
        return Err(RoutingKeyError::TooLong { topic: topic.to_owned(), bytes: topic.len() });
    }
    let mut key = String::with_capacity(topic.len());
    for (index, level) in topic.split('/').enumerate() {
        if index > 0 {
            key.push('.');
        }
        match level {
            "+" => key.push('*'),
            "#" => key.push('#'),
            level => match level.chars().find(|character| matches!(character, '.' | '*' | '#')) {
                None => key.push_str(level),
                Some(character) => return Err(RoutingKeyError::Character { topic: topic.to_owned(), character }),
            },
        }
    }
    Ok(key)
}

/// Does a subscription to that filter receive a message with this topic? As in MQTT, except that a leading wildcard matches
/// topics that begin with `$`, too (MQTT 5.0 §4.7.2).
pub fn filter_matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') {
        // Behind another level a `$` has no meaning.
        return TopicFilter(format!("/{filter}")).matches(&format!("/{topic}"));
    }
    TopicFilter(filter.to_owned()).matches(topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_filters_have_the_keys_of_the_plug_in() {
        for (topic, key) in [
            ("a/b", "a.b"),
            ("a/+/c", "a.*.c"),
            ("a/#", "a.#"),
            ("#", "#"),
            ("a//b", "a..b"),
            ("/a", ".a"),
            ("a b", "a b"),
        ] {
            assert_eq!(routing_key(topic).as_deref(), Ok(key));
        }
    }

    #[test]
    fn topics_without_a_routing_key_are_named() {
        for (topic, character) in [("a.b", '.'), ("a/b*", '*'), ("a/*", '*'), ("a/b#c", '#')] {
            let topic = topic.to_owned();
            assert_eq!(routing_key(&topic), Err(RoutingKeyError::Character { topic, character }));
        }
        let longest = "a".repeat(255);
        assert!(routing_key(&longest).is_ok());
        assert!(matches!(routing_key(&(longest + "a")), Err(RoutingKeyError::TooLong { bytes: 256, .. })));
    }

    #[test]
    fn filters_choose_as_mqtt_says_but_for_a_leading_dollar() {
        for (filter, topic, expected) in [
            ("a/#", "a", true),
            ("a/+", "a/b/c", false),
            ("#", "$a/b", true),
            ("+/b", "$a/b", true),
            ("$a/#", "$a/b", true),
            ("a/#", "$a/b", false),
        ] {
            assert_eq!(filter_matches(filter, topic), expected, "{filter} {topic}");
        }
    }
}
