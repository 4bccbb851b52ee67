//! Topics and filters in MQTT's syntax as Zenoh's key expressions (zenoh.io/docs/manual/abstractions, "Key Expression").

use ::zenoh::key_expr::KeyExpr;

/// Characters that have a meaning of their own in a key expression, or none at all.
const RESERVED: [char; 4] = ['*', '$', '?', '#'];

/// The key expression for a topic or filter: `+` is `*`, a last `#` is `**`, which matches no level, too.
///
/// # Errors
/// Why there is none, as text that quotes the topic.
pub fn key_expression(topic: &str) -> Result<KeyExpr<'static>, String> {
    let mut key = String::with_capacity(topic.len() + 2);
    let mut levels = topic.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_last = levels.peek().is_none();
        match level {
            "" => return Err(format!("`{topic}` has an empty level: a key expression has none")),
            "+" => key.push('*'),
            "#" if is_last => key.push_str("**"),
            _ if level.starts_with('@') => {
                return Err(format!("`{topic}` has a level that begins with `@`: no wildcard matches it"));
            }
            _ => match level.chars().find(|character| RESERVED.contains(character)) {
                Some(reserved) => return Err(format!("`{topic}` has `{reserved}` in it, which means something else")),
                None => key.push_str(level),
            },
        }
        if !is_last {
            key.push('/');
        }
    }
    KeyExpr::try_from(key).map_err(|error| format!("`{topic}` is no key expression: {error}"))
}

/// Can a topic or filter be expressed?
pub fn check(topic: &str) -> Result<(), String> {
    key_expression(topic).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::topic::TopicFilter;

    use super::*;

    #[test]
    fn filters_are_translated() {
        for (filter, key) in
            [("a/b", "a/b"), ("+", "*"), ("a/+/c", "a/*/c"), ("#", "**"), ("a/#", "a/**"), ("+/+/#", "*/*/**")]
        {
            assert_eq!(key_expression(filter).unwrap().as_str(), key, "{filter}");
        }
    }

    #[test]
    fn an_inexpressible_topic_is_an_error_with_a_reason() {
        for (topic, word) in [
            ("", "empty level"),
            ("/a", "empty level"),
            ("a/", "empty level"),
            ("a//b", "empty level"),
            ("a/b*", "`*`"),
            ("$SYS/a", "`$`"),
            ("a/what?", "`?`"),
            ("a/#/b", "`#`"),
            ("a/b#", "`#`"),
            ("@/a", "`@`"),
        ] {
            let why = check(topic).unwrap_err();
            assert!(why.contains(word) && why.contains(&format!("`{topic}`")), "{topic}: {why}");
        }
    }

    #[test]
    fn a_key_expression_matches_what_the_filter_matches() {
        let topics = ["a", "b", "a/b", "a/b/c", "b/b", "a/ü", "a/b c/d"];
        for filter in ["a", "+", "#", "a/+", "a/#", "+/b", "+/b/#", "a/b/#", "+/+/+"] {
            for topic in topics {
                let expected = TopicFilter(filter.to_owned()).matches(topic);
                assert_eq!(
                    key_expression(filter).unwrap().includes(&key_expression(topic).unwrap()),
                    expected,
                    "{filter} {topic}"
                );
            }
        }
    }
}
