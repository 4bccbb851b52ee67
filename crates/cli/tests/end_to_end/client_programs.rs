//! Runs whose client is a program: honest, lying, dying.

use std::path::{Path, PathBuf};
use std::process::Command;

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::program::{assert_closed, call, record_of};

const SHORT: &[&str] =
    &["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s", "--qos", "1"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Paho's Python, with mosquitto beside it; says so if they are not there.
fn python() -> Option<String> {
    let python = root().join("target/clients/paho/bin/python3");
    let has_mosquitto =
        ["mosquitto", "/usr/sbin/mosquitto"].iter().any(|name| Command::new(name).arg("-h").output().is_ok());
    if !python.exists() {
        pubmark_testing::skip("Paho is not installed (`.ci/install-clients paho`)");
    } else if !has_mosquitto {
        pubmark_testing::skip("mosquitto is not installed (`apt-get install mosquitto`)");
    }
    (python.exists() && has_mosquitto).then(|| python.display().to_string())
}

fn run(client: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    record_of(folder.path(), &[SHORT, &["--system", "mosquitto", "--client", client], more].concat())
}

#[test]
fn a_program_delivers_everything_and_is_named_in_the_record() {
    let Some(python) = python() else { return };
    let client = format!("{python} {}", root().join("clients/paho/client.py").display());
    for protocol in ["mqtt5", "mqtt311"] {
        let record = run(&client, &["--protocol", protocol, "--user", "ann", "--password", "open sesame"]);
        assert_closed(&record);
        assert_count_eq!(record["delivery"]["delivered"], 100);
        assert_count_eq!(record["delivery"]["lost"], 0);
        assert_eq!(record["protocol"]["publish"], protocol);
        assert_eq!(record["protocol"]["sent_means"], "handed-over");
        let programs = &record["connections"]["client_programs"];
        assert_eq!(programs["library"], "paho-mqtt (Python) 2.1.0");
        assert_eq!((&programs["misreports"], &programs["ended"]), (&serde_json::json!({}), &Value::Null));
        assert_count!(programs["round_trip"]["count"].as_u64().unwrap() >= 5, "{programs}");
        // A library owns the sockets: nothing is known below what was measured.
        assert_eq!(record["latency"]["total"]["lower"]["max_us"], 0.0, "{}", record["latency"]["total"]);
        assert!(record["latency"]["total"]["upper"]["p50_us"].as_f64().unwrap() > 0.0);
        assert!(!record.to_string().contains("sesame"), "the password is in the record");
    }
}

#[test]
fn a_program_that_lies_makes_the_run_invalid_and_its_lies_are_counted() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/lying_client.py");
    let paho = root().join("clients/paho/client.py");
    let lying = |how: &str| run(&format!("{python} {} {} {how}", script.display(), paho.display()), &[]);
    let record = lying("future");
    assert_closed(&record);
    assert_count_eq!(record["delivery"]["delivered"], 100, "a stamp that is not used loses no message");
    let programs = &record["connections"]["client_programs"];
    assert_count!(programs["misreports"]["stamp-in-future"].as_u64().unwrap() >= 80, "{programs}");
    let reason = |record: &Value| {
        let reasons = record["verdict"]["reasons"].as_array().unwrap().clone();
        reasons.into_iter().find(|reason| reason["code"] == "V29").map(|reason| reason["text"].to_string())
    };
    assert_eq!(record["verdict"]["status"], "invalid");
    assert!(reason(&record).unwrap().contains("stamp-in-future"), "{:?}", record["verdict"]["reasons"]);

    let record = lying("dies");
    assert_closed(&record);
    assert_eq!(record["verdict"]["status"], "invalid");
    let text = reason(&record).unwrap();
    assert!(text.contains("ended with exit status: 7; it printed: out of ideas"), "{text}");
    assert_count!(
        record["delivery"]["unsent"].as_u64().unwrap() + record["delivery"]["skipped_disconnected"].as_u64().unwrap()
            > 0
    );
}

#[test]
fn a_program_that_cannot_be_used_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |client: &str, more: &[&str]| {
        let output = call(folder.path(), &[&["run"], SHORT, &["--client", client], more].concat());
        // As it is before it is broken into lines.
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), errors.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, errors) = refused("./not-there", &[]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("failed to start the client program `./not-there`: No such file or directory"), "{errors}");
    let (code, errors) = refused("sh -c 'echo no module named paho >&2; exit 1'", &[]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("before its hello it ended with exit status: 1; it printed: no module named paho"),
        "{errors}"
    );
    let (code, errors) = refused("python3 'client.py", &[]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("a quotation mark in it is not closed"), "{errors}");
    let Some(python) = python() else { return };
    let client = format!("{python} {}", root().join("clients/sixty-lines/client.py").display());
    let (code, errors) = refused(&client, &[]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("QoS 1") || errors.contains("at least once"), "{errors}");
    let (code, errors) = refused(&client, &["--protocol", "mqtt5"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("does not speak mqtt5") && errors.contains("mqtt311"), "{errors}");
    let client = format!("{python} {}", root().join("clients/paho/client.py").display());
    let certificate = ["--tls-insecure", "--tls-cert", "a.pem", "--tls-key", "a.key"];
    let (code, errors) = refused(&client, &[&["--endpoint", "mqtts://127.0.0.1:1"][..], &certificate].concat());
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("a client program shows no certificate"), "{errors}");
    assert!(errors.contains("leave `--tls-cert` and `--tls-key` out"), "{errors}");
}
