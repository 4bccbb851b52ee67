//! Connections from several addresses of this machine: seen by mosquitto, named in the record; wrong ones refused.

use std::process::{Command, Stdio};

use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, assert_delivered_once};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::{Called, PUBMARK, Place};

const SMALL: &[&str] =
    &["run", "fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

#[test]
fn the_broker_sees_each_address_and_the_record_their_number() {
    let Some(broker) = Mosquitto::start("log_type notice") else { return };
    let endpoint = broker.endpoint();
    let place = Place::new();
    let options = ["--endpoint", &endpoint, "--source-addresses", "127.0.0.2-127.0.0.3", "--shards", "2"];
    let record = place.record(&[&SMALL[1..], &options].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_eq!(record["settings"]["source_addresses"], 2);
    let log = broker.log();
    let from = |address: &str| log.matches(&format!("connection from {address}:")).count();
    // 5 publishers on each of two shards, and a subscriber on one.
    assert_eq!((from("127.0.0.2"), from("127.0.0.3")), (7, 4), "{log}");
    let record = place.record(&[&SMALL[1..], &["--endpoint", &endpoint]].concat());
    assert_eq!(record["settings"]["source_addresses"], 0);
}

#[test]
fn addresses_that_cannot_be_used_are_refused_before_the_run() {
    let place = Place::new();
    for (endpoint, addresses, expected) in [
        ("mqtt://127.0.0.1:9", "192.0.2.1-192.0.2.4", "this machine has no address `192.0.2.1`"),
        ("mqtt://127.0.0.1:9", "127.0.0.9-127.0.0.1", "ends before it begins"),
        ("mqtt://127.0.0.1:9", "127.0.0.0/8", "more than 4096 addresses"),
        ("mqtt://127.0.0.1:9", "here", "`here` is not an address"),
        ("mqtt://[::1]:9", "127.0.0.1", "two families of addresses"),
        ("mqtt://192.0.2.7:9", "127.0.0.2", "`127.0.0.2` reaches this machine only"),
    ] {
        let called = place.call(&[SMALL, &["--endpoint", endpoint, "--source-addresses", addresses]].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{addresses}: {words}");
        assert!(place.runs().is_empty());
    }
}

/// 256 ports: what 28,232 are elsewhere, so that their end is reached with a fleet that a test can afford.
const FEW_PORTS: &str =
    "ip link set lo up && echo 20000 20255 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$0\" \"$@\"";

/// Calls the binary in a separate network namespace, where a connection has few ports to choose from.
fn call_with_few_ports(place: &Place, arguments: &[&str]) -> Called {
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-c", FEW_PORTS, PUBMARK]);
    place.start_by(command, arguments).wait()
}

#[test]
fn more_connections_than_one_address_has_ports_come_from_several() {
    let probe = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return pubmark_testing::skip("no network namespace can be made here");
    }
    let place = Place::new();
    let fleet =
        ["run", "fan-in", "--set", "publishers=1000", "--set", "rate=1/s", "--duration", "2s", "--warmup", "1s"];
    let called = call_with_few_ports(&place, &fleet);
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("`--source-addresses` with 4 addresses"), "{}", called.errors);
    // Processes of this machine have its ports in common; machines have their own.
    let called = call_with_few_ports(&place, &[&fleet[..], &["--local-nodes", "4"]].concat());
    assert!(called.code() == 2 && called.errors.contains("`--source-addresses` with 4 addresses"), "{called:?}");
    let called = call_with_few_ports(&place, &[&fleet[..], &["--nodes", "4", "--dry-run"]].concat());
    assert!(called.code() == 0 && called.printed.contains("✓ local ports on each node"), "{called:?}");
    let called = call_with_few_ports(&place, &[&fleet[..], &["--nodes", "2"]].concat());
    assert!(called.code() == 2 && called.errors.contains("`--nodes 4`, or fewer devices"), "{called:?}");
    let options = ["--source-addresses", "127.0.0.1-127.0.0.5", "--json", "--quiet"];
    let called = call_with_few_ports(&place, &[&fleet[..], &options].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(record["delivery"]["offered"], 2_000, "{}", record["delivery"]);
}
