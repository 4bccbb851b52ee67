//! The latency breakdown: a delay that is added to one part is found in that part and in no other.

use std::path::Path;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::links::can_be_made;
use crate::support::books::assert_closed;
use crate::support::place::{PUBMARK, Place};

const TIMES: [&str; 4] = ["--duration", "4s", "--warmup", "1s"];

/// Largest first quartile of a part without an added delay, ms: far above its value on a busy machine.
const NOTHING_MS: f64 = 6.0;

/// Parts with an added delay, each with its name and its time in ms.
type Put<'a> = &'a [(&'a str, f64)];

const PARTS: [&str; 5] = ["device", "network_up", "system", "network_down", "subscriber"];

fn workload(device_link: &str, subscriber_link: &str, payload: &str, qos: u8) -> String {
    let behind = |link: &str| if link.is_empty() { String::new() } else { format!(", link: {link}") };
    let link = |name: &str, link: &str| if link.is_empty() { String::new() } else { format!("  {name}: {link}\n") };
    format!(
        "name: parts\nlinks:\n{}{}devices:\n  - {{name: sensor, count: 5, every: 100ms, payload: {payload}, \
         topic: 'parts/{{index}}', qos: {qos}{}}}\nsubscribers:\n  - {{name: reader, count: 2, filters: ['parts/#'], qos: {qos}{}}}\n",
        link("near", device_link),
        link("far", subscriber_link),
        behind(if device_link.is_empty() { "" } else { "near" }),
        behind(if subscriber_link.is_empty() { "" } else { "far" }),
    )
}

fn run(place: &Place, workload: String, options: &[&str]) -> Value {
    place.write("parts.yaml", workload);
    let record = place.record(&[&["parts.yaml"], &TIMES[..], options].concat());
    assert_closed(&record);
    let breakdown = record["latency"]["breakdown"].clone();
    let rows = breakdown["rows"].as_array().expect("rows");
    assert_count_eq!(
        (rows.len(), &breakdown["one_in"], &breakdown["dropped"]),
        (1, &1.into(), &0.into()),
        "{breakdown}"
    );
    rows[0].clone()
}

fn count(row: &Value, what: &str) -> u64 {
    row[what].as_u64().unwrap_or_else(|| panic!("no {what} in {row}"))
}

fn ms(row: &Value, part: &str, which: &str) -> f64 {
    bounded_ms(row, part, "upper", which)
}

fn bounded_ms(row: &Value, part: &str, bound: &str, which: &str) -> f64 {
    row["parts"][part][bound][which].as_f64().unwrap_or_else(|| panic!("no {which} of {part} in {row}")) / 1e3
}

/// Nearly all messages were seen, and their parts add up to their latencies.
fn assert_seen(row: &Value) {
    let [followed, complete, consistent] = ["followed", "complete", "consistent"].map(|what| count(row, what));
    assert!(followed >= 300, "{row}");
    assert!(complete * 100 >= followed * 99 && consistent * 1_000 >= complete * 999, "{row}");
}

/// Each part is the added delay, or up to `NOTHING_MS` more. A busy machine adds to the upper bound of each part, and to both
/// of the system's, so the limit is one of the lower bound's first quartile.
fn assert_put(row: &Value, put: Put) {
    for part in PARTS {
        let expected = put.iter().find(|(name, _)| *name == part).map_or(0.0, |(_, time)| *time);
        let (lower, upper) = (bounded_ms(row, part, "lower", "p25_us"), bounded_ms(row, part, "upper", "p50_us"));
        let is_put = lower < expected + NOTHING_MS && upper >= expected;
        assert!(is_put, "{part}: {lower} to {upper} ms, {expected} expected: {row}");
    }
}

#[test]
fn delays_of_links_are_in_the_network_and_nowhere_else() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    let links = workload("{delay: 20ms}", "{delay: 35ms}", "100B", 0);
    let row = run(&place, links.clone(), &["--system", "builtin"]);
    assert_seen(&row);
    assert_put(&row, &[("network_up", 20.0), ("network_down", 35.0)]);
    assert_eq!(row["parts"]["rest"], Value::Null);
    let row = run(&place, links.replace("qos: 0", "qos: 1"), &["--system", "mosquitto", "--profile", "tuned"]);
    assert_seen(&row);
    assert_put(&row, &[("network_up", 20.0), ("network_down", 35.0)]);
}

#[test]
fn what_a_system_holds_back_is_in_the_system_and_nowhere_else() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    let liar = pubmark_conformance::liar::program(Path::new(PUBMARK));
    place.write("liar.script", "delay 20ms\n");
    place.write(
        "liar.yaml",
        format!(
            "name: liar\ntitle: the lying broker\ndescription: holds messages back\nranked: false\n\
             listeners:\n  mqtt: {{scheme: mqtt, tls_scheme: mqtts}}\n\
             protocols:\n  mqtt5: {{listener: mqtt, highest_qos: 2, retain: true, persistent_sessions: true}}\n\
             limits:\n  maximum_packet_bytes: 268435455\n\
             back_ends:\n  process:\n    program: {}\n    install: this workspace\n    arguments:\n      \
             - add: [--listen, '{{host}}:{{port:mqtt}}', --journal, '{{directory}}/journal', --script, {}]\n    \
             ready_within_s: 10\n    stop_within_s: 5\nprofiles:\n  default:\n    description: as it comes\n",
            liar.display(),
            place.path().join("liar.script").display()
        ),
    );
    let links = workload("{delay: 100us}", "{delay: 100us}", "100B", 0);
    let row = run(&place, links, &["--system", "./liar.yaml"]);
    assert_seen(&row);
    assert_put(&row, &[("system", 20.0)]);
}

