//! Names of streams, consumers and inboxes: letters that are special to the server are written by their number, so that two
//! topics or clients never share one.

use pubmark_wire::nats::subjects;

/// Start of the names of streams.
const STREAM_PREFIX: &str = "PUBMARK_";

/// A text as part of a name: letters, digits and `-` as they are, every other byte as `_` and two hexadecimal digits.
pub fn escaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("_{byte:02X}"));
        }
    }
    name
}

fn first_level(topic: &str) -> &str {
    topic.split_once('/').map_or(topic, |(level, _)| level)
}

/// The stream that stores a topic's messages, or those that a filter matches: one for each first level.
pub fn stream(topic: &str) -> String {
    format!("{STREAM_PREFIX}{}", escaped(first_level(topic)))
}

/// All subjects of a topic's stream.
pub fn stream_subjects(topic: &str) -> Vec<String> {
    let level = first_level(topic);
    vec![level.to_owned(), format!("{level}.>")]
}

/// Has a topic or filter a subject, and a stream?
pub fn check_topic(topic: &str) -> Result<(), String> {
    subjects(topic).map_err(|error| error.to_string())?;
    match first_level(topic) {
        "+" | "#" => Err(format!("`{topic}` has a wildcard in its first level, by which streams are made")),
        level if level.starts_with('$') || level == "_INBOX" => {
            Err(format!("`{topic}` begins with `{level}`, which the server keeps for itself"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn two_topics_share_a_stream_only_with_their_first_level() {
        assert_eq!(stream("home/a/b"), "PUBMARK_home");
        assert_eq!(stream("home"), stream("home/#"));
        assert_ne!(stream("a_b"), stream("a-b"));
        assert_ne!(stream("a_5Fb"), stream("a_b"));
        assert_eq!(stream_subjects("home/a"), ["home", "home.>"]);
    }

    #[test]
    fn filters_over_all_streams_cannot_be_expressed() {
        assert_eq!(check_topic("home/+/#"), Ok(()));
        for wrong in ["#", "+/a", "a.b", "$JS/API", "_INBOX/x"] {
            assert!(check_topic(wrong).is_err(), "{wrong}");
        }
    }
}
