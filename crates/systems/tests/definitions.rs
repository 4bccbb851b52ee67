//! The embedded definitions, and what is said of wrong ones.
#![allow(clippy::unwrap_used, missing_docs)]

use pubmark_systems::{Definition, SystemError};

#[test]
fn every_embedded_definition_is_right_and_has_both_profiles() {
    let definitions = Definition::embedded().unwrap();
    assert!(definitions.iter().any(|definition| definition.name == "mosquitto" && definition.ranked));
    assert!(definitions.iter().any(|definition| definition.name == "builtin" && !definition.ranked));
    for (definition, file) in definitions.iter().zip(Definition::names()) {
        assert_eq!(definition.name, file);
        assert!(definition.profiles.contains_key("tuned"), "{file}");
        let changes = definition.profiles.values().flat_map(|profile| &profile.deviations);
        for change in definition.deviations.iter().chain(changes) {
            assert!(!change.reason.is_empty() && change.name.starts_with(file), "{file}: {change:?}");
        }
    }
}

#[test]
fn every_setting_of_mosquitto_is_a_named_deviation() {
    let definition = Definition::load("mosquitto").unwrap();
    let file = &definition.files[0];
    let profile = definition.profiles.values().map(|profile| profile.text.as_str());
    let named: Vec<&str> = definition
        .deviations
        .iter()
        .chain(definition.profiles.values().flat_map(|profile| &profile.deviations))
        .map(|change| change.setting.as_str())
        .collect();
    let lines = file.parts.iter().map(|part| part.text.as_str()).chain(profile).flat_map(str::lines);
    for line in lines.filter(|line| *line != "{profile}") {
        let setting = line.split(' ').next().unwrap();
        // Refusing the anonymous is mosquitto's default.
        assert!(line == "allow_anonymous false" || named.iter().any(|name| name.contains(setting)), "{line}");
    }
}

#[test]
fn an_unknown_system_is_answered_with_those_there_are() {
    let error = Definition::load("mosqito").unwrap_err().to_string();
    assert_eq!(error, "unknown system `mosqito`: known are builtin, mosquitto, or the path of a definition");
}

#[test]
fn a_wrong_definition_says_where_and_what() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/mosquitto.yaml")).unwrap();
    for (from, to, expected) in [
        ("ranked: true", "rankd: true", "rankd"),
        ("listener {port:mqtt} {host}", "listener {prt:mqtt} {host}", "unknown placeholder `{prt:mqtt}`"),
        ("mqtt5: {listener: mqtt,", "mqtt5: {listener: web,", "names listener `web`, which is not defined"),
        ("highest_qos: 2", "highest_qos: 3", "highest_qos 3"),
        ("ready_within_s: 10", "ready_within_s: -1", "ready_within_s is -1"),
        ("name: mosquitto.conf", "name: ../mosquitto.conf", "not a plain name"),
        ("\n  default:", "\n  defaults:", "profile `default` is missing"),
        ("when: tls", "when: maybe", "maybe"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = Definition::parse(&text.replacen(from, to, 1), "mine.yaml").unwrap_err();
        assert!(matches!(error, SystemError::Definition { .. }), "{error}");
        let shown = error.to_string();
        assert!(shown.contains("mine.yaml") && shown.contains(expected), "{shown}");
    }
}

#[test]
fn a_profile_or_protocol_that_is_not_there_is_answered_with_those_that_are() {
    let definition = Definition::load("mosquitto").unwrap();
    let error = definition.profile("fast").unwrap_err().to_string();
    assert_eq!(error, "`mosquitto` has no profile `fast`: it has default, tuned");
    let error = definition.offer("nats").unwrap_err().to_string();
    assert_eq!(error, "`mosquitto` does not speak nats: it speaks mqtt311, mqtt5");
}
