//! Protocol efficiency: bytes that links count for a message are those that its protocol defines, the papers' figures
//! are reproduced, and the figures from sockets agree.
//!
//! ComBench's case (VALUETOOLS 2021, efficiency): one publisher and one subscriber, topic `data`, ten messages a second.

use std::ops::Range;

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::links::can_be_made;
use crate::support::books::{assert_closed, assert_delivered_once};
use crate::support::place::Place;

/// Its publisher counted these bytes at its interface: `sent_bytes_per_msg_at_nic` of `combench_reference.csv` gives
/// the same ratios.
const MQTT_100_B: f64 = 0.572;
const MQTT_QOS_1_200_B: f64 = 0.583;
const COAP_100_B: f64 = 0.577;

/// Header of IPv4 and, with timestamps, of TCP; of UDP.
const IP_TCP: u64 = 20 + 20 + 12;
const IP_UDP: u64 = 20 + 8;
const ETHERNET: u64 = 14;

const TIMES: [&str; 4] = ["--duration", "10s", "--warmup", "1s"];

fn pair(topic: &str, payload: &str, qos: u8, link: &str) -> String {
    let link = if link.is_empty() { "" } else { ", link: wire" };
    let links = if link.is_empty() { "" } else { "links:\n  wire: {delay: 100us}\n" };
    format!(
        "name: pair\n{links}devices:\n  - {{name: sender, every: 100ms, payload: {payload}, topic: {topic}, qos: {qos}{link}}}\n\
         subscribers:\n  - {{name: reader, filters: [{topic}], qos: {qos}{link}}}\n"
    )
}

