//! Shared groups, wills, settings of MQTT: what is accepted, and what is refused with which error.

use std::time::Duration;

use pubmark_model::load::{self, LoadOptions, ProblemKind};
use pubmark_model::plan::{Plan, PlanOptions};
use pubmark_model::qos::Qos;
use pubmark_model::workload::{MqttSettings, Will};

use super::{group, read, refused};

const WHOLE: &str = "every: 1s\npayload: 100B";

fn with_subscribers(lines: &str) -> String {
    format!("name: t\ndevices:\n  - {{name: a, every: 1s, payload: 100B, topic: t}}\nsubscribers:\n  - {lines}\n")
}

fn assert_refused(text: &str, kind: ProblemKind, underlined: &str, hint: &str) {
    let diagnostic = refused(text);
    assert_eq!(diagnostic.kind(), kind, "{diagnostic}");
    assert_eq!(diagnostic.underlined(), Some(underlined), "{diagnostic}");
    assert!(diagnostic.hint().unwrap_or_default().contains(hint), "{:?} lacks {hint:?}", diagnostic.hint());
}

#[test]
fn a_shared_group_has_a_name_of_its_own_and_one_filter_for_all() {
    use ProblemKind::*;
    let workload = read(&with_subscribers("{filters: [t], count: 3, shared: workers}")).unwrap();
    assert_eq!(workload.subscribers[0].shared.as_deref(), Some("workers"));
    assert_eq!(read(&with_subscribers("{filters: [t]}")).unwrap().subscribers[0].shared, None);
    for (lines, kind, underlined, hint) in [
        ("{filters: [t], shared: a/b}", BadName, "a/b", "shared: workers"),
        ("{filters: [t], shared: ''}", BadName, "''", "shared: workers"),
        ("{filters: ['t/{index}'], shared: w}", Conflict, "'t/{index}'", "leave `{index}` out"),
        ("{filters: [t], shared: w}\n  - {name: x, filters: [t], shared: w}", BadName, "w", "a name of its own"),
        ("{filters: [$share/w/t]}", BadFilter, "$share/w/t", "`shared: NAME`"),
    ] {
        assert_refused(&with_subscribers(lines), kind, underlined, hint);
    }
}

#[test]
fn the_plan_counts_a_shared_group_once() {
    let plan = |lines: &str| Plan::new(&read(&with_subscribers(lines)).unwrap(), &PlanOptions::default());
    let (alone, shared, apart) = (
        plan("{filters: [t], processing: 100ms}"),
        plan("{filters: [t], count: 4, shared: w, processing: 100ms}"),
        plan("{filters: [t], count: 4}"),
    );
    assert_eq!((shared.outgoing, shared.streams), (alone.outgoing, 1));
    assert_eq!((apart.streams, shared.connections), (4, 5));
    // Each of four members has a quarter of the work.
    let share = |plan: &Plan| plan.processing.as_ref().unwrap().share;
    assert!((share(&shared) * 4.0 - share(&alone)).abs() < 1e-9);
}

#[test]
fn a_will_is_read_whole() {
    let will = |lines: &str| read(&group(&format!("{WHOLE}\n{lines}"))).unwrap().devices[0].will.clone();
    let short = will("will: {topic: \"gone/{device}\"}").unwrap();
    assert_eq!(short.topic.0, "gone/{device}");
    assert_eq!(
        (short.payload_bytes, short.qos, short.retain, short.delay),
        (16, Qos::BestEffort, false, Duration::ZERO)
    );
    let full = will("session: persistent\nwill: {topic: t, payload: 1KB, qos: 1, retain: true, delay: 5s}");
    let topic = pubmark_model::topic::TopicTemplate("t".to_owned());
    let expected =
        Will { topic, payload_bytes: 1_000, qos: Qos::AtLeastOnce, retain: true, delay: Duration::from_secs(5) };
    assert_eq!(full, Some(expected));
    assert_eq!(will("will: none"), None);
    let other_level = LoadOptions { qos: Some(Qos::ExactlyOnce), ..LoadOptions::default() };
    let workload = load::parse("test.yaml", &group(&format!("{WHOLE}\nwill: {{topic: t}}")), &other_level).unwrap();
    assert_eq!(workload.devices[0].will.as_ref().map(|will| will.qos), Some(Qos::ExactlyOnce));
}

#[test]
fn a_will_that_cannot_be_is_refused() {
    use ProblemKind::*;
    for (lines, kind, underlined, hint) in [
        ("will: {topic: t, delay: 5s}", Conflict, "5s", "session: persistent"),
        ("session: persistent\nwill: {topic: t, delay: 1.5s}", ImpossibleValue, "1.5s", "`10s`"),
        ("will: {topic: t, payload: 7B}", ImpossibleValue, "7B", "8 B"),
        ("will: {topic: t, payload: 1MB}", ImpossibleValue, "1MB", "65535 B"),
        ("will: {topic: a/+}", BadTopic, "a/+", "placeholders"),
        ("will: {topic: t, qos: 3}", ImpossibleValue, "3", "levels are"),
        ("will: {topics: t}", UnknownKey, "topics", "did you mean `topic`?"),
        ("will: {qos: 1}", MissingKey, "qos", ""),
        ("will: always", ImpossibleValue, "always", "`none`"),
    ] {
        assert_refused(&group(&format!("{WHOLE}\n{lines}")), kind, underlined, hint);
    }
}

#[test]
fn settings_of_mqtt_are_whole_seconds_and_words() {
    use ProblemKind::*;
    let mqtt = |lines: &str| read(&group(&format!("{WHOLE}\nmqtt: {lines}"))).unwrap().devices[0].mqtt;
    let message_expiry = Some(Duration::from_secs(10));
    assert_eq!(mqtt("{message_expiry: 10s, topic_alias: true}"), MqttSettings { message_expiry, topic_alias: true });
    assert_eq!(mqtt("{topic_alias: false}"), MqttSettings::default());
    for (lines, kind, underlined, hint) in [
        ("mqtt: {message_expiry: 0s}", ImpossibleValue, "0s", "`10s`"),
        ("mqtt: {message_expiry: 1500ms}", ImpossibleValue, "1500ms", "`10s`"),
        ("mqtt: {message_expiry: 5}", BadUnit, "5", "`5ms`"),
        ("mqtt: {topic_aliases: true}", UnknownKey, "topic_aliases", "did you mean `topic_alias`?"),
        ("mqtt: {topic_alias: perhaps}", WrongKind, "perhaps", ""),
    ] {
        assert_refused(&group(&format!("{WHOLE}\n{lines}")), kind, underlined, hint);
    }
}
