//! A system on another machine, behind links and a relay: latencies and round trips are those of the links to 2 % and 0.2 ms.
//! The limits are of the fastest message, which no other program delayed.

use std::net::SocketAddr;
use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::links::can_be_made;
use crate::relayed::{TIMES, WORKLOAD, assert_relayed, bound_us, is_bound};
use crate::support::books::{assert_closed, assert_delivered_once, connections, count};
use crate::support::bridge::Bridge;
use crate::support::cluster::stop;
use crate::support::place::{Call, Place};
use crate::support::processes::wait_for;

/// Requesters behind a link of 20 ms each way, a responder without one.
pub const REQUESTS: &str = "\
name: asked-from-afar
links:
  far: {delay: 20ms}
devices: []
subscribers: []
requesters:
  - {name: meter, count: 10, rate: 10/s, payload: 100B, topic: 'asked/{device}', qos: 0, link: far}
responders:
  - {name: room, filters: ['asked/+'], reply: 100B, qos: 0}
";
/// All clients behind the link, so that every connect crosses it.
const ALL_BEHIND: &str = "\
name: all-behind
links:
  far: {delay: 20ms}
devices:
  - {name: sensor, count: 30, every: 300ms, payload: 100B, topic: 'relayed/{index}', qos: 1, link: far}
subscribers:
  - {name: reader, filters: ['relayed/#'], qos: 1, link: far}
";
const PORT: u16 = 18_830;

/// Two machines: the run on the first, a broker on the second.
struct Far {
    bridge: Bridge,
    place: Place,
    broker: Call,
}

impl Far {
    fn new() -> Option<Far> {
        if !can_be_made() {
            return None;
        }
        let bridge = Bridge::new(2)?;
        let place = Place::new();
        let address = SocketAddr::new(Bridge::address(1).parse().unwrap(), PORT);
        let broker = place.start_by(bridge.at(1), &["broker", "--listen", &address.to_string()]);
        wait_for("the broker", Duration::from_secs(20), || is_bound(broker.pid(), "tcp", address));
        Some(Far { bridge, place, broker })
    }

    /// The record of a run with this workload.
    fn record(&self, workload: &str) -> Value {
        self.place.write("far.yaml", workload);
        let endpoint = format!("mqtt://{}:{PORT}", Bridge::address(1));
        let words = ["run", "far.yaml", "--endpoint", &endpoint, "--json", "--quiet"];
        let called = self.place.start_by(self.bridge.at(0), &[&words[..], &TIMES].concat()).wait();
        assert!(matches!(called.code(), 0 | 5), "{called:?}");
        let record = called.json();
        assert_closed(&record);
        record
    }

    fn end(self) {
        stop(self.broker);
    }
}

/// A time is the sum of the links' delays to 2 % and 0.2 ms.
pub fn assert_near(found_us: f64, delays_us: f64, of: &Value) {
    let tolerance_us = delays_us * 0.02 + 200.0;
    assert!((found_us - delays_us).abs() <= tolerance_us, "{found_us} µs, {delays_us} ± {tolerance_us} expected: {of}");
}

#[test]
fn the_latency_of_a_link_to_another_machine_is_its_delay() {
    let Some(far) = Far::new() else { return };
    let record = far.record(WORKLOAD);
    assert_delivered_once(&record);
    assert_relayed(&record);
    let total = &record["latency"]["total"];
    let fastest_us = bound_us(&record, "upper", "min_us");
    assert!(fastest_us >= 20_000.0, "faster than the link: {total}");
    // The upper bound: what a relay adds to every message is in it, whatever the relay says of itself.
    assert_near(fastest_us, 20_000.0, total);
    assert!(bound_us(&record, "lower", "p50_us") <= 20_600.0, "{total}");
    far.end();
}

#[test]
fn a_round_trip_to_another_machine_takes_twice_the_delay() {
    let Some(far) = Far::new() else { return };
    let record = far.record(REQUESTS);
    assert_relayed(&record);
    assert_count_eq!(record["requests"]["outcomes"]["answered"], 300, "{}", record["requests"]);
    assert_round_trip(&record);
    far.end();
}

/// Replies to [`REQUESTS`] took both directions of the link.
pub fn assert_round_trip(record: &Value) {
    let trip = &record["requests"]["round_trip"];
    let fastest_us = trip["upper"]["min_us"].as_f64().unwrap_or_else(|| panic!("no round trip in {record}"));
    assert!(fastest_us >= 40_000.0, "faster than the link: {trip}");
    assert_near(fastest_us, 40_000.0, trip);
}

#[test]
fn a_connect_to_another_machine_takes_two_round_trips() {
    let Some(far) = Far::new() else { return };
    let record = far.record(ALL_BEHIND);
    assert_delivered_once(&record);
    assert_relayed(&record);
    assert_count_eq!((connections(&record, "established"), count(&record, "delivered")), (31, 300));
    // TCP's handshake with the relay, then CONNECT and CONNACK.
    let connect = &record["connections"]["connect_time"];
    assert_count_eq!(connect["count"], 31, "{connect}");
    assert_near(connect["min_us"].as_f64().unwrap(), 80_000.0, connect);
    // A message crosses two links.
    assert_near(bound_us(&record, "upper", "min_us"), 40_000.0, &record["latency"]["total"]);
    far.end();
}
