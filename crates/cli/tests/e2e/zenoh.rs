//! Zenoh between peers, which needs only pubmark: devices with one, two and many subscribers, chains, wrong input.

use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::place::Place;
use crate::support::schema;

#[test]
fn peers_need_no_router() {
    let place = Place::new();
    let timing = ["--duration", "2s", "--warmup", "1s"];
    for protocol in ["zenoh-peer", "zenoh-peer-block"] {
        let run = ["fan-in", "--system", "zenoh-peers", "--protocol", protocol, "--set", "publishers=20"];
        let record = place.record(&[&run[..], &timing[..]].concat());
        assert_closed(&record);
        schema::assert_agrees(&record);
        assert_delivered_once(&record);
        assert_count_eq!(count(&record, "offered"), 400);
        assert_eq!(record["system"]["back_end"], "brokerless");
        assert_eq!(record["protocol"]["sent_means"], "handed-over");
        assert_eq!(record["latency"]["receive_lateness"], serde_json::Value::Null, "nobody knows it");
        assert_eq!(
            record["latency"]["total"]["lower"]["max_us"], 0.0,
            "what is not known is width: {}",
            record["latency"]
        );
    }
}

#[test]
fn chains_go_between_peers_that_send_and_listen() {
    let place = Place::new();
    let run = ["supermarket", "--system", "zenoh-peers", "--protocol", "zenoh-peer-block", "--qos", "0"];
    let record = place.record(&[&run[..], &["--duration", "2s", "--warmup", "2s"]].concat());
    assert_closed(&record);
    schema::assert_agrees(&record);
    assert_delivered_once(&record);
    assert!(record["delivery"]["reactions"]["triggered"].as_u64().unwrap() > 10, "{}", record["delivery"]["reactions"]);
}

#[test]
fn what_zenoh_cannot_do_is_refused_before_anything_runs() {
    let place = Place::new();
    for (arguments, words) in [
        (&["smart-home", "--system", "zenoh-peers", "--qos", "1"][..], "QoS 1"),
        (&["smart-home", "--system", "zenoh-peers", "--limit", "cpu=1"], "`zenoh-peers` has none"),
        (&["smart-city-2x", "--system", "zenoh-peers", "--qos", "0"], "more than the 900 of zenoh-peer"),
        (&["smart-home", "--endpoint", "zenoh-peer://h", "--protocol", "zenoh"], "`zenoh-peer` is not one of zenoh"),
    ] {
        let called = place.call(&[&["run"], arguments].concat());
        let text = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(called.code() == 2 && text.contains(words) && text.contains("hint:"), "{arguments:?}: {text}");
    }
}
