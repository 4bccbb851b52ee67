//! Links to a system that already runs, in a network that the links are not part of: through a relay, whose delay is
//! measured and included in the interval.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use pubmark_conformance::ports;
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::links::{NOBODY, can_be_made, can_be_made_by_nobody};
use crate::support::books::{assert_closed, assert_delivered_once, check, count, names_deviation};
use crate::support::cluster::stop;
use crate::support::mosquitto::Mosquitto;
use crate::support::place::{Call, PUBMARK, Place};
use crate::support::processes::{family_of, signal, wait_for};

/// Devices behind a link of 20 ms each way, a reader without one.
pub const WORKLOAD: &str = "\
name: relayed
links:
  far: {delay: 20ms}
devices:
  - {name: sensor, count: 10, every: 100ms, payload: 100B, topic: 'relayed/{index}', qos: 1, link: far}
subscribers:
  - {name: reader, filters: ['relayed/#'], qos: 1}
";
/// Devices without a link, a reader behind one that is too slow for their messages.
const SLOW_READER: &str = "\
name: slow-reader
links:
  slow: {down: {rate: 20kbit/s}}
devices:
  - {name: sensor, count: 10, every: 100ms, payload: 100B, topic: 'slow/{index}', qos: 0}
subscribers:
  - {name: reader, filters: ['slow/#'], qos: 0, link: slow}
";
pub const TIMES: [&str; 4] = ["--duration", "3s", "--warmup", "1s"];

/// A folder with the workload.
pub fn place() -> Place {
    let place = Place::new();
    place.write("relayed.yaml", WORKLOAD);
    place
}

/// A figure of one bound of the latency, µs.
pub fn bound_us(record: &Value, bound: &str, name: &str) -> f64 {
    let total = &record["latency"]["total"];
    total[bound][name].as_f64().unwrap_or_else(|| panic!("no {name} in {total}"))
}

/// The relay carried a run's messages and lost none. It held few of them for long: a relay that delays every message widens the
/// interval of the latency by as much, so that the lower bound shows nothing of it.
pub fn assert_relayed(record: &Value) {
    assert!(names_deviation(record, "relayed"), "{}", record["settings"]);
    let relay = &record["conditions"]["links"]["relay"];
    assert_count_eq!([&relay["refused"], &relay["exhausted"]], [0, 0], "{relay}");
    for way in ["up", "down"] {
        assert_count_eq!(relay[way]["dropped"], 0, "{relay}");
        // At least 300 payloads of 100 B are due in the window, of which few are on their way at its ends.
        assert_count!(relay[way]["bytes"].as_u64() > Some(20_000), "{relay}");
        let added_us = relay[way]["added"]["p25_us"].as_f64().unwrap_or_else(|| panic!("no {way} p25 in {relay}"));
        assert!(added_us < 1_000.0, "{way}: {relay}");
    }
}

/// Whether a socket in the network of a process is bound to this address and connected to none, `protocol` being `tcp` or `udp`.
pub fn is_bound(pid: u32, protocol: &str, address: SocketAddr) -> bool {
    let IpAddr::V4(ip) = address.ip() else { panic!("{address} is of IPv6") };
    // Lines of proc_pid_net(5): the four bytes of an address are one number of this machine.
    let wanted = format!(" {:08X}:{:04X} 00000000:0000 ", u32::from_ne_bytes(ip.octets()), address.port());
    std::fs::read_to_string(format!("/proc/{pid}/net/{protocol}")).is_ok_and(|sockets| sockets.contains(&wanted))
}

/// The built-in broker over CoAP, and its endpoint.
pub fn coap_broker(place: &Place) -> (Call, String) {
    let address = ports::free();
    let broker = place.start(&["broker", "--protocol", "coap", "--listen", &address.to_string()]);
    wait_for("the broker", Duration::from_secs(20), || is_bound(broker.pid(), "udp", address));
    (broker, format!("coap://{address}"))
}

/// Every message arrived once, 20 ms after it was sent.
fn assert_behind_20_ms(record: &Value) {
    assert_closed(record);
    assert_delivered_once(record);
    assert!(bound_us(record, "upper", "min_us") >= 20_000.0, "{}", record["latency"]["total"]);
    // The delay of the relay and this machine is in the width, so that the lower bound is that of the link alone.
    let lower_us = bound_us(record, "lower", "p50_us");
    assert!(lower_us <= 20_000.0 * 1.02 + 200.0, "{}", record["latency"]["total"]);
    assert_relayed(record);
    let relay = &record["conditions"]["links"]["relay"];
    assert_count_eq!(relay["connections"], 11, "{relay}");
    let held_us = relay["longest_held_us"].as_f64().unwrap();
    let added_us = relay["up"]["added"]["p50_us"].as_f64().unwrap();
    assert!(added_us > 0.0 && held_us >= added_us, "{relay}");
    // A latency is not below 0, whatever the relay added.
    let most_us = (bound_us(record, "upper", "p50_us") - 2.0 * held_us * 0.98 + 50.0).max(50.0);
    assert!(lower_us <= most_us, "{lower_us} µs for {relay}");
}

