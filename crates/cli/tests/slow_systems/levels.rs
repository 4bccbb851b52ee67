//! Every level of every protocol that a broker and pubmark's clients share, and from one protocol to another.

use std::process::Command;

use pubmark_testing::assert_count_eq;

use crate::system::{has_clients, installed, options, record_of, start, stop};

/// Runs each level from 0 to the highest granted one, with both profiles, and checks the deliveries and the record.
fn every_level_delivers(name: &str) {
    let Some(definition) = installed(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let spoken = |protocol: &str| ["mqtt5", "mqtt311", "amqp091", "amqp10"].contains(&protocol);
    for (protocol, offer) in definition.protocols.iter().filter(|(protocol, _)| spoken(protocol)) {
        for qos in 0..=offer.highest_qos {
            let profile = if qos == 1 { "default" } else { "tuned" };
            let level = qos.to_string();
            let options = ["--system", name, "--protocol", protocol, "--qos", &level, "--profile", profile];
            let record = record_of(folder.path(), &options);
            let system = &record["system"];
            assert_eq!(system["name"], name);
            assert!(system["version"].is_string(), "its version is not known: {system}");
            assert_eq!(system["ranked"], true);
            let listener = format!("{name}-listener");
            assert!(
                record["settings"]["deviations"].to_string().contains(&listener),
                "{}",
                record["settings"]["deviations"]
            );
            assert!(record["cost"]["system"]["peak_rss_bytes"].as_u64().unwrap() > 50_000_000);
        }
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_delivers_at_every_level_it_grants() {
    every_level_delivers("rabbitmq");
}

#[test]
#[ignore = "slow: make test-all"]
fn artemis_delivers_at_every_level_it_grants() {
    every_level_delivers("artemis");
}

#[test]
#[ignore = "slow: make test-all"]
fn hivemq_delivers_at_every_level_it_grants() {
    every_level_delivers("hivemq");
}

#[test]
#[ignore = "slow: make test-all"]
fn messages_cross_from_one_protocol_to_the_other() {
    let between = [("rabbitmq", "amqp091"), ("rabbitmq", "amqp10"), ("artemis", "amqp10")];
    let folder = tempfile::tempdir().unwrap();
    for (system, amqp) in between.into_iter().filter(|(system, _)| installed(system).is_some()) {
        for (publish, subscribe) in [("mqtt311", amqp), (amqp, "mqtt311")] {
            for qos in ["0", "1"] {
                let sides = ["--publish-protocol", publish, "--subscribe-protocol", subscribe];
                let record = record_of(folder.path(), &[&["--system", system, "--qos", qos], &sides[..]].concat());
                assert_count_eq!(record["connections"]["granted_qos_lower"], 0, "{system}: {sides:?} at level {qos}");
            }
        }
    }
}

/// Requests the highest level and checks that the broker grants the level in its definition.
fn grants_what_its_definition_says(name: &str) {
    let Some(definition) = installed(name).filter(|_| has_clients()) else { return };
    let versions = definition.protocols.iter().filter(|(protocol, _)| protocol.starts_with("mqtt"));
    for (protocol, offer) in versions {
        let system = start(&definition, &options(protocol));
        let version = if protocol == "mqtt5" { "5" } else { "311" };
        let port = system.endpoint().address.port().to_string();
        // `-E` ends it when the subscription is granted, `-d` prints the granted level.
        let client = Command::new("mosquitto_sub")
            .args(["-h", "127.0.0.1", "-p", &port, "-V", version, "-q", "2", "-t", "level", "-d", "-E", "-W", "30"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&client.stdout);
        let granted = format!("Subscribed (mid: 1): {}", offer.highest_qos);
        assert!(said.contains(&granted), "{name} over {protocol}: expected `{granted}` in\n{said}");
        stop(system);
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn each_broker_grants_what_its_definition_says() {
    for name in ["mosquitto", "rabbitmq", "artemis", "hivemq"] {
        grants_what_its_definition_says(name);
    }
}
