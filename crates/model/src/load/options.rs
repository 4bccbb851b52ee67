//! Validates what only some protocols have: shared groups of subscribers, wills of devices, settings of MQTT.

use std::time::Duration;

use super::diagnostic::{Problem, ProblemKind, Span};
use super::raw::{HeaderWord, RawGroup, RawMqtt, RawWill};
use super::shape::{AnyText, DurationText, Form, Named, OneOrMany, Spanned, Text};
use super::{topics, value};
use crate::payload::{HEADER_PROPERTY, HeaderPlace, MOST_PROPERTIES};
use crate::qos::Qos;
use crate::units;
use crate::workload::{MqttSettings, SessionKind, WILL_HEADER_BYTES, Will};

/// Maximum size of a will: the length field in MQTT has two bytes (MQTT 5.0 §3.1.3.4).
const LARGEST_WILL_BYTES: u32 = 65_535;
/// Default size of a will, which only identifies the device.
const USUAL_WILL_BYTES: u32 = 16;
/// Maximum length of the name or value of a user property, bytes.
const LONGEST_PROPERTY: usize = 200;
/// Maximum length of a shared group's name.
const LONGEST_NAME: usize = 64;

/// The shared group of a subscriber group. Its name is part of a filter (`$share/NAME/…`, MQTT 5.0 §4.8.2), so it must not
/// contain `/`, `+` or `#`.
pub(crate) fn shared(name: &Spanned<String>, filters: &OneOrMany<Spanned<String>>) -> Result<String, Problem> {
    let text = &name.value;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(is_plain) {
        let shown: String = text.chars().take(60).collect();
        return Err(Problem::new(ProblemKind::BadName, format!("`{shown}` cannot be the name of a shared group"))
            .at(name.span, "not a name")
            .help(format!("up to {LONGEST_NAME} letters, digits, `-` and `_`, for instance `shared: workers`")));
    }
    match filters.0.iter().find(|filter| filter.value.contains("{index}")) {
        None => Ok(text.clone()),
        Some(filter) => Err(Problem::new(ProblemKind::Conflict, "members of a shared group have the same filters")
            .at(filter.span, "`{index}` makes one for each member")
            .at(name.span, "the members share this")
            .help("leave `{index}` out, or leave `shared` out")),
    }
}

/// The will of a device group.
pub(crate) fn will(raw: &RawGroup, session: SessionKind) -> Result<Option<Will>, Problem> {
    match &raw.will {
        Some(Form::Full(will)) => full_will(&will.value, session).map(Some),
        Some(Form::Short(_)) | None => Ok(None),
    }
}

fn full_will(raw: &RawWill, session: SessionKind) -> Result<Will, Problem> {
    let delay = raw.delay.as_ref().map_or(Ok(0), |delay| seconds(delay, 0, "a will's delay"))?;
    if let Some(text) = raw.delay.as_ref().filter(|_| delay > 0 && session == SessionKind::Clean) {
        return Err(Problem::new(ProblemKind::Conflict, "the delay of a will ends with the session")
            .at(text.span, "a clean session ends with its connection (MQTT 5.0 §3.1.3.2.2)")
            .help("add `session: persistent`, or leave `delay` out"));
    }
    Ok(Will {
        topic: topics::template(&raw.topic)?,
        payload_bytes: raw.payload.as_ref().map_or(Ok(USUAL_WILL_BYTES), |size| {
            let bytes = value::unit(size, units::size)?;
            let fits = (f64::from(WILL_HEADER_BYTES)..=f64::from(LARGEST_WILL_BYTES)).contains(&bytes);
            match fits {
                true => Ok(bytes.round() as u32),
                false => Err(value::impossible(format!("a will cannot have {} B", bytes.round()))
                    .at(size.span, "out of range")
                    .help(format!("it has {WILL_HEADER_BYTES} B, which say whose it is, to {LARGEST_WILL_BYTES} B"))),
            }
        })?,
        qos: raw.qos.as_ref().map_or(Ok(Qos::BestEffort), value::qos)?,
        retain: raw.retain.as_ref().is_some_and(|retain| retain.value),
        delay: Duration::from_secs(delay.into()),
    })
}