#[test]
fn a_link_to_a_system_that_runs_already_is_in_the_latency() {
    if !can_be_made() {
        return;
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let record = place().record(&[&["relayed.yaml", "--endpoint", &broker.endpoint()], &TIMES[..]].concat());
    assert_behind_20_ms(&record);
    assert_eq!(record["system"]["endpoint"], broker.endpoint());
}

#[test]
fn a_plain_user_reaches_a_system_on_the_network_that_the_run_has_left() {
    if !can_be_made_by_nobody() {
        return;
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let place = place();
    for folder in [place.path().to_owned(), place.temporary()] {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let program = place.path().join("pubmark");
    std::fs::copy(PUBMARK, &program).unwrap();
    let mut command = Command::new(&program);
    command.uid(NOBODY).gid(NOBODY);
    // By name: it is resolved in the network that the run leaves.
    let endpoint = format!("mqtt://localhost:{}", broker.port);
    let words = [&["run", "relayed.yaml", "--endpoint", &endpoint, "--json", "--quiet"][..], &TIMES].concat();
    let called = place.start_by(command, &words).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert_behind_20_ms(&called.json());
}

#[test]
fn messages_that_wait_in_the_relay_are_not_called_lost() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    // 10 kB/s of payload for a link that carries 2.5 kB/s.
    place.write("slow-reader.yaml", SLOW_READER);
    let address = ports::free();
    let broker = place.start(&["broker", "--listen", &address.to_string()]);
    wait_for("the broker", Duration::from_secs(20), || TcpStream::connect(address).is_ok());
    let endpoint = format!("mqtt://{address}");
    let call = ["slow-reader.yaml", "--endpoint", &endpoint, "--duration", "3s", "--warmup", "1s", "--drain", "1s"];
    let record = place.record(&call);
    stop(broker);
    assert_closed(&record);
    assert!(count(&record, "lost") > 50, "{}", record["delivery"]);
    let at_end = &record["delivery"]["at_end"];
    assert!(at_end["system_unsent_bytes"].is_null(), "{at_end}");
    assert!(at_end["relay_bytes"].as_u64() > Some(5_000), "{at_end}");
    assert_eq!(check(&record, "V19"), "suspect", "{}", record["verdict"]);
    let words = record["verdict"].to_string();
    assert!(words.contains("B in the relay"), "{words}");
}

#[test]
fn an_endpoint_without_a_listener_fails_at_once() {
    if !can_be_made() {
        return;
    }
    let place = place();
    let called = place.call(&[&["run", "relayed.yaml", "--endpoint", "mqtt://127.0.0.1:9"], &TIMES[..]].concat());
    assert_eq!(called.code(), 6, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("failed to connect to `mqtt://127.0.0.1:9` caused by: Connection refused"), "{words}");
    assert!(place.runs().is_empty());
}

#[test]
fn a_relay_that_is_killed_or_frozen_ends_the_run_which_is_invalid_and_the_system_is_not_blamed() {
    for (by, reason) in [(libc::SIGKILL, "does not answer"), (libc::SIGSTOP, "was silent for 3 s")] {
        assert_ends_without_its_relay(by, reason);
    }
}

fn assert_ends_without_its_relay(by: libc::c_int, reason: &str) {
    if !can_be_made() {
        return;
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let place = place();
    let call = ["run", "relayed.yaml", "--endpoint", &broker.endpoint(), "--duration", "60s", "--events", "events"];
    let run = place.start(&call);
    let events = place.path().join("events");
    let measures =
        || std::fs::read_to_string(&events).is_ok_and(|text| text.contains(r#""phase":"measure","elapsed_s":1"#));
    wait_for("the measured window", Duration::from_secs(60), measures);
    let is_relay = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.split(|byte| *byte == 0).any(|word| word == b"relay"))
    };
    let relay = family_of(run.pid()).into_iter().find(is_relay).expect("a relay");
    let began = Instant::now();
    signal(relay, by);
    let called = run.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    // After 3 s; on a busy machine the record needs time, too.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}: {called:?}", began.elapsed());
    let record = place.only_record();
    assert_closed(&record);
    assert!(count(&record, "delivered") > 0, "{}", record["delivery"]);
    assert_eq!(check(&record, "V18"), "invalid", "{}", record["verdict"]);
    let words = record["verdict"].to_string();
    assert!(words.contains("the relay from the links to the system was lost") && words.contains(reason), "{words}");
    assert!(record["system"]["ended"].is_null(), "{}", record["system"]);
}
