//! Tokens that expire in the middle of a run, at the built-in broker: with re-authentication and without.

use std::net::TcpStream;
use std::time::Duration;

use pubmark_conformance::ports;
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::secrets::assert_nowhere;
use crate::support::books::{assert_closed, connections, count, names_cause};
use crate::support::cluster::stop;
use crate::support::place::{Called, Place};
use crate::support::processes::wait_for;

const SECRET: &str = "planted-secret-of-32-bytes-zq7-zq7";

/// A run of 5 s of three devices and a subscriber with tokens of 2 s, and the counters of the broker.
fn run(renewal: &str) -> (Value, Value) {
    let place = Place::new();
    place.write("secret", SECRET);
    let token =
        |id: &str| format!("{{client_id: \"{id}\", token: {{algorithm: HS256, file: secret, lifetime: 2s{renewal}}}}}");
    let (device, reader) = (token("pump-{device}"), token("reader"));
    place.write(
        "renewed.yaml",
        format!(
            "name: renewed
devices:
  - {{name: pump, count: 3, every: 100ms, payload: 60B, qos: 1, credentials: {device}}}
subscribers:
  - {{name: all, filters: ['renewed/#'], qos: 1, credentials: {reader}}}
"
        ),
    );
    let address = ports::free();
    let broker = place.start(&["broker", "--listen", &address.to_string(), "--tokens", "secret"]);
    wait_for("the broker", Duration::from_secs(20), || TcpStream::connect(address).is_ok());
    let endpoint = format!("mqtt://{address}");
    let times = ["--duration", "5s", "--warmup", "0s", "--protocol", "mqtt5"];
    let record = place.record(&[&["renewed.yaml", "--endpoint", &endpoint][..], &times].concat());
    assert_closed(&record);
    // The second is the beginning of a token.
    assert_nowhere(&place.path().join("runs"), &[SECRET.to_owned(), "eyJhbGciOi".to_owned()]);
    (record, statistics(&stop(broker)))
}

/// The line of counters that a broker prints at its end.
fn statistics(called: &Called) -> Value {
    let line = called.printed.lines().find_map(|line| line.strip_prefix("statistics "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no counters: {called:?}"))).unwrap()
}

#[test]
fn tokens_that_are_renewed_on_open_connections_keep_them_open() {
    let (record, broker) = run(", reauthenticate: {method: JWT, before: 1s}");
    let all = &record["connections"];
    assert_count!(connections(&record, "reauthenticated") >= 12, "four clients, each second: {all}");
    assert_count_eq!((connections(&record, "dropped"), connections(&record, "established")), (0, 4), "{all}");
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (count(&record, "offered"), 0));
    assert_count!(broker["tokens_renewed"].as_u64().unwrap() >= connections(&record, "reauthenticated"), "{broker}");
    assert_count_eq!(broker["tokens_expired"], 0, "{broker}");
}

#[test]
fn the_broker_ends_connections_whose_tokens_expire_and_the_record_says_so() {
    let (record, broker) = run("");
    let all = &record["connections"];
    assert_count!(connections(&record, "log_in_ended") >= 4, "each of the four clients at least once: {all}");
    assert_count_eq!(connections(&record, "dropped"), connections(&record, "log_in_ended"), "{all}");
    assert_count_eq!(connections(&record, "auth_failed"), 0, "{all}");
    assert!(all.get("reauthenticated").is_none(), "{all}");
    assert_count!(connections(&record, "established") >= 8, "all came back with new tokens: {all}");
    assert!(names_cause(&record, "credentials no longer valid: not authorized"), "{all}");
    assert_count!(broker["tokens_expired"].as_u64().unwrap() >= connections(&record, "log_in_ended"), "{broker}");
}
