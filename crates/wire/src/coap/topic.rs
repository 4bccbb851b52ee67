//! Topics as paths: `a/b` is the resource `/ps/a/b`, a level is a Uri-Path segment.
//!
//! `+` and `#` are segments like any other to CoAP; our own broker treats them as MQTT's wildcards.

use super::message::Message;
use super::option::number::URI_PATH;
use super::write::Writer;

/// First segment of every topic's path, under which the draft's broker has its topics.
pub const ROOT: &str = "ps";
/// Bytes of a topic at most: with a block and all options it stays below what a datagram can be.
pub const LONGEST_TOPIC_BYTES: usize = 1_024;
/// Bytes of a segment at most (RFC 7252 §5.10, table 4).
const LONGEST_LEVEL_BYTES: usize = 255;

/// Why a topic is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// A level that means another one (RFC 7252 §5.10.1).
    #[error("`{0}` has a level `.` or `..`, which no path segment may be")]
    Dots(String),
    /// A level longer than a segment.
    #[error("`{0}` has a level of more than {LONGEST_LEVEL_BYTES} B, the longest path segment")]
    Level(String),
    /// Longer than we take.
    #[error("a topic of {0} B, more than {LONGEST_TOPIC_BYTES}")]
    Long(usize),
}

/// Can a topic or filter be a path?
///
/// # Errors
/// See [`TopicError`].
pub fn check_topic(topic: &str) -> Result<(), TopicError> {
    if topic.len() > LONGEST_TOPIC_BYTES {
        return Err(TopicError::Long(topic.len()));
    }
    match topic.split('/').find(|level| matches!(*level, "." | "..") || level.len() > LONGEST_LEVEL_BYTES) {
        Some("." | "..") => Err(TopicError::Dots(topic.to_owned())),
        Some(_) => Err(TopicError::Level(topic.to_owned())),
        None => Ok(()),
    }
}

/// Appends the path of a topic that [`check_topic`] took.
pub fn encode_path(writer: &mut Writer<'_>, topic: &str) {
    writer.option(URI_PATH, ROOT.as_bytes());
    encode_levels(writer, topic);
}

/// Appends a topic that [`check_topic`] accepted as a path of its own, without a root: without a broker, a topic is a resource.
pub fn encode_levels(writer: &mut Writer<'_>, topic: &str) {
    for level in topic.split('/') {
        writer.option(URI_PATH, level.as_bytes());
    }
}

/// Appends the topic of a message's path to `topic`; false if the path is not below the root, not UTF-8, or one that
/// [`check_topic`] refuses.
pub fn decode_topic(message: &Message<'_>, topic: &mut String) -> bool {
    let mut segments = message.options.all(URI_PATH);
    segments.next() == Some(ROOT.as_bytes()) && decode_segments(segments, topic)
}

/// The same for a path below no root.
pub fn decode_levels(message: &Message<'_>, topic: &mut String) -> bool {
    decode_segments(message.options.all(URI_PATH), topic)
}

fn decode_segments<'a>(segments: impl Iterator<Item = &'a [u8]>, topic: &mut String) -> bool {
    let (start, mut count) = (topic.len(), 0);
    for (index, segment) in segments.enumerate() {
        match std::str::from_utf8(segment) {
            Ok(level) if !level.contains('/') => {
                if index > 0 {
                    topic.push('/');
                }
                topic.push_str(level);
            }
            _ => return false,
        }
        count += 1;
        if topic.len() - start > LONGEST_TOPIC_BYTES {
            return false;
        }
    }
    count > 0 && check_topic(&topic[start..]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coap::{Code, Kind, decode};

    #[test]
    fn a_topic_round_trips_through_its_path_with_and_without_the_root() {
        for topic in ["a", "a//b", "", "/"] {
            let (mut below, mut alone) = (Vec::new(), Vec::new());
            encode_path(&mut Writer::new(Kind::Confirmable, Code::PUT, 1, &[], &mut below), topic);
            encode_levels(&mut Writer::new(Kind::Confirmable, Code::FETCH, 1, &[], &mut alone), topic);
            let (mut from_below, mut from_alone) = (String::new(), String::new());
            assert!(decode_topic(&decode(&below).expect("a message"), &mut from_below));
            assert!(decode_levels(&decode(&alone).expect("a message"), &mut from_alone));
            assert_eq!((from_below.as_str(), from_alone.as_str()), (topic, topic));
            assert!(!decode_topic(&decode(&alone).expect("a message"), &mut from_below), "it is below no root");
        }
    }

    #[test]
    fn levels_that_no_segment_may_be_are_refused() {
        assert_eq!(check_topic("a//b/+/#"), Ok(()));
        assert!(matches!(check_topic("a/../b"), Err(TopicError::Dots(_))));
        assert!(matches!(check_topic(&"x".repeat(256)), Err(TopicError::Level(_))));
        assert!(matches!(check_topic(&"x/".repeat(600)), Err(TopicError::Long(1_200))));
    }
}
