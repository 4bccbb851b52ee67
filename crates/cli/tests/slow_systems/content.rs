//! Content filters in the broker, against the same filters at the clients: the same messages match, and nothing else comes.

use std::path::Path;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::system::{installed, options, pubmark, start, stop};

/// 4 devices, 10 messages each in a second, numbered from 6 behind those of the warm-up.
const MESSAGES: u64 = 40;

fn write_workload(folder: &Path, at: &str) {
    let text = format!(
        "name: filtered
devices:
  - name: test/sensor
    count: 4
    every: 100ms
    qos: 1
    topic: \"filtered/{{device}}\"
    body:
      json: '{{\"n\": {{{{counter}}}}, \"temperature\": {{{{normal 25 5}}}}, \"room\": \"{{{{enum hall lab}}}}\", \"air\": {{\"wet\": {{{{bool 0.3}}}}}}}}'
subscribers:
  - {{name: first, count: 2, filters: [\"filtered/#\"], qos: 1, where: {{filter: payload.n <= 8, at: {at}}}}}
  - {{name: warm, filters: [\"filtered/#\"], qos: 1, where: {{filter: 'payload.temperature > 25 && payload.room == \"hall\"', at: {at}}}}}
  - {{name: rest, filters: [\"filtered/#\"], qos: 1, where: {{filter: '!(payload.temperature > 25) || payload.room != \"hall\"', at: {at}}}}}
  - {{name: wet, filters: [\"filtered/+\"], qos: 1, where: {{filter: payload.air.wet, at: {at}}}}}
  - {{name: pool, count: 2, shared: pool, filters: [\"filtered/#\"], qos: 1, where: {{filter: payload.n > 10, at: {at}}}}}
"
    );
    std::fs::write(folder.join("filtered.yaml"), text).unwrap();
}

fn record(folder: &Path, place: &[&str]) -> Value {
    let run = ["run", "filtered.yaml", "--protocol", "amqp10", "--duration", "1s", "--warmup", "500ms", "--seed", "5"];
    let output = pubmark(folder, &[&run[..], place, &["--json", "--quiet"]].concat()).output().unwrap();
    // On a busy machine the run may be invalid; the counts are the same.
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{:?}\n{errors}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Figures of each group.
fn rows(record: &Value) -> Vec<Row> {
    let rows = record["delivery"]["content"].as_array().unwrap().iter();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"));
    rows.map(|row| Row {
        group: row["group"].as_str().unwrap().to_owned(),
        expected: number(row, "should_match") + number(row, "missed"),
        matched: number(row, "matched"),
        filtered: number(row, "filtered"),
        filtered_bytes: number(row, "filtered_bytes"),
        filtered_out: row["filtered_out"].as_u64(),
    })
    .collect()
}

#[derive(Debug)]
struct Row {
    group: String,
    expected: u64,
    matched: u64,
    filtered: u64,
    filtered_bytes: u64,
    filtered_out: Option<u64>,
}

fn check<'a>(record: &'a Value, code: &str) -> &'a Value {
    let checks = record["verdict"]["checks"].as_array().unwrap();
    checks.iter().find(|check| check["code"] == code).unwrap()
}

#[test]
#[ignore = "slow: make test-all"]
fn artemis_filters_as_the_clients_do_and_delivers_nothing_else() {
    if installed("artemis").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |at: &str| {
        write_workload(folder.path(), at);
        record(folder.path(), &["--system", "artemis"])
    };
    let (at_client, at_broker) = (run("client"), run("broker"));
    let mut expected = 0;
    for (client, broker) in rows(&at_client).iter().zip(rows(&at_broker)) {
        let both = format!("{client:?}\n{broker:?}");
        assert_eq!(client.group, broker.group);
        assert_count_eq!((client.expected, client.matched), (broker.expected, broker.matched), "{both}");
        assert_count_eq!(client.matched, client.expected, "{both}");
        assert!(client.filtered > 0 && client.filtered_bytes > 60 * client.filtered, "{both}");
        assert_count_eq!((broker.filtered, broker.filtered_bytes), (0, 0), "{both}");
        assert_count_eq!((client.filtered_out, broker.filtered_out), (None, Some(client.filtered)), "{both}");
        expected += broker.expected;
    }
    assert_count_eq!(&at_client["delivery"]["delivered"], &Value::from(6 * MESSAGES));
    let delivery = &at_broker["delivery"];
    for (name, count) in [
        ("expected", expected),
        ("delivered", expected),
        ("filtered_out", 6 * MESSAGES - expected),
        ("unmatched", 0),
        ("lost", 0),
        ("absent", 0),
        ("duplicated", 0),
    ] {
        assert_count_eq!(&delivery[name], &Value::from(count), "{name}: {delivery}");
    }
    for record in [&at_client, &at_broker] {
        assert_eq!(check(record, "V30")["status"], "valid", "{}", check(record, "V30"));
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_ignores_filters_and_the_record_shows_it() {
    let Some(definition) = installed("rabbitmq") else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = "name: filtered
devices:
  - {name: sensor, count: 4, every: 100ms, qos: 1, topic: \"filtered/{device}\", body: {json: '{\"n\": {{counter}}}'}}
subscribers:
  - {name: first, filters: [\"filtered/#\"], qos: 1, where: {filter: payload.n <= 8, at: broker}}
";
    std::fs::write(folder.path().join("filtered.yaml"), text).unwrap();
    let call = ["run", "filtered.yaml", "--system", "rabbitmq", "--protocol", "amqp10"];
    let refused = pubmark(folder.path(), &call).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let errors = String::from_utf8_lossy(&refused.stderr);
    let words = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`rabbitmq` has no content filters over amqp10") && words.contains("at: client"), "{words}");
    // One that runs already is taken at its word.
    let system = start(&definition, &options("amqp10"));
    let endpoint = system.endpoint().to_string();
    let found = record(folder.path(), &["--endpoint", &endpoint]);
    stop(system);
    let (delivery, row) = (&found["delivery"], &found["delivery"]["content"][0]);
    assert_count_eq!(&delivery["expected"], &Value::from(12), "{delivery}");
    assert_count_eq!(&delivery["delivered"], &Value::from(12), "{delivery}");
    assert_count_eq!(&delivery["unmatched"], &Value::from(MESSAGES - 12), "{delivery}");
    assert_count_eq!(&row["filtered"], &Value::from(MESSAGES - 12), "{row}");
    assert_eq!(check(&found, "V30")["status"], "suspect", "{}", check(&found, "V30"));
}
