//! Runs over WebSocket: a mosquitto that already runs, one that pubmark starts, and refused options.

use std::path::Path;

use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, assert_delivered_once, count, names_cause, names_deviation};
use crate::support::mosquitto::{self, Mosquitto};
use crate::support::place::Place;

const SMALL: &[&str] =
    &["run", "fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

#[test]
fn a_run_over_websocket_delivers_all() {
    // mosquitto 2.0.11 ends if all its listeners are for WebSocket, so it gets another one that no client uses.
    let settings = |folder: &Path| {
        format!("allow_anonymous true\nprotocol websockets\nlistener 0 {}\n", folder.join("unused").display())
    };
    let Some(broker) = Mosquitto::start_with(settings) else { return };
    let place = Place::new();
    let endpoint = format!("ws://127.0.0.1:{}", broker.port);
    for protocol in ["mqtt5", "mqtt311"] {
        let options = ["--endpoint", &endpoint, "--protocol", protocol, "--qos", "1"];
        let record = place.record(&[&SMALL[1..], &options].concat());
        assert_closed(&record);
        assert_delivered_once(&record);
        assert_count_eq!(count(&record, "delivered"), 100);
        assert_eq!(record["system"]["endpoint"], format!("{endpoint}/mqtt"));
    }
}

#[test]
fn a_started_system_uses_websocket_on_request() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let record = place.record(&[&SMALL[1..], &["--system", "mosquitto", "--transport", "websocket"]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert!(record["system"]["endpoint"].as_str().unwrap().starts_with("ws://127.0.0.1:"), "{}", record["system"]);
    assert!(names_deviation(&record, "mosquitto-websocket"), "{}", record["settings"]["deviations"]);
    let record = place.record(&[&SMALL[1..], &["--system", "mosquitto"]].concat());
    assert!(!names_deviation(&record, "mosquitto-websocket"), "{}", record["settings"]["deviations"]);
    let called = place.call(&[SMALL, &["--system", "builtin", "--transport", "websocket"]].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("does not offer mqtt5 over WebSocket"), "{}", called.errors);
}

#[test]
fn a_listener_of_another_kind_is_named() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    let endpoint = format!("ws://127.0.0.1:{}", broker.port);
    let called = place.call(&[SMALL, &["--json", "--endpoint", &endpoint]].concat());
    assert_eq!(called.code(), 6, "{called:?}");
    let record = place.record_of_nobody(&called);
    assert!(names_cause(&record, "during the WebSocket handshake"), "{}", record["connections"]);
}
