//! Connections of each kind through the relay to a system that already runs: with TLS, in a WebSocket, and datagrams.

use std::path::Path;

use pubmark_conformance::certificates::Certificates;
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::links::can_be_made;
use crate::relayed::{TIMES, assert_relayed, bound_us, coap_broker, place};
use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::cluster::stop;
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;

/// Devices and a reader.
const CLIENTS: u64 = 11;

/// A run whose messages all arrive once, through the relay and 20 ms after they were due.
fn carried(place: &Place, endpoint: &str, options: &[&str]) -> Value {
    let record = place.record(&[&["relayed.yaml", "--endpoint", endpoint], &TIMES[..], options].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(count(&record, "delivered"), 300, "{}", record["delivery"]);
    assert!(bound_us(&record, "upper", "min_us") >= 20_000.0, "{}", record["latency"]["total"]);
    assert_relayed(&record);
    record
}

fn relayed_connections(record: &Value) -> u64 {
    let relay = &record["conditions"]["links"]["relay"];
    relay["connections"].as_u64().unwrap_or_else(|| panic!("no connections in {relay}"))
}

#[test]
fn encrypted_connections_pass_the_relay() {
    if !can_be_made() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path(), "own");
    let (authority, server, key) = (files.authority.display(), files.server.display(), files.key.display());
    let settings = format!("cafile {authority}\ncertfile {server}\nkeyfile {key}");
    let Some(broker) = Mosquitto::start(&settings) else { return };
    // The certificate is for this name, and the relay's address has another.
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let record = carried(&place(), &endpoint, &["--tls-ca", &authority.to_string()]);
    assert_count_eq!(relayed_connections(&record), CLIENTS);
    let tls = &record["connections"]["tls"];
    assert_count_eq!((tls["full"].as_u64(), tls["resumed"].as_u64()), (Some(CLIENTS), Some(0)), "{tls}");
    // Each handshake of the ten devices takes a round trip of the link (RFC 8446 §2): it is with the system.
    let handshake = &tls["full_handshake"];
    let sum_us = handshake["mean_us"].as_f64().unwrap() * handshake["count"].as_f64().unwrap();
    assert!(sum_us >= 10.0 * 40_000.0, "{tls}");
}

#[test]
fn web_sockets_pass_the_relay() {
    if !can_be_made() {
        return;
    }
    // mosquitto 2.0.11 ends if all its listeners are for WebSocket, so it gets another one that no client uses.
    let settings = |folder: &Path| {
        format!("allow_anonymous true\nprotocol websockets\nlistener 0 {}\n", folder.join("unused").display())
    };
    let Some(broker) = Mosquitto::start_with(settings) else { return };
    let endpoint = format!("ws://127.0.0.1:{}", broker.port);
    let record = carried(&place(), &endpoint, &[]);
    assert_count_eq!(relayed_connections(&record), CLIENTS);
    assert_eq!(record["system"]["endpoint"], format!("{endpoint}/mqtt"));
}

#[test]
fn datagrams_pass_the_relay() {
    if !can_be_made() {
        return;
    }
    let place = place();
    let (broker, endpoint) = coap_broker(&place);
    // At QoS 1, that of the workload: confirmable messages.
    let record = carried(&place, &endpoint, &["--protocol", "coap"]);
    // A client that opens a further socket is a further peer of the relay.
    assert_count!(relayed_connections(&record) >= CLIENTS, "{}", record["conditions"]["links"]["relay"]);
    stop(broker);
}
