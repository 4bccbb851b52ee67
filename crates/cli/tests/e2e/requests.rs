//! Requests and replies: against mosquitto, nats-server and redis-server, between peers of Zenoh and CoAP; with
//! responders that are too slow, a server that ends, and one that lies and writes a journal of it.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pubmark_conformance::nats::Nats;
use pubmark_conformance::redis::Redis;
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::assert_closed;
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::schema;

fn number(record: &Value, part: &str, name: &str) -> u64 {
    record["requests"][part][name].as_u64().unwrap_or_else(|| panic!("no {part}.{name}: {}", record["requests"]))
}

/// The accounting of messages, of requests and of responders adds up, and the record agrees with its schema.
fn assert_sound(record: &Value) {
    assert_closed(record);
    schema::assert_agrees(record);
    let sum = |part, names: &[&str]| names.iter().map(|name| number(record, part, name)).sum::<u64>();
    let asked = sum("outcomes", &["answered", "late", "timed_out", "unknown"]);
    assert_count_eq!(number(record, "outcomes", "sent"), asked, "{}", record["requests"]);
    assert_count_eq!(record["delivery"]["sent"].as_u64(), Some(number(record, "outcomes", "sent")));
    let done = ["answered", "dropped", "without_address", "refused", "broken", "unsent"];
    assert_count_eq!(number(record, "responses", "received"), sum("responses", &done), "{}", record["requests"]);
}

/// A run of the built-in workload with these settings, 100 requests a second.
fn asked(endpoint: &str, protocol: &str, duration: &str, options: &[&str]) -> Value {
    let place = Place::new();
    let fixed =
        ["request-reply", "--warmup", "0s", "--duration", duration, "--endpoint", endpoint, "--protocol", protocol];
    let record = place.record(&[&fixed[..], options].concat());
    assert_sound(&record);
    record
}

