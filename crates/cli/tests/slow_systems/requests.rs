//! Requests and replies over both AMQP versions: all requests with a reply, a responder that is too slow, a server that
//! ends and is restarted. The accounting of requests and of responders always adds up.

use std::process::Stdio;
use std::time::Duration;

use pubmark_conformance::artemis::Artemis;
use pubmark_conformance::rabbitmq::RabbitMq;
use pubmark_conformance::server::{LOGIN, Limits, Listener, Server};
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::system::{installed, pubmark};

/// Systems and the protocols that they answer requests over.
const OVER: &[(&str, &str)] = &[("rabbitmq", "amqp091"), ("rabbitmq", "amqp10"), ("artemis", "amqp10")];

fn number(record: &Value, part: &str, name: &str) -> u64 {
    record["requests"][part][name].as_u64().unwrap_or_else(|| panic!("no {part}.{name}: {}", record["requests"]))
}

fn assert_closed(record: &Value) {
    let sum = |part, names: &[&str]| names.iter().map(|name| number(record, part, name)).sum::<u64>();
    let asked = sum("outcomes", &["answered", "late", "timed_out", "unknown"]);
    assert_count_eq!(number(record, "outcomes", "sent"), asked, "{}", record["requests"]);
    assert_count_eq!(record["delivery"]["sent"].as_u64(), Some(number(record, "outcomes", "sent")));
    let done = ["answered", "dropped", "without_address", "refused", "broken", "unsent"];
    assert_count_eq!(number(record, "responses", "received"), sum("responses", &done), "{}", record["requests"]);
    for name in ["duplicated", "misdirected"] {
        assert_count_eq!(number(record, "outcomes", name), 0, "{}", record["requests"]);
    }
}

/// Common arguments: 10 requesters with 10 requests a second each.
const ASKING: &[&str] = &["run", "request-reply", "--warmup", "0s", "--json", "--quiet"];

fn read(output: &std::process::Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{:?}\n{errors}", output.status);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_closed(&record);
    record
}

fn asked(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    read(&pubmark(folder.path(), &[ASKING, arguments].concat()).output().unwrap())
}

#[test]
#[ignore = "slow: make test-all"]
fn every_request_is_answered_at_every_level() {
    for (system, protocol) in OVER.iter().filter(|(system, _)| installed(system).is_some()) {
        for qos in ["0", "1"] {
            let record = asked(&["--system", system, "--protocol", protocol, "--qos", qos, "--duration", "2s"]);
            let requests = &record["requests"];
            let books = ["sent", "answered"].map(|name| number(&record, "outcomes", name));
            assert_count_eq!(books, [200, 200], "{system} over {protocol} at {qos}: {requests}");
            for name in ["round_trip", "service_round_trip", "travel"] {
                assert_eq!(requests[name]["upper"]["count"], 200, "{name}: {requests}");
            }
        }
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn what_a_responder_cannot_keep_up_with_is_late_dropped_or_timed_out() {
    for (system, protocol) in OVER.iter().filter(|(system, _)| installed(system).is_some()) {
        // It can reply to 25 of 100 requests a second.
        let slow = ["--set", "processing=40ms", "--set", "timeout=500ms", "--set", "responders.0.queue=30"];
        let record = asked(&[&["--system", system, "--protocol", protocol, "--duration", "3s"], &slow[..]].concat());
        let requests = &record["requests"];
        assert_count_eq!(number(&record, "outcomes", "sent"), 300, "{system} over {protocol}: {requests}");
        assert!((5..60).contains(&number(&record, "outcomes", "answered")), "{system} over {protocol}: {requests}");
        assert!(number(&record, "outcomes", "late") > 30, "{system} over {protocol}: {requests}");
        let [timed_out, dropped] = [number(&record, "outcomes", "timed_out"), number(&record, "responses", "dropped")];
        assert!(dropped > 100 && timed_out == dropped, "{system} over {protocol}: {requests}");
    }
}

/// Kills the server during a run and starts it again.
fn closes_when_the_server_goes<S: Server>(protocol: &str) {
    let mut server = match S::start(Limits::Large) {
        Ok(server) => server,
        Err(missing) => return pubmark_testing::skip(&missing.0),
    };
    let endpoint = server.endpoint(Listener::Plain).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = ["--endpoint", &endpoint.shown, "--user", LOGIN.0, "--password", LOGIN.1, "--protocol", protocol];
    let settings = ["--set", "processing=20ms", "--set", "concurrency=9", "--set", "timeout=800ms", "--qos", "1"];
    let mut call = pubmark(folder.path(), &[ASKING, &["--duration", "40s"], &place, &settings].concat());
    let running = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    server.kill();
    server.restart();
    let record = read(&running.wait_with_output().unwrap());
    let requests = &record["requests"];
    // Before and after: 4 s of 100 a second, and all but the time of a start that may be slow.
    assert!(number(&record, "outcomes", "answered") > 600, "{protocol}: {requests}");
    assert!(
        record["connections"]["dropped"].as_u64().is_some_and(|dropped| dropped >= 11),
        "{}",
        record["connections"]
    );
}

#[test]
#[ignore = "slow: make test-all"]
fn the_books_close_when_rabbitmq_goes_and_comes_back() {
    closes_when_the_server_goes::<RabbitMq>("amqp091");
    closes_when_the_server_goes::<RabbitMq>("amqp10");
}

#[test]
#[ignore = "slow: make test-all"]
fn the_books_close_when_artemis_goes_and_comes_back() {
    closes_when_the_server_goes::<Artemis>("amqp10");
}
