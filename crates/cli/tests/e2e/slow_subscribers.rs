//! Subscribers that process each message for some time: waiting messages are delivered when the subscriber reads them,
//! and not before.

use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::place::Place;
use crate::support::schema;

/// Ten messages at the same time, twice a second, for a subscriber that processes each for 10 ms, and for one that does
/// not.
const BURSTS: &str = "\
name: bursts
devices:
  - {name: sensor, count: 10, every: 500ms, phase: aligned, payload: 200B, topic: 'bursts/{index}'}
subscribers:
  - {name: slow, filters: ['bursts/#'], processing: 10ms}
  - {name: quick, filters: ['bursts/#']}
";

/// Twice as many messages as the subscriber can process.
const TOO_MANY: &str = "\
name: too-many
devices:
  - {name: sensor, count: 2, every: 10ms, payload: 2KB, topic: 'many/{index}', qos: 1}
subscribers:
  - {name: slow, filters: ['many/#'], qos: 1, processing: 10ms}
";

const TIMES: [&str; 4] = ["--duration", "2s", "--warmup", "0s"];

/// The bounds of a figure of the latencies, ms.
fn latency_ms(record: &Value, name: &str) -> [f64; 2] {
    let total = &record["latency"]["total"];
    ["lower", "upper"].map(|bound| {
        let value = total[bound][name].as_f64();
        value.unwrap_or_else(|| panic!("no {name} in {total}")) / 1e3
    })
}

#[test]
fn what_waits_for_a_slow_subscriber_is_late_by_its_work_alone() {
    let place = Place::new();
    place.write("bursts.yaml", BURSTS);
    for protocol in ["mqtt5", "mqtt311"] {
        let record = place.record_with_processors(
            &[&["bursts.yaml", "--system", "builtin", "--protocol", protocol][..], &TIMES].concat(),
        );
        assert_closed(&record);
        schema::assert_agrees(&record);
        assert_delivered_once(&record);
        assert!(count(&record, "delivered") >= 60, "three or four bursts for two: {}", record["delivery"]);
        // The slow subscriber reads the messages of a burst after 0, 10, …, 90 ms, the quick one at once: 22.5 ms on
        // average. A busy machine adds to all of them; what pubmark reads late is not in the lower bound.
        let (mean, max) = (latency_ms(&record, "mean_us"), latency_ms(&record, "max_us"));
        assert!(mean[0] < 60.0 && mean[1] >= 22.0, "mean {mean:?} ms");
        assert!(max[0] < 200.0 && max[1] >= 90.0, "max {max:?} ms");
        // Its processing is not counted as our lateness: that is far below the processing of one message, let alone
        // ten.
        let lateness_us = record["latency"]["receive_lateness"]["p50_us"].as_f64().expect("a lateness");
        assert!(lateness_us < 5_000.0, "{lateness_us} µs");
    }
}

#[test]
fn too_many_for_a_slow_subscriber_arrive_as_it_takes_them() {
    let place = Place::new();
    place.write("too-many.yaml", TOO_MANY);
    let record = place.record(&[&["too-many.yaml", "--system", "builtin"][..], &TIMES].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert!((398..=402).contains(&count(&record, "delivered")), "{}", record["delivery"]);
    // It needs 4 s for 400 messages; the last was due after 2 s.
    let [_, max] = latency_ms(&record, "max_us");
    assert!((1_900.0..4_000.0).contains(&max), "max {max} ms");
    assert!(record["settings"]["drain_s"].as_f64().is_some_and(|drain_s| drain_s > 1.5), "{}", record["settings"]);
}

/// Messages that it had read at the end are its own, and not lost by the system.
#[test]
fn what_a_slow_subscriber_never_came_to_is_not_called_lost() {
    let place = Place::new();
    // It takes 3 s to work on the ten messages of a burst: some are never taken up. A read takes one of them at least and two at most:
    // the others stay in its socket.
    let slow = [("every: 500ms", "every: 1s"), ("processing: 10ms", "processing: 300ms"), ("200B", "40KB")];
    let workload = slow.iter().fold(BURSTS.to_owned(), |text, (old, new)| text.replace(old, new));
    place.write("bursts.yaml", &workload);
    let cut = [&["bursts.yaml", "--system", "builtin", "--drain", "100ms"][..], &TIMES].concat();
    let record = place.record_with_processors(&cut);
    assert_closed(&record);
    assert!(count(&record, "lost") > 0, "{}", record["delivery"]);
    let at_end = &record["delivery"]["at_end"];
    assert!(at_end["held_bytes"].as_u64().unwrap() > 40_000, "{at_end}");
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(reasons.contains("V19") && reasons.contains("some are late, not lost"), "{reasons}");
    assert!(reasons.contains("in messages that subscribers process"), "{reasons}");
}

#[test]
fn who_cannot_wait_says_so_before_the_run() {
    let place = Place::new();
    place.write("bursts.yaml", BURSTS);
    let called = place.call(&["run", "bursts.yaml", "--system", "zeromq-peers", "--dry-run"]);
    assert_eq!(called.code(), 2, "{called:?}");
    let said = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["subscriber group `slow` has a processing time", "zeromq-peers keep reading meanwhile", "mqtt5, mqtt311, nats"]
    {
        assert!(said.contains(words), "{words} is missing: {said}");
    }
}