/// Position of the header. A will has its header in the payload, so the two cannot be combined.
pub(crate) fn header(raw: &RawGroup) -> Result<HeaderPlace, Problem> {
    let place = match raw.header.as_ref().map(|word| word.value) {
        Some(HeaderWord::UserProperty) => HeaderPlace::UserProperty,
        Some(HeaderWord::Payload) | None => HeaderPlace::Payload,
    };
    match &raw.will {
        Some(Form::Full(will)) if place == HeaderPlace::UserProperty => {
            Err(Problem::new(ProblemKind::Conflict, "a will has its header in its payload")
                .at(will.span, "`header: user-property` leaves payloads without one")
                .help("leave `will` or `header` out"))
        }
        _ => Ok(place),
    }
}

/// User properties of messages.
pub(crate) fn properties(
    raw: Option<&Named<Text<AnyText>>>,
    group: &Spanned<String>,
) -> Result<Vec<(String, String)>, Problem> {
    let properties = raw.map(|named| named.0.as_slice()).unwrap_or_default();
    if properties.len() > MOST_PROPERTIES {
        return Err(value::too_many("properties", properties.len() as u64, MOST_PROPERTIES as u64, group.span));
    }
    let is_key =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let is_value = |text: &str| text.chars().all(|letter| !letter.is_control());
    for (key, value) in properties {
        let (name, text) = (key.value.as_str(), value.text.as_str());
        if name.is_empty() || name.len() > LONGEST_PROPERTY || !is_key(name) || name == HEADER_PROPERTY {
            return Err(Problem::new(ProblemKind::BadName, format!("`{name}` cannot be the name of a user property"))
                .at(key.span, "not a name")
                .help(format!(
                    "up to {LONGEST_PROPERTY} letters, digits, `-`, `_` and `.`; `{HEADER_PROPERTY}` is that of the header"
                )));
        }
        if text.len() > LONGEST_PROPERTY || !is_value(text) || text.trim() != text {
            return Err(value::impossible(format!("the value of `{name}` cannot be one of a user property"))
                .at(value.span, "not a value")
                .help(format!("up to {LONGEST_PROPERTY} B on one line, without spaces around it")));
        }
    }
    Ok(properties.iter().map(|(key, value)| (key.value.clone(), value.text.clone())).collect())
}

/// Settings of MQTT.
pub(crate) fn mqtt(raw: Option<&RawMqtt>) -> Result<MqttSettings, Problem> {
    let Some(raw) = raw else { return Ok(MqttSettings::default()) };
    let expiry = |text| seconds(text, 1, "a message's expiry");
    let expiry = raw.message_expiry.as_ref().map(expiry).transpose()?;
    Ok(MqttSettings {
        message_expiry: expiry.map(|seconds| Duration::from_secs(seconds.into())),
        topic_alias: raw.topic_alias.as_ref().is_some_and(|word| word.value),
    })
}

/// A time that is sent as whole seconds in four bytes.
fn seconds(text: &Text<DurationText>, least: u32, what: &str) -> Result<u32, Problem> {
    let time = value::duration(text)?;
    match u32::try_from(time.as_secs()) {
        Ok(seconds) if seconds >= least && time.subsec_nanos() == 0 => Ok(seconds),
        _ => {
            Err(value::impossible(format!("{what} is a number of whole seconds from {least} on, not `{}`", text.text))
                .at(text.span, "cannot be said in MQTT")
                .help("write for instance `10s`"))
        }
    }
}

/// Two subscriber groups cannot be one shared group: its members have the same filters and QoS.
pub(crate) fn shared_twice(name: &str, again: Span, first: Span) -> Problem {
    Problem::new(ProblemKind::BadName, format!("two subscriber groups share as `{name}`"))
        .at(again, "again")
        .at(first, "first used here")
        .help(
            "give each a name of its own; members of one shared group stand in one subscriber group, with its `count`",
        )
}
