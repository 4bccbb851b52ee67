//! Systems that are started, given endpoints, each level and protocol.

use std::net::TcpListener;
use std::process::Command;

use pubmark_testing::assert_count_eq;

use crate::program::{assert_closed, call, record_of};

const SHORT: &[&str] =
    &["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

/// Whether mosquitto is installed; prints a message if not.
fn has_mosquitto() -> bool {
    let here = ["mosquitto", "/usr/sbin/mosquitto"].iter().any(|name| Command::new(name).arg("-h").output().is_ok());
    if !here {
        pubmark_testing::skip("mosquitto is not installed (`apt-get install mosquitto`)");
    }
    here
}

#[test]
fn every_level_and_protocol_delivers_everything_on_both_systems() {
    let folder = tempfile::tempdir().unwrap();
    let systems: &[&str] = if has_mosquitto() { &["builtin", "mosquitto"] } else { &["builtin"] };
    for system in systems {
        for protocol in ["mqtt5", "mqtt311"] {
            for qos in ["0", "1", "2"] {
                let options = ["--system", system, "--protocol", protocol, "--qos", qos, "--profile", "tuned"];
                let record = record_of(folder.path(), &[SHORT, &options].concat());
                assert_closed(&record);
                assert_count_eq!(record["delivery"]["offered"], 100, "{options:?}");
                assert_count_eq!(record["delivery"]["delivered"], 100, "{options:?}");
                assert_count_eq!(record["delivery"]["duplicated"], 0, "{options:?}");
                assert_eq!(record["protocol"]["publish"], protocol);
                assert_eq!(record["system"]["name"], *system);
                assert_eq!(record["system"]["ranked"], *system != "builtin");
                assert!(record["cost"]["system"]["peak_rss_bytes"].as_u64().unwrap() > 500_000);
            }
        }
    }
}

#[test]
fn a_log_in_is_required_and_used() {
    if !has_mosquitto() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["--system", "mosquitto", "--user", "ann", "--password", "open sesame"];
    let record = record_of(folder.path(), &[SHORT, &options].concat());
    assert_count_eq!(record["delivery"]["delivered"], 100);
    assert_eq!(record["connections"]["auth_failed"], 0);
    let text = record.to_string();
    assert!(!text.contains("sesame"), "the password is in the record");
    assert!(text.contains("mosquitto-password"), "the deviation is not named: {}", record["settings"]["deviations"]);
}

#[test]
fn an_endpoint_without_a_listener_is_a_failed_system() {
    // A port that was free a moment ago and that nobody is given: below the range of outgoing connections.
    let port = (21_000..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let endpoint = format!("mqtt://127.0.0.1:{port}");
    let output = call(folder.path(), &[&["run"], SHORT, &["--json", "--endpoint", &endpoint]].concat());
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains(&format!("failed to connect to `{endpoint}`")), "{errors}");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count), 0, "nothing was measured");
    assert!(record["connections"]["refused"].as_u64().unwrap() > 0, "{}", record["connections"]);
    assert_eq!(record["verdict"]["status"], "invalid");
    assert_eq!(record["latency"]["total"]["upper"], serde_json::Value::Null);
    assert_count_eq!(record["delivery"]["delivered"], 0);
}

#[test]
fn a_system_that_is_not_installed_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let definition =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/mosquitto.yaml")).unwrap();
    let changed = definition.replace("program: mosquitto\n", "program: no-such-broker\n");
    assert_ne!(definition, changed);
    std::fs::write(folder.path().join("mine.yaml"), changed).unwrap();
    let output = call(folder.path(), &[&["run"], SHORT, &["--system", "./mine.yaml"]].concat());
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("apt-get install") && errors.contains("`pubmark install mosquitto`"), "{errors}");
    let kept = std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "a run that never began leaves no folder");
}
