//! Wills against real mosquitto: published for devices whose connections churn cuts, counted separately, outside the
//! message accounting.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::support::books::{assert_closed, connections, count};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::schema;

/// Devices that disconnect in the middle and do not reconnect at once: a broker that reads the new connection first
/// would end the old one before it reads the DISCONNECT, and publish the will. The subscriber receives everything,
/// including wills.
fn workload(leave: &str) -> String {
    format!(
        "name: mortals
devices:
  - name: test/mortal
    count: 60
    every: 100ms
    payload: 100B
    topic: \"mortals/{{device}}\"
    churn: {{disconnect: 30% every 500ms, reconnect: 100% every 5s, leave: {leave}}}
    will: {{topic: \"mortals/gone/{{device}}\", payload: 40B, qos: 1}}
subscribers:
  - {{name: everything, filters: [\"mortals/#\"], qos: 1}}
"
    )
}

fn run(broker: &Mosquitto, leave: &str, protocol: &str) -> Value {
    let place = Place::new();
    place.write("mortals.yaml", workload(leave));
    let endpoint = broker.endpoint();
    let load = ["mortals.yaml", "--duration", "3s", "--warmup", "0s", "--endpoint", &endpoint, "--protocol", protocol];
    let record = place.record(&load);
    assert_closed(&record);
    schema::assert_agrees(&record);
    assert_count_eq!(count(&record, "foreign"), 0, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "lost"), 0, "{}", record["delivery"]);
    assert!(connections(&record, "planned_leaves") > 10, "{}", record["connections"]);
    record
}

#[test]
fn a_cut_connection_triggers_the_will_and_a_disconnect_does_not() {
    let Some(broker) = Mosquitto::start("") else { return };
    for protocol in ["mqtt5", "mqtt311"] {
        let record = run(&broker, "cut", protocol);
        let due = record["connections"]["wills"]["due"].as_u64().unwrap();
        assert!(due > 10, "{}", record["connections"]["wills"]);
        assert_count_eq!(record["connections"]["wills"]["delivered"], due, "{}", record["connections"]["wills"]);
        let record = run(&broker, "graceful", protocol);
        assert_count_eq!(
            (&record["connections"]["wills"]["due"], &record["connections"]["wills"]["delivered"]),
            (&Value::from(0), &Value::from(0))
        );
    }
}

#[test]
fn a_run_without_wills_does_not_speak_of_them() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    let endpoint = broker.endpoint();
    let record = place.record(&["hello", "--duration", "1s", "--warmup", "0s", "--endpoint", &endpoint]);
    assert_eq!(record["connections"]["wills"], Value::Null);
}

#[test]
fn numbers_for_topics_and_expiry_lose_nothing() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    let long = "x".repeat(400);
    let text = |topic_alias: bool| {
        format!(
            "name: numbered
devices:
  - {{name: test/a, count: 5, every: 20ms, payload: 100B, topic: \"numbered/{long}/{{device}}\", qos: 1,
     mqtt: {{topic_alias: {topic_alias}, message_expiry: 10s}}}}
subscribers:
  - {{name: everything, filters: [\"numbered/#\"], qos: 1}}
"
        )
    };
    place.write("numbered.yaml", text(true));
    place.write("named.yaml", text(false));
    let endpoint = broker.endpoint();
    let options = ["numbered.yaml", "--duration", "2s", "--warmup", "0s", "--endpoint", &endpoint];
    let record = place.record(&options);
    assert_closed(&record);
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (500, 0));
    // Without aliases each of 500 messages has a topic of 400 B. How TCP divides them into packets, and its acknowledgements,
    // make a difference of less than half of that.
    let sent_bytes =
        |record: &Value| record["cost"]["efficiency"]["groups"][0]["window"]["sent_bytes"].as_u64().unwrap();
    let named = place.record(&[&["named.yaml"], &options[1..]].concat());
    assert_count!(sent_bytes(&record) + 100_000 < sent_bytes(&named), "{}", record["cost"]["efficiency"]);
    let refused = place.call(&[&["run"], &options[..], &["--protocol", "mqtt311"]].concat());
    assert_eq!(refused.code(), 2, "{refused:?}");
    let words = refused.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("asks for `message_expiry`, messages do not expire in mqtt311"), "{words}");
}
