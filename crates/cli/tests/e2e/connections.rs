//! Connections that are refused, lost, or limited: each is counted and named, and the message accounting adds up.

use std::time::Duration;

use pubmark_conformance::certificates::Certificates;
use pubmark_conformance::ports;
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, connections, count, names_cause, names_deviation};
use crate::support::mosquitto::{Mosquitto, write_passwords};
use crate::support::place::{Called, Place};
use crate::support::schema;

/// One second of 100 messages.
const SMALL: &[&str] =
    &["run", "fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

/// A call that reached no system: it reports that with the endpoint, names the cause, and leaves nothing behind.
fn assert_unreachable(called: &Called, endpoint: &str, cause: &str, record: &Value) {
    assert_eq!(called.code(), 6, "{called:?}");
    let words: Vec<&str> = called.errors.split_whitespace().collect();
    let errors = words.join(" ");
    assert!(errors.contains(&format!("failed to connect to `{endpoint}`")), "{errors}");
    assert!(errors.contains(cause), "{errors}");
    assert!(names_cause(record, cause), "{}", record["connections"]);
    assert_eq!(record["verdict"]["status"], "invalid");
    assert_count_eq!(connections(record, "established"), 0);
    assert_count_eq!(count(record, "delivered"), 0);
    assert_eq!(record["latency"]["total"]["upper"], Value::Null);
    schema::assert_agrees(record);
}

#[test]
fn nobody_listens() {
    let place = Place::new();
    let endpoint = format!("mqtt://{}", ports::free());
    let called = place.call(&[SMALL, &["--json", "--endpoint", &endpoint]].concat());
    let record = place.record_of_nobody(&called);
    assert_unreachable(&called, &endpoint, "unreachable: Connection refused", &record);
    assert_count_eq!(connections(&record, "refused"), connections(&record, "attempted"));
    assert!(connections(&record, "retried") > 0, "{}", record["connections"]);
}

#[test]
fn a_wrong_password_is_counted_and_named_and_waited_for_briefly() {
    let Some(broker) = Mosquitto::start_with(|folder| {
        let file = folder.join("passwords");
        write_passwords(&file, "ann", "right");
        format!("allow_anonymous false\npassword_file {}\n", file.display())
    }) else {
        return;
    };
    for protocol in ["mqtt5", "mqtt311"] {
        let place = Place::new();
        let endpoint = broker.endpoint();
        let options =
            ["--json", "--endpoint", &endpoint, "--protocol", protocol, "--user", "ann", "--password", "wr0ng"];
        let called = place.call(&[SMALL, &options].concat());
        let record = place.record_of_nobody(&called);
        assert_unreachable(&called, &endpoint, "not authorized", &record);
        assert!(called.took < Duration::from_secs(4), "{:?} for a password that stays wrong", called.took);
        assert_count_eq!(connections(&record, "auth_failed"), connections(&record, "attempted"));
        assert_count_eq!(connections(&record, "refused"), 0, "{}", record["connections"]);
        assert!(!record.to_string().contains("wr0ng"), "the password is in the record");
        assert!(!called.errors.contains("wr0ng"), "{}", called.errors);
    }
    let place = Place::new();
    let endpoint = format!("mqtt://ann:right@127.0.0.1:{}", broker.port);
    let record = place.record(&[&SMALL[1..], &["--endpoint", &endpoint]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(connections(&record, "auth_failed"), 0);
    assert!(!record.to_string().contains("right@"), "the password is in the record");
}

/// mosquitto with a TLS listener, and certificates of another authority in addition to its own.
fn encrypted() -> Option<(Mosquitto, Certificates, Certificates, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let own = Certificates::make(folder.path(), "own");
    let other = Certificates::make(folder.path(), "other");
    let settings = format!("certfile {}\nkeyfile {}", own.server.display(), own.key.display());
    Some((Mosquitto::start(&settings)?, own, other, folder))
}

#[test]
fn an_encrypted_run_delivers_all_and_one_without_verification_is_marked() {
    let Some((broker, own, _, _folder)) = encrypted() else { return };
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let place = Place::new();
    let authority = own.authority.display().to_string();
    let record = place.record(&[&SMALL[1..], &["--endpoint", &endpoint, "--tls-ca", &authority]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(count(&record, "delivered"), 100);
    assert_eq!(record["settings"]["tls"], true);
    assert_count_eq!(connections(&record, "tls_failed"), 0);
    assert!(!names_deviation(&record, "tls-unchecked"));

    let record = place.record(&[&SMALL[1..], &["--endpoint", &endpoint, "--tls-insecure"]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert!(names_deviation(&record, "tls-unchecked"), "{}", record["settings"]["deviations"]);
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_and_named() {
    let Some((broker, _, other, _folder)) = encrypted() else { return };
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let place = Place::new();
    let authority = other.authority.display().to_string();
    let called = place.call(&[SMALL, &["--json", "--endpoint", &endpoint, "--tls-ca", &authority]].concat());
    let record = place.record_of_nobody(&called);
    assert_unreachable(&called, &endpoint, "TLS: ", &record);
    assert!(called.errors.contains("certificate"), "{}", called.errors);
    assert_count_eq!(connections(&record, "tls_failed"), connections(&record, "attempted"));
}

#[test]
fn a_plain_connection_to_an_encrypted_listener_is_named() {
    let Some((broker, _, _, _folder)) = encrypted() else { return };
    let endpoint = broker.endpoint();
    let place = Place::new();
    let called = place.call(&[SMALL, &["--json", "--endpoint", &endpoint]].concat());
    let record = place.record_of_nobody(&called);
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(connections(&record, "refused") > 0, "{}", record["connections"]);
    assert!(!record["connections"]["causes"].as_array().unwrap().is_empty());
}

/// Kills mosquitto in the middle of a run and starts it again a second later.
fn broker_killed_in_the_middle(qos: &str, protocol: &str) {
    let Some(mut broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    let endpoint = broker.endpoint();
    let load = ["run", "fan-in", "--set", "publishers=10", "--set", "rate=50/s", "--duration", "4s", "--warmup", "0s"];
    let options = ["--endpoint", &endpoint, "--qos", qos, "--protocol", protocol, "--json", "--quiet"];
    let call = place.start_with_events(&[&load[..], &options].concat());
    place.wait_until_measured(1.0);
    broker.kill();
    std::thread::sleep(Duration::from_secs(1));
    assert!(broker.restart(), "the port was taken meanwhile");
    let called = call.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    schema::assert_agrees(&record);
    assert_closed(&record);
    assert_eq!(record["run"]["status"], "complete");
    assert_count_eq!(count(&record, "offered"), 2_000, "10 devices × 50/s × 4 s, whatever the broker does");
    assert_count_eq!(connections(&record, "dropped"), 11, "{}", record["connections"]);
    assert!(connections(&record, "refused") > 0, "tries while it was away: {}", record["connections"]);
    assert!(connections(&record, "retried") >= 11, "{}", record["connections"]);
    assert!(names_cause(&record, "dropped: "), "{}", record["connections"]);
    assert!(names_cause(&record, "unreachable: Connection refused"), "{}", record["connections"]);
    let skipped = count(&record, "skipped_disconnected");
    assert!((200..1_700).contains(&skipped), "about a second of 500 messages/s and the pauses: {}", record["delivery"]);
    assert_count_eq!(count(&record, "skipped_planned"), 0);
    assert_count_eq!(
        count(&record, "duplicated"),
        0,
        "a broker without memory repeats nothing: {}",
        record["delivery"]
    );
    if qos == "0" {
        assert_count_eq!(count(&record, "unknown"), 0, "QoS 0 promises nothing: {}", record["delivery"]);
    }
    let rows = record["tables"]["series"].as_array().unwrap();
    assert!(rows[3]["delivered"].as_u64().unwrap() > 0, "nothing after the restart: {rows:#?}");
}

#[test]
fn a_broker_killed_in_the_middle_at_best_effort() {
    broker_killed_in_the_middle("0", "mqtt5");
}

#[test]
fn a_broker_killed_in_the_middle_at_least_once() {
    broker_killed_in_the_middle("1", "mqtt311");
}

#[test]
fn a_broker_killed_in_the_middle_exactly_once() {
    broker_killed_in_the_middle("2", "mqtt5");
}

/// Ten messages of a size that `max_packet_size 1000` allows, ten that are larger.
const TWO_SIZES: &str = "name: sizes
devices:
  - {name: test/small, count: 1, every: 100ms, payload: 100B, topic: \"sizes/small\"}
  - {name: test/large, count: 1, every: 100ms, payload: 2KB, topic: \"sizes/large\"}
subscribers:
  - {name: everything, filters: [\"sizes/#\"]}
";

/// Runs them; returns the record, and the accounting of the small and the large messages.
fn two_sizes(broker: &Mosquitto, options: &[&str]) -> (Value, Value, Value) {
    let place = Place::new();
    place.write("sizes.yaml", TWO_SIZES);
    let endpoint = broker.endpoint();
    let load = ["sizes.yaml", "--duration", "1s", "--warmup", "0s", "--endpoint", &endpoint];
    let record = place.record(&[&load[..], options].concat());
    schema::assert_agrees(&record);
    assert_closed(&record);
    let books = |name: &str| {
        let rows = record["tables"]["by_type"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["delivery"].clone()
    };
    let (small, large) = (books("test/small"), books("test/large"));
    assert_count_eq!(small["delivered"], 10, "{small}");
    assert_count_eq!(small["sent"], 10, "{small}");
    assert_count_eq!(large["offered"], 10, "{large}");
    assert_count_eq!(large["delivered"], 0, "{large}");
    (record, small, large)
}

#[test]
fn a_packet_above_the_announced_limit_is_refused_without_being_sent() {
    let Some(broker) = Mosquitto::start("max_packet_size 1000") else { return };
    for qos in ["0", "2"] {
        let (record, _, large) = two_sizes(&broker, &["--protocol", "mqtt5", "--qos", qos]);
        assert_count_eq!(record["delivery"]["too_large"], 10);
        assert_count_eq!(large["refused"], 10, "{large}");
        assert_count_eq!(large["expected"], 0, "{large}");
        assert_count_eq!(connections(&record, "dropped"), 0, "{}", record["connections"]);
    }
}

#[test]
fn a_packet_above_an_unannounced_limit_ends_the_connection_with_a_named_reason() {
    let Some(broker) = Mosquitto::start("max_packet_size 1000") else { return };
    for (qos, ends_as) in [("0", "lost"), ("1", "unknown")] {
        let (record, _, large) = two_sizes(&broker, &["--protocol", "mqtt311", "--qos", qos]);
        assert_count_eq!(record["delivery"]["too_large"], 0, "MQTT 3.1.1 has no words for it");
        assert!(connections(&record, "dropped") > 0, "{}", record["connections"]);
        assert!(names_cause(&record, "dropped: "), "{}", record["connections"]);
        assert!(large[ends_as].as_u64().unwrap() > 0, "sent, at this level {ends_as}: {large}");
        let ended = [&large["sent"], &large["skipped_disconnected"]].map(|part| part.as_u64().unwrap());
        assert_eq!(ended.iter().sum::<u64>(), 10, "{large}");
    }
}

#[test]
fn a_qos_granted_below_the_requested_one_is_counted_and_publishing_below_it_is_named() {
    let Some(broker) = Mosquitto::start("max_qos 1") else { return };
    let place = Place::new();
    let endpoint = broker.endpoint();
    let record = place.record(&[&SMALL[1..], &["--endpoint", &endpoint, "--protocol", "mqtt5", "--qos", "2"]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(record["connections"]["granted_qos_lower"], 1, "one subscription");
    assert!(names_deviation(&record, "publish-qos-lower"), "{}", record["settings"]["deviations"]);

    let record = place.record(&[&SMALL[1..], &["--endpoint", &endpoint, "--protocol", "mqtt5", "--qos", "1"]].concat());
    assert_count_eq!(record["connections"]["granted_qos_lower"], 0);
    assert!(!names_deviation(&record, "publish-qos-lower"), "{}", record["settings"]["deviations"]);
}

#[test]
fn a_level_that_a_server_without_words_for_it_refuses_ends_connections_and_that_is_named() {
    let Some(broker) = Mosquitto::start("max_qos 1") else { return };
    let place = Place::new();
    let endpoint = broker.endpoint();
    let record =
        place.record(&[&SMALL[1..], &["--endpoint", &endpoint, "--protocol", "mqtt311", "--qos", "2"]].concat());
    schema::assert_agrees(&record);
    assert_closed(&record);
    assert_count_eq!(count(&record, "delivered"), 0);
    assert_count_eq!(record["connections"]["granted_qos_lower"], 1);
    assert!(connections(&record, "dropped") >= 10, "{}", record["connections"]);
    assert!(names_cause(&record, "dropped: "), "{}", record["connections"]);
}
