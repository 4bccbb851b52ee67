//! Systems that end during a run, and similar failures that are caused by this machine or the user.

use std::process::Command;
use std::time::{Duration, Instant};

use pubmark_testing::{assert_count, skip};

use crate::links;
use crate::support::books::{assert_closed, check, connections, count};
use crate::support::mosquitto::{self, Mosquitto};
use crate::support::place::{PUBMARK, Place};
use crate::support::processes::{descriptors, signal, wait_for, with_files_in};

/// Longest wait for an event.
const LIMIT: Duration = Duration::from_secs(20);
const RUN: [&str; 8] = ["run", "fan-in", "--set", "publishers=10", "--duration", "3s", "--warmup", "0s"];

#[test]
fn an_external_broker_that_dies_in_the_window_leaves_an_invalid_record() {
    let place = Place::new();
    let Some(mut broker) = Mosquitto::start("") else { return };
    let endpoint = format!("mqtt://127.0.0.1:{}", broker.port);
    let call = place.start_with_events(&[&RUN[..], &["--endpoint", &endpoint, "--drain", "1s"]].concat());
    place.wait_until_measured(1.0);
    broker.kill();
    let called = call.wait();
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(called.errors.contains("every connection was lost"), "{called:?}");
    let (run, record) = place.runs().remove(0);
    assert_closed(&record);
    assert_count!(count(&record, "sent") < count(&record, "offered"), "{}", record["delivery"]);
    assert_eq!(check(&record, "V25"), "invalid");
    assert_eq!(record["verdict"]["status"], "invalid");
    let at_s = record["system"]["ended"]["at_s"].as_f64().unwrap();
    assert!((0.0..4.0).contains(&at_s), "{}", record["system"]);
    let checked = place.call(&["check", run.to_str().unwrap()]);
    assert_eq!(checked.code(), 5, "{checked:?}");
}

#[test]
fn a_broker_that_a_fault_kills_and_that_is_started_again_has_not_ended() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let fault = ["--fault", "kill:at=1s,for=500ms", "--system", "mosquitto"];
    let record = place.record(&[&RUN[1..], &fault].concat());
    let row = &record["conditions"]["faults"]["faults"][0];
    let at = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    assert!(at("done_at_s") < at("ended_at_s"), "{row}");
    assert_count!(connections(&record, "dropped") > 0, "{}", record["connections"]);
    assert!(record["system"]["ended"].is_null(), "{}", record["system"]);
    assert!(!record["verdict"]["checks"].to_string().contains("V25"), "{}", record["verdict"]);
}

#[test]
fn a_broker_that_dies_before_the_fault_that_would_kill_it_has_ended() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    // The fault is so late that it finds the broker dead, also on a machine on which this test is slow.
    let times = ["--duration", "9s", "--warmup", "0s", "--drain", "1s"];
    let fault = ["--fault", "kill:at=8s,for=200ms", "--system", "mosquitto"];
    let call = place.start_with_events(&[&RUN[..4], &times, &fault].concat());
    let mut broker = 0;
    wait_for("a broker that clients come to", LIMIT, || {
        let found = with_files_in(&place.temporary()).into_iter().find(|pid| descriptors(*pid) > 15);
        broker = found.unwrap_or(0);
        found.is_some()
    });
    place.wait_until_measured(1.0);
    signal(broker, libc::SIGKILL);
    let called = call.wait();
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(called.errors.contains("`mosquitto` ended during the run: signal: 9"), "{called:?}");
    let record = place.only_record();
    assert_eq!([check(&record, "V20"), check(&record, "V25")], ["invalid"; 2], "{}", record["verdict"]);
}

#[test]
fn a_broker_that_dies_while_clients_connect_behind_links_is_noticed_at_once() {
    if !links::can_be_made() || !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let options =
        ["--set", "publishers=6000", "--rate", "0.01", "--link", "publisher=edge-optimal", "--system", "mosquitto"];
    let call = place.start(&[&["run", "fan-in", "--duration", "1s", "--warmup", "0s"], &options[..]].concat());
    let mut broker = 0;
    // 2,000 clients connect each second.
    wait_for("a broker that clients come to", LIMIT, || {
        let found = with_files_in(&place.temporary()).into_iter().find(|pid| descriptors(*pid) > 200);
        broker = found.unwrap_or(0);
        found.is_some()
    });
    signal(broker, libc::SIGKILL);
    let began = Instant::now();
    let called = call.wait();
    assert!(began.elapsed() < Duration::from_secs(10), "noticed after {:?}", began.elapsed());
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(called.errors.contains("`mosquitto` ended during the run: signal: 9"), "{called:?}");
    let record = place.only_record();
    assert_eq!(check(&record, "V25"), "invalid");
}

#[test]
fn what_this_machine_or_the_caller_lacks_is_no_failure_of_the_system() {
    let place = Place::new();
    let nowhere = place.path().join("nowhere");
    let mut without_folder = Command::new("env");
    without_folder.arg(format!("TMPDIR={}", nowhere.display())).arg(PUBMARK);
    let called = place.start_by(without_folder, &RUN).wait();
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("failed to create") && called.errors.contains("TMPDIR"), "{called:?}");

    let called = place.call(&[&RUN[..], &["--system", "nats", "--protocol", "nats", "--payload", "80MB"]].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("`nats` takes 67108864"), "{called:?}");
    assert!(place.runs().is_empty(), "a run that never began leaves no folder");
}

#[test]
fn rights_that_are_missing_for_a_limit_are_no_failure_of_the_system() {
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        skip("only root can give up its rights");
        return;
    }
    let place = Place::new();
    for folder in [place.path().to_owned(), place.temporary()] {
        std::os::unix::fs::chown(&folder, Some(65_534), Some(65_534)).unwrap();
    }
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", PUBMARK]);
    let mut probe = Command::new("setpriv");
    probe.args(["--reuid=65534", "--regid=65534", "--clear-groups", PUBMARK, "--version"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        skip("the binary under test cannot be run by another user");
        return;
    }
    let called = place.start_by(as_nobody, &[&RUN[..], &["--limit", "cpu=0.5"]].concat()).wait();
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("limit `cpu=0.5` cannot be set"), "{called:?}");
}
