//! Devices use one protocol, subscribers another, and the system forwards messages between both.

use pubmark_systems::{Definition, install};
use pubmark_testing::assert_count_eq;

use crate::program::{assert_closed, call, record_of};

const LOAD: [&str; 11] =
    ["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--qos", "0", "--duration", "1s", "--warmup", "0s"];

#[test]
fn messages_cross_from_one_to_the_other() {
    if install::found(&Definition::load("nats").unwrap()).is_none() {
        return pubmark_testing::skip("nats is not installed (`pubmark install nats`)");
    }
    let folder = tempfile::tempdir().unwrap();
    for (publish, subscribe) in [("mqtt311", "nats"), ("nats", "mqtt311"), ("jetstream", "nats")] {
        let sides = ["--system", "nats", "--publish-protocol", publish, "--subscribe-protocol", subscribe];
        let record = record_of(folder.path(), &[&LOAD[..], &sides].concat());
        assert_closed(&record);
        assert_count_eq!(record["delivery"]["offered"], 100, "{sides:?}");
        assert_count_eq!(record["delivery"]["delivered"], 100, "{sides:?}: {}", record["delivery"]);
        assert_eq!(
            (record["protocol"]["publish"].as_str(), record["protocol"]["subscribe"].as_str()),
            (Some(publish), Some(subscribe))
        );
        assert!(record["cost"]["system"]["cpu_seconds"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn each_side_needs_an_endpoint_that_speaks_its_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let errors = |arguments: &[&str]| {
        let output = call(folder.path(), &[&["run"], &LOAD[..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let other = errors(&["--endpoint", "mqtt://127.0.0.1:1", "--subscribe-protocol", "nats"]);
    assert!(other.contains("--subscribe-endpoint nats://"), "{other}");
    let neither = errors(&["--system", "mosquitto", "--subscribe-protocol", "nats"]);
    assert!(neither.contains("nats"), "{neither}");
    let alone = errors(&["--subscribe-endpoint", "nats://127.0.0.1:1"]);
    assert!(alone.contains("--endpoint"), "{alone}");
}