fn assert_all_answered(record: &Value, count: u64) {
    let requests = &record["requests"];
    for name in ["sent", "answered"] {
        assert_count_eq!(number(record, "outcomes", name), count, "{requests}");
    }
    assert_count_eq!(
        (number(record, "outcomes", "duplicated"), number(record, "outcomes", "misdirected")),
        (0, 0),
        "{requests}"
    );
    assert_eq!((&requests["requesters"], &requests["responders"]), (&Value::from(10), &Value::from(1)));
    for name in ["round_trip", "service_round_trip", "travel"] {
        assert_count_eq!(requests[name]["upper"]["count"].as_u64(), Some(count), "{name}: {requests}");
    }
    assert_count_eq!(requests["receive_lateness"]["count"].as_u64(), Some(count), "{requests}");
    // A round trip is longer than its first half, and than itself without the responder's part.
    let mean = |part: &Value| part["mean_us"].as_f64().unwrap();
    assert!(mean(&requests["round_trip"]["upper"]) > mean(&record["latency"]["total"]["upper"]), "{requests}");
    assert!(mean(&requests["round_trip"]["upper"]) >= mean(&requests["travel"]["upper"]), "{requests}");
    assert_eq!(requests["by_group"][0]["outcomes"], requests["outcomes"], "{requests}");
    let codes: Vec<&str> =
        record["verdict"]["checks"].as_array().unwrap().iter().map(|check| check["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"V16"), "{codes:?}");
}

#[test]
fn every_request_is_answered_over_mqtt_5_at_every_level() {
    let Some(broker) = Mosquitto::start("") else { return };
    for qos in ["0", "1", "2"] {
        assert_all_answered(&asked(&broker.endpoint(), "mqtt5", "1s", &["--qos", qos]), 100);
    }
}

/// A server; if there is none, the reason is printed.
fn started<S: Server>(over: &str) -> Option<S> {
    match S::start(Limits::Large) {
        Ok(server) => Some(server),
        Err(Missing(reason)) => {
            pubmark_testing::skip(format_args!("requests over {over}: {reason}"));
            None
        }
    }
}

/// A redis-server and its endpoint.
fn redis() -> Option<(Redis, String)> {
    let server: Redis = started("Redis")?;
    let endpoint = format!("redis://{}", server.endpoint(Listener::Plain).ok()?.address);
    Some((server, endpoint))
}

#[test]
fn every_request_is_answered_over_the_lists_of_redis_and_none_is_left_there() {
    let Some((_server, endpoint)) = redis() else { return };
    assert_all_answered(&asked(&endpoint, "redis", "1s", &[]), 100);
    let address = endpoint.strip_prefix("redis://").unwrap();
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    connection.write_all(b"DBSIZE\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(connection).read_line(&mut line).unwrap();
    assert_eq!(line, ":0\r\n", "keys that nobody needs any more");
}

#[test]
fn what_a_responder_over_redis_cannot_keep_up_with_is_late_dropped_or_timed_out() {
    let Some((_server, endpoint)) = redis() else { return };
    assert_overwhelmed(&endpoint, "redis");
}

#[test]
fn the_books_close_when_redis_goes_and_comes_back() {
    let Some((mut server, endpoint)) = redis() else { return };
    let place = Place::new();
    let options = ["run", "request-reply", "--warmup", "0s", "--duration", "4s", "--endpoint", &endpoint];
    let settings =
        ["--protocol", "redis", "--set", "processing=20ms", "--set", "concurrency=9", "--set", "timeout=800ms"];
    let call = place.start_with_events(&[&options[..], &settings, &["--quiet"]].concat());
    place.wait_until_measured(1.0);
    server.kill();
    std::thread::sleep(Duration::from_millis(300));
    server.restart();
    let called = call.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = place.only_record();
    assert_sound(&record);
    assert!(number(&record, "outcomes", "answered") > 100, "{}", record["requests"]);
}

#[test]
fn every_request_is_answered_over_nats() {
    let Some(server) = started::<Nats>("NATS") else { return };
    let endpoint = server.endpoint(Listener::Plain).unwrap();
    let endpoint = format!("nats://{}", endpoint.address);
    assert_all_answered(&asked(&endpoint, "nats", "1s", &[]), 100);
}

#[test]
fn a_responders_time_is_in_the_round_trip_and_not_in_the_travel() {
    let Some(broker) = Mosquitto::start("") else { return };
    let record = asked(&broker.endpoint(), "mqtt5", "2s", &["--set", "processing=40ms", "--set", "concurrency=50"]);
    let mean = |name: &str| record["requests"][name]["upper"]["mean_us"].as_f64().unwrap();
    assert!(mean("round_trip") > 40_000.0, "{}", record["requests"]);
    let held_us = mean("round_trip") - mean("travel");
    assert!((40_000.0..60_000.0).contains(&held_us), "held {held_us} µs: {}", record["requests"]);
    assert!(record["requests"]["peak_in_flight"].as_u64().unwrap() >= 4, "{}", record["requests"]);
}

#[test]
fn a_responder_that_cannot_keep_up_makes_requests_wait_time_out_and_drop() {
    let Some(broker) = Mosquitto::start("") else { return };
    assert_overwhelmed(&broker.endpoint(), "mqtt5");
}

fn assert_overwhelmed(endpoint: &str, protocol: &str) {
    // It can reply to 25 of 100 requests a second.
    let slow = ["--set", "processing=40ms", "--set", "timeout=500ms", "--set", "responders.0.queue=30"];
    let record = asked(endpoint, protocol, "3s", &slow);
    let requests = &record["requests"];
    assert_count_eq!(number(&record, "outcomes", "sent"), 300, "{requests}");
    let answered = number(&record, "outcomes", "answered");
    // At first the queue is short enough for a reply in time.
    assert!((5..60).contains(&answered), "{requests}");
    assert!(number(&record, "outcomes", "late") > 30 && number(&record, "responses", "dropped") > 100, "{requests}");
    assert_count_eq!(number(&record, "outcomes", "timed_out"), number(&record, "responses", "dropped"), "{requests}");
    assert!(requests["waiting"]["max_us"].as_f64().unwrap() > 1_000_000.0, "{requests}");
    // Our delay is not that of the workload.
    assert!(requests["responder_lag"]["p50_us"].as_f64().unwrap() < 20_000.0, "{requests}");
}

#[test]
fn requests_beyond_the_concurrency_wait_at_the_requester() {
    let Some(broker) = Mosquitto::start("") else { return };
    let narrow = ["--set", "in_flight=1", "--set", "processing=150ms", "--set", "concurrency=100"];
    let record = asked(&broker.endpoint(), "mqtt5", "2s", &narrow);
    // Each of ten requesters gets 10 a second due and about 6.6 a second through, one at a time.
    assert_eq!(record["requests"]["peak_in_flight"], 10, "{}", record["requests"]);
    assert_count_eq!(number(&record, "outcomes", "answered"), 200, "{}", record["requests"]);
    assert!(
        record["latency"]["backpressure"]["max_us"].as_f64().unwrap() > 400_000.0,
        "{}",
        record["latency"]["backpressure"]
    );
    let mean = |name: &str| record["requests"][name]["upper"]["mean_us"].as_f64().unwrap();
    assert!(mean("round_trip") > mean("service_round_trip") + 100_000.0, "{}", record["requests"]);
}

#[test]
fn the_books_close_when_the_server_goes_and_comes_back() {
    let Some(mut broker) = Mosquitto::start("") else { return };
    for qos in ["0", "1"] {
        let place = Place::new();
        let endpoint = broker.endpoint();
        let options = ["run", "request-reply", "--warmup", "0s", "--duration", "4s", "--endpoint", &endpoint];
        let settings = ["--qos", qos, "--set", "processing=20ms", "--set", "concurrency=9", "--set", "timeout=800ms"];
        let call = place.start_with_events(&[&options[..], &settings, &["--quiet"]].concat());
        place.wait_until_measured(1.0);
        broker.kill();
        std::thread::sleep(Duration::from_millis(300));
        assert!(broker.restart());
        let called = call.wait();
        assert!(matches!(called.code(), 0 | 5), "{called:?}");
        let record = place.only_record();
        assert_sound(&record);
        assert!(number(&record, "outcomes", "answered") > 100, "{}", record["requests"]);
    }
}

/// The lying server of `tests/truth/lying_responder.py`; ends with the test.
struct Liar {
    process: Child,
    port: u16,
}

fn script() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth/lying_responder.py")
}

impl Liar {
    fn start(journal: &Path) -> Liar {
        let mut command = Command::new("python3");
        command.arg(script()).arg("serve").arg(journal).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3 is installed");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Liar { process, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        // Closing its standard input ends the script; a failing test does not wait for it.
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn late_twofold_missing_and_misdirected_answers_are_counted_as_what_they_are() {
    let place = Place::new();
    let journal = place.path().join("journal");
    let liar = Liar::start(&journal);
    place.write(
        "lied-to.yaml",
        "name: lied-to
devices: []
subscribers: []
requesters:
  - {name: requester, count: 4, rate: 20/s, payload: 64B, topic: \"lied/{device}\", timeout: 1s, in_flight: 100}
responders:
  - {name: responder, filters: [\"lied/+\"], reply: 64B}
",
    );
    let endpoint = format!("nats://127.0.0.1:{}", liar.port);
    let options = ["lied-to.yaml", "--warmup", "1s", "--duration", "2s", "--endpoint", &endpoint];
    let record = place.record(&[&options[..], &["--protocol", "nats"]].concat());
    assert_sound(&record);
    place.write("record.json", record.to_string());
    let compared = Command::new("python3")
        .arg(script())
        .args(["compare".as_ref(), journal.as_path(), &place.path().join("record.json")])
        .output()
        .unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

#[test]
fn every_request_is_answered_between_peers_of_zenoh() {
    let place = Place::new();
    for protocol in ["zenoh-peer", "zenoh-peer-block"] {
        let options = ["request-reply", "--warmup", "1s", "--duration", "2s", "--system", "zenoh-peers"];
        let record = place.record(&[&options[..], &["--protocol", protocol]].concat());
        assert_sound(&record);
        let requests = &record["requests"];
        assert_count_eq!(
            (number(&record, "outcomes", "sent"), number(&record, "outcomes", "answered")),
            (200, 200),
            "{requests}"
        );
        assert_eq!(requests["round_trip"]["upper"]["count"], 200, "{requests}");
        // The library writes on a separate thread; the reply may be here before that thread has reported when it began.
        let [with, without] = [&requests["service_round_trip"]["upper"]["count"], &requests["without_write_start"]]
            .map(|value| value.as_u64());
        assert_eq!(with.zip(without).map(|(with, without)| with + without), Some(200), "{requests}");
        assert_eq!(requests["receive_lateness"], Value::Null, "nobody knows it: {requests}");
    }
}

#[test]
fn what_a_responder_over_zenoh_cannot_keep_up_with_is_late_dropped_or_timed_out() {
    let endpoint = format!("zenoh-peer://{}", pubmark_conformance::ports::free());
    assert_overwhelmed(&endpoint, "zenoh-peer-block");
}

#[test]
fn every_request_is_answered_between_peers_of_coap() {
    let place = Place::new();
    for (qos, sizes) in [
        ("0", &["--set", "payload=24B"][..]),
        ("1", &[]),
        ("1", &["--set", "payload=3000B", "--set", "reply=5000B"]),
        ("1", &["--set", "processing=700ms", "--set", "concurrency=1000", "--set", "in_flight=20"]),
    ] {
        let options = ["request-reply", "--warmup", "1s", "--duration", "2s", "--system", "coap-peers", "--qos", qos];
        let record = place.record(&[&options[..], sizes].concat());
        assert_sound(&record);
        let requests = &record["requests"];
        assert_count_eq!(
            (number(&record, "outcomes", "sent"), number(&record, "outcomes", "answered")),
            (200, 200),
            "{requests}"
        );
        assert_count_eq!(record["delivery"]["delivered"], 200, "{}", record["delivery"]);
        for name in ["round_trip", "service_round_trip", "travel"] {
            assert_eq!(requests[name]["upper"]["count"], 200, "{name}: {requests}");
        }
        assert_eq!(requests["receive_lateness"]["count"], 200, "{requests}");
        for name in ["duplicated", "misdirected", "after_refusal"] {
            assert_count_eq!(number(&record, "outcomes", name), 0, "{requests}");
        }
        assert_eq!(record["system"]["name"], "coap-peers");
    }
}

#[test]
fn requests_over_coap_go_to_the_address_of_the_responder() {
    let place = Place::new();
    place.write(
        "rooms.yaml",
        "name: rooms
devices: []
subscribers: []
requesters:
  - {name: lamps, count: 4, rate: 20/s, payload: 64B, topic: \"lamps/{device}\", qos: 1}
  - {name: doors, count: 3, rate: 20/s, payload: 64B, topic: \"doors/{device}\"}
responders:
  - {name: lamp-room, filters: [\"lamps/+\"], reply: 64B, qos: 1}
  - {name: door-room, filters: [\"doors/+\"], reply: 2KiB, processing: 5ms}
",
    );
    let options = ["rooms.yaml", "--warmup", "0s", "--duration", "2s", "--system", "coap-peers"];
    let record = place.record(&options);
    assert_sound(&record);
    assert_count_eq!((number(&record, "outcomes", "sent"), number(&record, "outcomes", "answered")), (280, 280));
    assert_eq!((&record["requests"]["requesters"], &record["requests"]["responders"]), (&7.into(), &2.into()));
}

#[test]
fn what_a_responder_over_coap_cannot_keep_up_with_is_late_dropped_or_timed_out() {
    let endpoint = format!("coap://{}", pubmark_conformance::ports::free());
    assert_overwhelmed(&endpoint, "coap-peers");
}

#[test]
fn requests_without_responders_are_refused_over_coap_without_a_broker() {
    let place = Place::new();
    let called = place.call(&["run", "hello", "--system", "coap-peers", "--qos", "0"]);
    assert_eq!(called.code(), 2, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("publishes, coap-peers carries requests and their replies only"), "{words}");
    assert!(place.runs().is_empty());
}

#[test]
fn a_request_with_another_receiver_than_its_responder_is_refused_over_redis() {
    let place = Place::new();
    place.write(
        "spied-on.yaml",
        "name: spied-on
devices: []
subscribers:
  - {name: spy, filters: [\"asked/#\"]}
requesters:
  - {name: requester, rate: 20/s, payload: 64B, topic: \"asked/{device}\"}
responders:
  - {name: responder, filters: [\"asked/+\"], reply: 64B}
",
    );
    let called = place.call(&["run", "spied-on.yaml", "--endpoint", "redis://127.0.0.1:9", "--protocol", "redis"]);
    assert_eq!(called.code(), 2, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "`spy` subscribes to requests (`asked/0-0`), over redis only their responder receives them";
    assert!(words.contains(expected), "{words}");
}

#[test]
fn a_system_without_requests_is_refused_before_a_run() {
    let place = Place::new();
    for (options, expected) in [
        (
            ["--endpoint", "mqtt://127.0.0.1:9", "--protocol", "mqtt311"],
            "`requester` waits for replies, mqtt311 has no requests (mqtt5, nats",
        ),
        (["--endpoint", "nats://127.0.0.1:9", "--protocol", "jetstream"], "jetstream has no requests"),
        (["--endpoint", "coap://127.0.0.1:9", "--protocol", "coap"], "coap has no requests (mqtt5"),
    ] {
        let called = place.call(&[&["run", "request-reply"], &options[..]].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{words}");
        assert!(place.runs().is_empty());
    }
}