#[test]
fn packets_sent_again_and_long_messages_are_the_networks_time() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    // 10 KB at 4 MB/s take 2.5 ms, in seven packets; every message waits for its last one.
    let slow = workload("{rate: 4MB/s, delay: 10ms}", "{delay: 100us}", "10KB", 0);
    let row = run(&place, slow, &["--system", "mosquitto", "--profile", "tuned"]);
    assert_seen(&row);
    assert_put(&row, &[("network_up", 12.5)]);
    // One message in ten is sent again, after 200 ms at least: that is the network's time. As a rule no message follows meanwhile, which
    // would wait for the lost one in the system's kernel. A packet that is lost twice, or a connection whose SYN was lost (RFC 6298 §5.7),
    // has a time-out longer than the second between two messages: more than one message in ten can wait behind such, one in four cannot.
    let lossy = workload("{delay: 1ms, loss: 10%}", "{delay: 100us}", "100B", 1);
    let lossy = lossy.replace("count: 5, every: 100ms", "count: 50, every: 1s");
    let row = run(&place, lossy, &["--system", "mosquitto", "--profile", "tuned"]);
    assert_seen(&row);
    assert!(ms(&row, "network_up", "p95_us") > 100.0, "{row}");
    for part in ["system", "subscriber"] {
        assert!(ms(&row, part, "p75_us") < 100.0, "{part}: {row}");
    }
}

#[test]
fn a_side_without_a_link_is_one_with_the_system() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    let row = run(&place, workload("{delay: 20ms}", "", "100B", 0), &["--system", "builtin"]);
    assert_seen(&row);
    assert!((20.0..20.0 + NOTHING_MS).contains(&ms(&row, "network_up", "p50_us")), "{row}");
    assert!(ms(&row, "rest", "p50_us") < NOTHING_MS, "{row}");
    for part in ["system", "network_down", "subscriber"] {
        assert_eq!(row["parts"][part], Value::Null, "{part}");
    }
}

#[test]
fn a_masked_message_is_not_seen() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    let links = workload("{delay: 1ms}", "{delay: 1ms}", "100B", 0);
    // What a client sends in a WebSocket is masked (RFC 6455 §5.3).
    let mosquitto = ["--system", "mosquitto", "--profile", "tuned", "--transport", "websocket"];
    let row = run(&place, links, &mosquitto);
    assert!(count(&row, "followed") >= 300, "{row}");
    assert_eq!((count(&row, "complete"), &row["parts"]["whole"]), (0, &Value::Null));
}