fn run(workload: String, options: &[&str]) -> Value {
    let place = Place::new();
    place.write("pair.yaml", workload);
    let record = place.record(&[&["pair.yaml"], &TIMES[..], options].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    record["cost"]["efficiency"].clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn ratio(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no ratio"))
}

fn within(found: f64, of: f64, share: f64) -> bool {
    (found - of).abs() <= share * of
}

/// (packets, bytes) of one side in the window.
fn window(group: &Value, side: &str) -> (u64, u64) {
    let counts = &group["window"];
    (number(&counts[format!("{side}_packets")]), number(&counts[format!("{side}_bytes")]))
}

/// Figures from sockets are within 2 %, or a packet or two, of those from links.
fn assert_both_ways_agree(efficiency: &Value) {
    for group in efficiency["groups"].as_array().expect("groups") {
        assert_eq!(group["source"], "counted", "{group}");
        for side in ["sent_bytes", "received_bytes"] {
            let (counted, estimated) = (number(&group["window"][side]), number(&group["estimated_window"][side]));
            let allowed = (counted / 50).max(400);
            assert!(counted.abs_diff(estimated) <= allowed, "{side}: {counted}, estimated {estimated}: {group}");
        }
    }
}

/// Each published message needed one packet of N bytes (IP), and there were only TCP acknowledgements without data
/// besides.
fn assert_bytes_a_message(group: &Value, bytes: u64, payload: u64) {
    let (packets, sent) = window(group, "sent");
    let published = number(&group["published"]);
    assert!((95..=101).contains(&published), "{group}");
    // The window's edge may be between a message and its packet.
    assert_count!(packets.abs_diff(published) <= 1, "{packets} packets for {published} messages: {group}");
    assert_count_eq!(sent, packets * bytes, "{group}");
    let expected = payload as f64 / (bytes + ETHERNET) as f64;
    let found = ratio(&group["ratios"]["sent_ethernet"]);
    assert!(within(found, expected, 0.011), "{found}, {expected}");
}

#[test]
fn mqtt_costs_what_combench_measured() {
    if !can_be_made() {
        return;
    }
    let options = ["--system", "mosquitto", "--profile", "tuned", "--protocol", "mqtt311"];
    let efficiency = run(pair("data", "100B", 0, "wire"), &options);
    let [sender, reader] = [&efficiency["groups"][0], &efficiency["groups"][1]];
    // A fixed header of 2 B, the topic's length in 2 B, the topic (MQTT 3.1.1 §3.3).
    assert_bytes_a_message(sender, IP_TCP + 2 + 2 + 4 + 100, 100);
    let (packets, bytes) = window(sender, "received");
    assert_count_eq!(bytes, packets * IP_TCP, "only acknowledgements come back: {sender}");
    let found = ratio(&efficiency["total"]["ratios"]["sent_ethernet"]);
    assert!(within(found, MQTT_100_B, 0.02), "{found}");
    // In the other direction, the broker's packets contain the same message.
    let found = ratio(&reader["ratios"]["received_ethernet"]);
    assert!(within(found, MQTT_100_B, 0.02), "{found}: {reader}");
    assert!(number(&sender["set_up"]["sent_packets"]) > 10, "connect and ten messages of the warm-up: {sender}");
    assert_both_ways_agree(&efficiency);
}

#[test]
fn an_acknowledged_message_of_mqtt_costs_what_combench_measured() {
    if !can_be_made() {
        return;
    }
    let options = ["--system", "mosquitto", "--profile", "tuned", "--protocol", "mqtt311"];
    let efficiency = run(pair("data", "200B", 1, "wire"), &options);
    let sender = &efficiency["groups"][0];
    // The message with a remaining length of 2 B and a packet identifier, and TCP's acknowledgement of the PUBACK.
    let (packets, bytes) = window(sender, "sent");
    let published = number(&sender["published"]);
    // On a busy machine some of these acknowledgements travel with the next message.
    let together = (2 * published).saturating_sub(packets);
    assert_count!(packets <= 2 * published + 4 && together < published / 2, "{sender}");
    assert_count_eq!(bytes - packets * IP_TCP, (200 + 3 + 2 + 4 + 2) * published, "{sender}");
    let saved = together * (IP_TCP + ETHERNET);
    let found = 200.0 * published as f64 / (bytes + packets * ETHERNET + saved) as f64;
    assert!(within(found, MQTT_QOS_1_200_B, 0.02), "{found}: {sender}");
    assert_both_ways_agree(&efficiency);
}

#[test]
fn coap_costs_what_its_bytes_come_to() {
    if !can_be_made() {
        return;
    }
    for (topic, paper) in [("data", None), ("data-of-aiocoap-", Some(COAP_100_B))] {
        let efficiency = run(pair(topic, "100B", 0, "wire"), &["--system", "coap"]);
        let sender = &efficiency["groups"][0];
        // Header 4 B, token 2 B (up to 255 messages), `ps` 3 B, the topic with its option's 1 B (2 B from 13 B on), no-response 3 B, marker 1 B.
        let option = if topic.len() < 13 { 1 } else { 2 };
        let bytes = IP_UDP + 4 + 2 + 3 + option + topic.len() as u64 + 3 + 1 + 100;
        assert_bytes_a_message(sender, bytes, 100);
        // aiocoap's messages held 13 B more than ours of the same topic: see docs/explanation/latency-intervals.md#protocol-efficiency.
        if let Some(paper) = paper {
            let found = ratio(&efficiency["total"]["ratios"]["sent_ethernet"]);
            assert!(within(found, paper, 0.02), "{found}");
        }
        assert_both_ways_agree(&efficiency);
    }
}

#[test]
fn without_links_sockets_have_figures_and_libraries_have_none() {
    let options = ["--system", "mosquitto", "--profile", "tuned", "--protocol", "mqtt311"];
    let efficiency = run(pair("data", "100B", 0, ""), &options);
    for group in efficiency["groups"].as_array().expect("groups") {
        assert_eq!(group["source"], "estimated", "{group}");
    }
    let found = ratio(&efficiency["total"]["ratios"]["sent_ethernet"]);
    let expected: Range<f64> = 0.98 * MQTT_100_B..1.02 * MQTT_100_B;
    assert!(expected.contains(&found), "{found}");
    let efficiency = run(pair("data", "100B", 0, ""), &["--system", "zenoh"]);
    assert_count_eq!(
        (&efficiency["total"]["source"], &efficiency["total"]["window"]),
        (&"unknown".into(), &Value::Null)
    );
    assert_eq!(efficiency["total"]["ratios"]["sent_ethernet"], Value::Null);
    assert!(number(&efficiency["total"]["published"]) > 90, "{efficiency}");
}
