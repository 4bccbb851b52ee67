//! The embedded definitions, and the errors for wrong definitions.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pubmark_systems::condition::{Condition, When};
use pubmark_systems::launch::{read_version, rendered};
use pubmark_systems::{Definition, StartOptions, SystemError};

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
fn the_page_on_comparing_has_what_the_profile_tuned_of_each_system_changes() {
    let page = include_str!("../../../docs/how-to/compare-systems.md");
    let mut tuned_systems = vec![];
    for definition in Definition::embedded().unwrap() {
        let Some(tuned) = definition.profiles.get("tuned") else { continue };
        let settings: Vec<String> = tuned.deviations.iter().map(|change| format!("`{}`", change.setting)).collect();
        let reasons: Vec<&str> = tuned.deviations.iter().map(|change| change.reason.as_str()).collect();
        let row = match settings.is_empty() {
            true => format!("\n| `{}` | nothing | |\n", definition.name),
            false => format!("\n| `{}` | {} | {} |\n", definition.name, settings.join("; "), reasons.join("; ")),
        };
        assert!(page.contains(&row), "docs/how-to/compare-systems.md lacks the row{row}");
        tuned_systems.push(definition.name);
    }
    let table = page.split("| `tuned` changes |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let named = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    let mut in_table: Vec<String> = table.lines().filter_map(named).collect();
    in_table.sort();
    tuned_systems.sort();
    assert_eq!(in_table, tuned_systems, "the systems with a profile `tuned`");
}

/// A system listens on the loopback address, behind links, at the address of a node, or at all addresses of its container:
/// the record has the same reason for each.
#[test]
fn the_reason_for_a_listener_is_true_at_every_address() {
    let mut count = 0;
    for definition in Definition::embedded().unwrap() {
        let changes = definition.profiles.values().flat_map(|profile| &profile.deviations);
        for change in definition.deviations.iter().chain(changes).filter(|change| change.setting.contains("{host}")) {
            let claims = ["loopback", "free port", "this machine"];
            assert!(!claims.iter().any(|claim| change.reason.contains(claim)), "{}: {change:?}", definition.name);
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

/// The conditions of all texts that a definition writes or passes on.
fn conditions(definition: &Definition) -> Vec<&When> {
    let files = definition.files.iter().flat_map(|file| file.parts.iter().map(|part| &part.when).chain([&file.when]));
    let process = definition.back_ends.process.iter().flat_map(|process| &process.arguments);
    let container = definition.back_ends.container.iter().flat_map(|container| &container.arguments);
    files.chain(process.chain(container).map(|part| &part.when)).collect()
}

#[test]
fn a_conditional_setting_is_a_named_deviation() {
    for definition in Definition::embedded().unwrap().iter().filter(|definition| definition.ranked) {
        for condition in [Condition::Tls, Condition::Password, Condition::Raised, Condition::Bridge, Condition::Cluster]
        {
            let done = conditions(definition).iter().any(|when| when.needs(condition));
            let named = definition.deviations.iter().any(|change| change.when.needs(condition));
            assert_eq!(done, named, "{}: {condition:?}", definition.name);
        }
    }
}

#[test]
fn a_definition_has_settings_for_all_that_it_offers() {
    for definition in Definition::embedded().unwrap() {
        let name = &definition.name;
        let has = |condition| conditions(&definition).iter().any(|when| when.needs(condition));
        assert_eq!(
            definition.limits.raised_to_at_most_bytes.is_some(),
            has(Condition::Raised),
            "{name}: larger packets"
        );
        assert_eq!(definition.topology.bridge.is_some(), has(Condition::Bridge), "{name}: bridge");
        assert_eq!(definition.topology.cluster.is_some(), has(Condition::Cluster), "{name}: cluster");
        let encrypts = definition.listeners.values().any(|listener| listener.tls_scheme.is_some());
        assert_eq!(encrypts, definition.encrypts(false) || definition.encrypts(true), "{name}: TLS");
        let ways = &definition.back_ends;
        assert_eq!(ways.brokerless.is_some(), ways.process.is_none() && ways.container.is_none(), "{name}");
        if let Some(container) = &ways.container {
            let tag = container.image.rsplit_once(':').map(|(_, tag)| tag);
            assert!(
                tag.is_some_and(|tag| tag.starts_with(|first: char| first.is_ascii_digit())),
                "{}",
                container.image
            );
        }
    }
}

#[test]
fn each_back_end_offers_a_log_in_or_tls_separately() {
    // Mochi's own program encrypts and requires no log-in; the one in its image requires a log-in and does not encrypt.
    let mochi = Definition::load("mochi").unwrap();
    assert_eq!((mochi.encrypts(false), mochi.asks_for_login(false)), (true, false));
    assert_eq!((mochi.encrypts(true), mochi.asks_for_login(true)), (false, true));
    let valkey = Definition::load("valkey").unwrap();
    assert_eq!((valkey.encrypts(false), valkey.encrypts(true)), (false, true));
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
    // A bridge is one deviation, regardless of its number of lines.
    let parts = file.parts.iter().filter(|part| !part.when.needs(Condition::Bridge));
    let lines = parts.map(|part| part.text.as_str()).chain(profile).flat_map(str::lines);
    for line in lines.filter(|line| *line != "{profile}") {
        let setting = line.split(' ').next().unwrap();
        // Refusing anonymous clients is mosquitto's default.
        assert!(line == "allow_anonymous false" || named.iter().any(|name| name.contains(setting)), "{line}");
    }
}

#[test]
fn vernemq_keeps_the_plug_in_that_lets_clients_use_topics() {
    // Without it no hook decides who may subscribe and publish, and every request is refused
    // (`no_matching_hook_found`).
    let definition = Definition::load("vernemq").unwrap();
    let parts = definition.files.iter().flat_map(|file| &file.parts).map(|part| part.text.as_str());
    let profiles = definition.profiles.values().map(|profile| profile.text.as_str());
    let lines: Vec<&str> = parts.chain(profiles).flat_map(str::lines).collect();
    assert!(lines.contains(&"allow_anonymous = on"), "{lines:?}");
    assert_eq!(
        lines.iter().find(|line| line.contains("vmq_acl")),
        None,
        "the plug-in is switched or its list replaced"
    );
    assert!(definition.deviations.iter().all(|change| !change.setting.contains("vmq_acl")));
}

/// Redis 7 and Valkey refuse clients of other machines and of other network namespaces that do not log in, whatever address they
/// are bound to.
#[test]
fn redis_and_valkey_accept_clients_from_elsewhere_that_do_not_log_in() {
    for name in ["redis", "valkey"] {
        let definition = Definition::load(name).unwrap();
        let rendered = rendered(&definition, &StartOptions::new("redis")).unwrap();
        assert!(rendered.configuration().unwrap().contains("\nprotected-mode no\n"), "{name}: {rendered:?}");
        let named = |deviation: &pubmark_record::record::Deviation| deviation.detail.starts_with("protected-mode no: ");
        assert!(rendered.deviations.iter().any(named), "{name}: {:?}", rendered.deviations);
    }
}

/// The page on comparing says that `tuned` drops no messages of a client that is behind and does not disconnect it.
#[test]
fn a_profile_tuned_writes_what_it_names() {
    for (name, protocol, settings) in [
        ("redis", "redis", vec!["client-output-buffer-limit pubsub 0 0 0"]),
        ("valkey", "redis", vec!["client-output-buffer-limit pubsub 0 0 0"]),
        ("nats", "nats", vec!["max_pending: 1073741824"]),
        ("vernemq", "mqtt5", vec!["max_online_messages = 1000000", "max_offline_messages = 1000000"]),
    ] {
        let options = StartOptions { profile: "tuned".to_owned(), ..StartOptions::new(protocol) };
        let rendered = rendered(&Definition::load(name).unwrap(), &options).unwrap();
        let lines: Vec<&str> = rendered.configuration().unwrap().lines().collect();
        for setting in settings {
            assert!(lines.contains(&setting), "{name}: {lines:?}");
            let detail = format!("{setting}: ");
            assert!(rendered.deviations.iter().any(|change| change.detail.starts_with(&detail)), "{name}: {setting}");
        }
    }
}

/// Another installation of the same system may be in the folder for programs, or where the distribution puts it.
#[test]
fn a_version_is_that_of_the_program_that_was_found() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let version = |system: &str, program: &Path| {
        read_version(program, Definition::load(system).unwrap().back_ends.process.as_ref().unwrap()).unwrap()
    };
    let rabbit = write("rabbitmq_server-9.8.7/sbin/rabbitmq-server", "");
    let link = root.path().join("rabbitmq-server");
    std::os::unix::fs::symlink(&rabbit, &link).unwrap();
    assert_eq!(version("rabbitmq", &link).as_deref(), Some("9.8.7"));
    let mochi = write("mochi", "dep\tgithub.com/mochi-mqtt/server/v2\tv9.8.6\n");
    assert_eq!(version("mochi", &mochi).as_deref(), Some("9.8.6"));
    let iotcore = write("venv/bin/iotcore", "");
    write("venv/lib/python3/sboms/iotcore.cyclonedx.json", "\"bom-ref\": \"rumqttd@9.8.5\"\n");
    assert_eq!(version("rumqttd", &iotcore).as_deref(), Some("9.8.5"));
}

#[test]
fn a_profile_with_settings_for_the_clients_of_a_protocol_is_refused_for_those_of_others() {
    let nats = Definition::load("nats").unwrap();
    let memory = nats.profile_for("memory", ["jetstream"]).unwrap();
    assert_eq!(memory.settings["jetstream"], "?storage=memory");
    assert!(nats.profile_for("memory", ["mqtt311", "jetstream"]).is_ok(), "one side has them");
    assert!(nats.profile_for("tuned", ["mqtt311"]).is_ok());
    let refused = nats.profile_for("memory", ["nats", "mqtt311"]).unwrap_err();
    assert_eq!(refused.to_string(), "profile `memory` of `nats` is for clients over jetstream only");
    let text = "name: mine\ntitle: mine\ndescription: mine\nranked: false\nlisteners: {door: {scheme: x}}\n\
                protocols: {words: {listener: door, highest_qos: 0}}\n\
                profiles: {default: {description: as it is, settings: {other: '?a=b'}}}\n";
    let wrong = Definition::parse(text, "mine.yaml").unwrap_err().to_string();
    assert!(wrong.contains("profile `default` has settings for `other`, which is none of its protocols"), "{wrong}");
    let among_peers = text.replace("other: '?a=b'", "words: '?a=b'");
    assert!(Definition::parse(&among_peers, "mine.yaml").is_ok());
    let among_peers = format!("{among_peers}back_ends: {{brokerless: {{how: peers meet}}}}\n");
    let wrong = Definition::parse(&among_peers, "mine.yaml").unwrap_err().to_string();
    assert!(wrong.contains("profile `default` has `settings`") && wrong.contains("in `text`"), "{wrong}");
}

#[test]
fn emqx_can_be_run_as_psmark_ran_it() {
    let definition = Definition::load("emqx").unwrap();
    let psmark = definition.profile("psmark").unwrap();
    assert_eq!(psmark.text.trim(), "force_shutdown.enable = false");
    for profile in ["psmark", "tuned"] {
        let profile = definition.profile(profile).unwrap();
        let named: Vec<&str> = profile.deviations.iter().map(|change| change.setting.as_str()).collect();
        assert_eq!(profile.text.lines().collect::<Vec<_>>(), named, "each setting of a profile is a named deviation");
    }
    assert_eq!(definition.profile("default").unwrap().text, "");
}

#[test]
fn an_unknown_system_is_refused_with_the_known_ones() {
    let error = Definition::load("mosqito").unwrap_err().to_string();
    let names = Definition::names().join(", ");
    assert_eq!(error, format!("unknown system `mosqito`: known are {names}, or the path of a definition"));
}

#[test]
fn a_wrong_definition_says_where_and_what() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/mosquitto.yaml")).unwrap();
    for (from, to, expected) in [
        ("ranked: true", "rankd: true", "rankd"),
        ("listener {port:mqtt} {host}", "listener {prt:mqtt} {host}", "unknown placeholder `{prt:mqtt}`"),
        ("    listener: mqtt\n", "    listener: web\n", "names listener `web`, which is not defined"),
        ("highest_qos: 2", "highest_qos: 3", "highest_qos 3"),
        ("ready_within_s: 10", "ready_within_s: -1", "ready_within_s is -1"),
        ("back_ends:\n", "warm_up_s: 0\nback_ends:\n", "warm_up_s is 0"),
        ("name: mosquitto.conf", "name: ../mosquitto.conf", "leaves the private directory"),
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
fn an_unknown_profile_or_protocol_is_refused_with_the_known_ones() {
    let definition = Definition::load("mosquitto").unwrap();
    let error = definition.profile("fast").unwrap_err().to_string();
    assert_eq!(error, "`mosquitto` has no profile `fast`: it has default, durable, psmark, tuned");
    let error = definition.offer("nats").unwrap_err().to_string();
    assert_eq!(error, "`mosquitto` does not speak nats: it speaks mqtt311, mqtt5");
}
