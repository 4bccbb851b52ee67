//! A group that is cut off from a system behind the relay, by a fault or by a step of its link: messages are late or lost while
//! that lasts, as their protocol promises, and no message is afterwards.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::links::can_be_made;
use crate::relayed::{WORKLOAD, assert_relayed, coap_broker, place};
use crate::support::books::{assert_closed, assert_delivered_once, connections, count};
use crate::support::cluster::stop;
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;

/// 100 messages a second are due, 800 in the window.
const TIMES: [&str; 6] = ["--duration", "8s", "--warmup", "1s", "--drain", "20s"];
const PARTITION: [&str; 2] = ["--fault", "partition:group=sensor,at=1s,for=1s"];
/// Start of the part of the window that an outage from 1 s to 2 s does not reach, s: TCP sends again after 0.24, 0.72, 1.7 and 3.6 s
/// (RFC 6298 §5.5, from Linux's minimum and this round trip on), CoAP after 2 to 3 s (RFC 7252 §4.8).
const UNDISTURBED_S: f64 = 6.0;

fn run(place: &Place, options: &[&str]) -> Value {
    let record = place.record(&[&["relayed.yaml"], options, &TIMES].concat());
    assert_closed(&record);
    assert_relayed(&record);
    assert_count_eq!(connections(&record, "dropped"), 0, "{}", record["connections"]);
    let up = &record["conditions"]["links"]["groups"][0]["up"]["traffic"];
    assert_count!(up["lost_down"].as_u64() > Some(0), "{up}");
    record
}

/// How long the fault of a run cut the group off, s.
fn partitioned_s(record: &Value) -> f64 {
    let fault = &record["conditions"]["faults"]["faults"][0];
    assert!(fault["failure"].is_null(), "{fault}");
    let at = |name: &str| fault[name].as_f64().unwrap_or_else(|| panic!("no {name} in {fault}"));
    // On a busy machine it begins or ends late; the record has the times.
    let length_s = at("ended_at_s") - at("done_at_s");
    assert!(at("done_at_s") >= 1.0 && (0.5..1.6).contains(&length_s), "{fault}");
    length_s
}

/// Every message arrived, late by the length of the outage where it was due at its start.
fn assert_late(record: &Value, outage_s: f64) {
    assert_delivered_once(record);
    assert_count_eq!(count(record, "delivered"), 800, "{}", record["delivery"]);
    // A device sends every 100 ms.
    let latency = &record["latency"]["total"]["upper"];
    assert!(latency["max_us"].as_f64() >= Some((outage_s - 0.15) * 1e6), "cut off for {outage_s} s: {latency}");
}

/// Long after the outage messages arrive, and soon.
fn assert_undisturbed_afterwards(record: &Value) {
    let rows = record["tables"]["series"].as_array().unwrap();
    let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    let is_after = |row: &&Value| (UNDISTURBED_S - 0.01..7.99).contains(&figure(row, "t_s"));
    let after: Vec<&Value> = rows.iter().filter(is_after).collect();
    assert_eq!(after.len(), 2, "a row a second: {rows:?}");
    let sum = |name: &str| after.iter().map(|row| figure(row, name)).sum::<f64>();
    // Messages that are due in the last milliseconds of the window arrive after it.
    assert!(sum("offered") >= 190.0 && sum("delivered") >= 0.9 * sum("offered"), "{after:?}");
    for row in after {
        let median_us = row["latency"]["upper"]["p50_us"].as_f64().unwrap_or_else(|| panic!("no median in {row}"));
        assert!((20_000.0..200_000.0).contains(&median_us), "{row}");
    }
}

#[test]
fn a_partition_makes_messages_over_tcp_late_and_loses_none() {
    if !can_be_made() {
        return;
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let record = run(&place(), &[&["--endpoint", &broker.endpoint()], &PARTITION[..]].concat());
    assert_late(&record, partitioned_s(&record));
    assert_undisturbed_afterwards(&record);
}

#[test]
fn an_outage_in_the_series_of_a_link_makes_messages_late_and_loses_none() {
    if !can_be_made() {
        return;
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let place = place();
    let series = "{delay: 20ms, series: [{at: 1s, down: true}, {at: 2s, down: false}]}";
    assert!(WORKLOAD.contains("{delay: 20ms}"), "{WORKLOAD}");
    place.write("relayed.yaml", WORKLOAD.replace("{delay: 20ms}", series));
    let record = run(&place, &["--endpoint", &broker.endpoint()]);
    assert_late(&record, 1.0);
    assert_undisturbed_afterwards(&record);
}

#[test]
fn a_partition_loses_datagrams_while_it_lasts_and_confirmable_ones_arrive_later() {
    if !can_be_made() {
        return;
    }
    let place = place();
    let (broker, endpoint) = coap_broker(&place);
    let over_coap = |qos: &str| {
        let call = ["--endpoint", &endpoint, "--protocol", "coap", "--qos", qos];
        run(&place, &[&call[..], &PARTITION].concat())
    };
    let record = over_coap("0");
    let expected = 100.0 * partitioned_s(&record);
    let lost = record["delivery"]["lost"].as_f64().unwrap();
    // A message that a busy machine sends late is not lost in the millisecond in which it was due.
    assert!((expected - 30.0..=expected + 30.0).contains(&lost), "{expected} expected: {}", record["delivery"]);
    assert_undisturbed_afterwards(&record);
    let record = over_coap("1");
    assert_late(&record, partitioned_s(&record));
    // The client waits at least this long for an acknowledgement before it repeats the message (ACK_TIMEOUT).
    let latency = &record["latency"]["total"]["upper"];
    assert!(latency["max_us"].as_f64() >= Some(2_000_000.0), "{latency}");
    assert_undisturbed_afterwards(&record);
    stop(broker);
}
