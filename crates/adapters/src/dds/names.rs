//! Names of topics on the network. DDS has letters, digits, `_` and, since ROS 2, `/` for them; the topics of a workload have
//! any sign. What DDS has not is written as `_` and two hexadecimal digits, `_` itself too.

use std::ffi::{CStr, CString};
use std::fmt::Write;

use pubmark_cyclone::sample::Kind;

use super::settings::Topics;

/// Longest name that all implementations take, bytes.
const LONGEST: usize = 255;
const SINGLE: &CStr = c"pubmark_single";
const KEYED: &CStr = c"pubmark_keyed";
const OF_TYPE: &str = "pubmark_type/";
const OF_TOPIC: &str = "pubmark_topic/";
/// Stands for the type of devices that have none.
const NO_TYPE: &str = "other";

impl Topics {
    /// The type of its samples.
    pub(super) fn kind(self) -> Kind {
        if self == Topics::Keyed { Kind::Keyed } else { Kind::Plain }
    }

    /// The name under which a topic of the workload, of a device of that type, is published.
    pub(super) fn name(self, topic: &str, device_type: Option<&str>) -> CString {
        match self {
            Topics::Single => SINGLE.to_owned(),
            Topics::Keyed => KEYED.to_owned(),
            Topics::PerType => written(OF_TYPE, device_type.unwrap_or(NO_TYPE)),
            Topics::PerTopic => written(OF_TOPIC, topic),
        }
    }

    /// The one name that a filter's messages have; `None` if they have several, which are found when their writers are.
    pub(super) fn name_for(self, filter: &str) -> Option<CString> {
        match self {
            Topics::PerTopic if filter.contains(['+', '#']) => None,
            Topics::PerType => None,
            _ => Some(self.name(filter, None)),
        }
    }

    /// Can a topic with this name on the network have messages for a filter?
    pub(super) fn may_hold(self, name: &CStr, matches: impl Fn(&str) -> bool) -> bool {
        let Ok(name) = name.to_str() else { return false };
        match self {
            Topics::PerType => name.starts_with(OF_TYPE),
            Topics::PerTopic => name.strip_prefix(OF_TOPIC).and_then(read).is_some_and(|topic| matches(&topic)),
            Topics::Single | Topics::Keyed => false,
        }
    }

    /// Has a topic on the network messages of several topics of the workload?
    pub(super) fn is_shared(self) -> bool {
        self != Topics::PerTopic
    }
}

fn written(prefix: &str, text: &str) -> CString {
    let mut name = String::with_capacity(prefix.len() + text.len() + 8);
    name.push_str(prefix);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'/' {
            name.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "_{byte:02x}");
        }
    }
    CString::new(name).unwrap_or_default()
}

/// The topic that [`written`] wrote; `None` for a name that it would not have written.
fn read(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'_' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Can a topic or filter be expressed? Checked for the longest of the possible names, as the mapping of topics is unknown here.
pub(super) fn check(topic: &str) -> Result<(), String> {
    if topic.contains('\0') {
        return Err(format!("`{}` has a zero byte, which ends a name", topic.escape_default()));
    }
    let bytes = written(OF_TOPIC, topic).as_bytes().len();
    if bytes > LONGEST {
        return Err(format!("`{topic}` is {bytes} B as a name of a DDS topic, which has at most {LONGEST}"));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_round_trips_through_its_name() {
        for topic in ["a", "a/b", "smart-city/camera/3", "a_b", "_", "//", "ä/µ", "a b", "_5f"] {
            let name = Topics::PerTopic.name(topic, None);
            let text = name.to_str().unwrap();
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'/'), "{text}");
            assert_eq!(read(text.strip_prefix(OF_TOPIC).unwrap()).as_deref(), Some(topic));
        }
        assert_eq!(Topics::PerTopic.name("a/b-c", None).as_c_str(), c"pubmark_topic/a/b_2dc");
        assert_eq!(Topics::PerType.name("a/1", Some("city/camera")).as_c_str(), c"pubmark_type/city/camera");
        for foreign in ["_", "_5", "_zz", "a_f"] {
            assert_eq!(read(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_filter_with_wildcards_has_no_name_of_its_own() {
        assert!(Topics::PerTopic.name_for("a/+").is_none() && Topics::PerType.name_for("a").is_none());
        assert_eq!(Topics::Single.name_for("a/#").as_deref(), Some(SINGLE));
        let matches = |topic: &str| topic.starts_with("a/");
        assert!(Topics::PerTopic.may_hold(c"pubmark_topic/a/b", matches));
        assert!(!Topics::PerTopic.may_hold(c"pubmark_topic/b", matches));
        assert!(!Topics::PerTopic.may_hold(c"rt/a/b", matches));
        assert!(Topics::PerType.may_hold(c"pubmark_type/x", matches));
    }

    #[test]
    fn a_topic_without_a_name_is_refused() {
        assert_eq!(check("psmark/smart-city/camera/1"), Ok(()));
        assert!(check("a\0b").unwrap_err().contains("zero byte"));
        assert!(check(&"a-b".repeat(60)).unwrap_err().contains("at most 255"));
    }
}
