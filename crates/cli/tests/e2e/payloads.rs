//! Bodies with fields and headers beside them: an independent subscriber receives only JSON.

use std::process::{Command, Stdio};
use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, count};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::processes::wait_for;
use crate::support::schema;

const MESSAGES: usize = 40;

fn workload(header: &str) -> String {
    format!(
        "name: pure
defaults: {{header: {header}, properties: {{site: hall-3}}}}
devices:
  - name: test/sensor
    count: 4
    every: 100ms
    qos: 1
    topic: \"pure/{{device}}\"
    body:
      json: |
        {{\"device\": \"{{{{device}}}}\", \"n\": {{{{counter}}}}, \"t\": {{{{normal 21 0.5}}}},
         \"at\": \"{{{{timestamp}}}}\", \"state\": \"{{{{enum on off}}}}\"}}
subscribers:
  - {{name: everything, filters: [\"pure/#\"], qos: 1}}
"
    )
}

fn run(place: &Place, header: &str, options: &[&str]) -> Value {
    place.write("pure.yaml", workload(header));
    let record = place.record(&[&["pure.yaml", "--duration", "1s", "--warmup", "0s", "--seed", "5"], options].concat());
    assert_closed(&record);
    schema::assert_agrees(&record);
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (MESSAGES as u64, 0));
    assert_count_eq!(count(&record, "foreign"), 0);
    record
}

/// A header beside the payload is stamped like one in it: every message has a service latency, which is below its
/// latency.
fn assert_stamped(record: &Value) {
    assert_count_eq!(record["latency"]["without_write_start"].as_u64(), Some(0), "{}", record["latency"]);
    let service = &record["latency"]["service"]["upper"];
    let total = &record["latency"]["total"]["upper"];
    assert_count_eq!(service["count"].as_u64(), Some(MESSAGES as u64), "{}", record["latency"]);
    assert!(service["max"].as_f64() <= total["max"].as_f64(), "{}", record["latency"]);
}

#[test]
fn who_subscribes_receives_json_and_the_header_beside_it() {
    let Some(broker) = Mosquitto::start("log_type subscribe") else { return };
    let place = Place::new();
    let port = broker.port.to_string();
    let mut listener = Command::new("mosquitto_sub");
    listener.args(["-p", &port, "-V", "5", "-t", "pure/#", "-C", "40", "-W", "20", "-F", "%P|%p"]);
    let listener = match listener.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(listener) => listener,
        Err(error) => return pubmark_testing::skip(format_args!("mosquitto_sub is not installed: {error}")),
    };
    wait_for("the subscription", Duration::from_secs(10), || broker.log().contains("pure/#"));
    let endpoint = broker.endpoint();
    let record = run(&place, "user-property", &["--endpoint", &endpoint, "--protocol", "mqtt5"]);
    assert_stamped(&record);
    let heard = String::from_utf8(listener.wait_with_output().unwrap().stdout).unwrap();
    let (mut numbers, mut lines) = (vec![], 0);
    for message in heard.split("site:hall-3").skip(1) {
        lines += 1;
        let (properties, payload) = message.split_once('|').unwrap();
        let header = properties.trim().strip_prefix("pubmark:").unwrap().trim();
        assert!(header.len() == 48 && header.bytes().all(|digit| digit.is_ascii_hexdigit()), "{header}");
        let body: Value = serde_json::from_str(payload.trim()).unwrap_or_else(|error| panic!("{error}: {payload}"));
        assert!(body["device"].as_str().unwrap().starts_with("0-"), "{body}");
        assert!((15.0..27.0).contains(&body["t"].as_f64().unwrap()), "{body}");
        assert!(body["at"].as_str().unwrap().starts_with("20"), "{body}");
        numbers.push(body["n"].as_u64().unwrap());
    }
    assert_count_eq!(lines, MESSAGES);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_body_that_gives_its_size_is_counted_with_its_header_where_that_is_in_it() {
    let place = Place::new();
    let per_s = |record: &Value, name: &str| record["throughput"][name].as_f64().unwrap();
    let mean_bytes = |record: &Value| per_s(record, "payload_bytes_per_s") / per_s(record, "delivered_per_s");
    let within = run(&place, "payload", &["--system", "builtin", "--protocol", "mqtt5"]);
    let beside = run(&place, "user-property", &["--system", "builtin", "--protocol", "mqtt5"]);
    assert_stamped(&beside);
    // Bodies differ by a few bytes, and not all messages arrive before the end of the window.
    let difference = mean_bytes(&within) - mean_bytes(&beside);
    assert!((difference - 24.0).abs() < 3.0, "{difference}");
}

#[test]
fn a_protocol_without_properties_refuses_them() {
    let place = Place::new();
    place.write("pure.yaml", workload("user-property"));
    let refused = place.call(&["run", "pure.yaml", "--system", "builtin", "--protocol", "mqtt311", "--duration", "1s"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    let words = refused.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("over mqtt311 see none (mqtt5, "), "{words}");
    place.write("pure.yaml", workload("payload"));
    let refused = place.call(&["run", "pure.yaml", "--system", "builtin", "--protocol", "mqtt311", "--duration", "1s"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.errors.contains("`properties`"), "{refused:?}");
}
