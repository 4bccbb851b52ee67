//! A run that is stopped: in every phase it ends soon, leaves a record that is marked interrupted, and nothing else
//! behind.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pubmark_conformance::ports;
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, count};
use crate::support::mosquitto::{self, Mosquitto};
use crate::support::place::{Call, Called, PUBMARK, Place};
use crate::support::processes::{catches, cpu_ticks, ignores, signal, wait_for, with_files_in};
use crate::support::schema;

/// Longest time from the signal to the end.
const SOON: Duration = Duration::from_secs(3);
/// Longest wait for a process or a folder to appear or to disappear.
const LIMIT: Duration = Duration::from_secs(15);
/// Longest life of a system after its parent was killed.
const ORPHANED: Duration = Duration::from_secs(2);

const LONG: &[&str] = &["run", "smart-home", "--quiet", "--duration", "120s"];
const ON_MOSQUITTO: &[&str] = &["--system", "mosquitto"];

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Sends the signal, waits for the end, and checks what must hold at every moment: the exit code, the time, no
/// leftovers.
fn interrupt(place: &Place, call: Call, signal: libc::c_int) -> Called {
    call.signal(signal);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    assert!(called.took < SOON, "{:?} after the signal", called.took);
    assert_eq!(with_files_in(&place.temporary()), Vec::<u32>::new(), "a system is left");
    assert_eq!(files_in(&place.temporary()), 0, "a folder for temporary files is left");
    called
}

/// The only record, which is marked interrupted.
fn interrupted_record(place: &Place) -> Value {
    let record = place.only_record();
    assert_eq!(record["run"]["status"], "interrupted");
    assert_ne!(record["verdict"]["status"], "valid");
    schema::assert_agrees(&record);
    if count(&record, "offered") > 0 {
        assert_closed(&record);
    }
    record
}

#[test]
fn what_was_started_by_nohup_outlives_a_hangup() {
    let place = Place::new();
    for (hides, outlives) in [("trap '' HUP; ", true), ("", false)] {
        let at = ports::free().to_string();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{hides}exec \"$@\""), "sh", PUBMARK]);
        let call = place.start_by(shell, &["broker", "--listen", &at]);
        wait_for("the broker", LIMIT, || TcpStream::connect(&at).is_ok() && catches(call.pid(), libc::SIGTERM));
        assert_eq!(ignores(call.pid(), libc::SIGHUP), outlives);
        call.signal(libc::SIGHUP);
        if outlives {
            // A hangup that had ended it would be its status: the kernel decides on a deadly signal when it is sent.
            call.signal(libc::SIGTERM);
        }
        let called = call.wait();
        assert!(called.status.code() == Some(0) || !outlives && called.status.code().is_none(), "{called:?}");
    }
}

/// Two thousand publishers for a week: a schedule of twelve billion messages, which takes long to compute.
#[test]
fn a_long_preparation_ends_at_once() {
    let place = Place::new();
    let week = ["run", "fan-in", "--set", "publishers=2000", "--duration", "168h", "--quiet", "--system", "builtin"];
    let call = place.start(&week);
    // It has computed for half a second.
    wait_for("the preparation", LIMIT, || catches(call.pid(), libc::SIGINT) && cpu_ticks(call.pid()) > 50);
    interrupt(&place, call, libc::SIGINT);
    assert_eq!(place.runs().len(), 0, "nothing was begun");
}

/// Starts a run on mosquitto, with events, and waits until mosquitto has started.
fn start_on_mosquitto(place: &Place, options: &[&str]) -> Option<Call> {
    if !mosquitto::is_installed() {
        return None;
    }
    let call = place.start_with_events(&[LONG, ON_MOSQUITTO, options].concat());
    wait_for("mosquitto", LIMIT, || !with_files_in(&place.temporary()).is_empty());
    Some(call)
}

#[test]
fn while_the_system_starts() {
    let place = Place::new();
    let Some(call) = start_on_mosquitto(&place, &["--warmup", "0s"]) else { return };
    interrupt(&place, call, libc::SIGINT);
    // The system may have been ready already; then there is a record. Otherwise the run never began and has no folder.
    if !place.runs().is_empty() {
        interrupted_record(&place);
    }
}

#[test]
fn while_it_connects() {
    let place = Place::new();
    // Accepts connections and never responds.
    let mute = ports::listen();
    let endpoint = format!("mqtt://{}", mute.local_addr().unwrap());
    let call = place.start(&[LONG, &["--endpoint", &endpoint]].concat());
    // An attempt to connect is in progress.
    let (_first, _) = mute.accept().unwrap();
    interrupt(&place, call, libc::SIGINT);
    let record = interrupted_record(&place);
    assert_count_eq!(count(&record, "offered"), 0);
    assert_eq!(record["connections"]["established"], 0);
    assert!(record["connections"]["attempted"].as_u64().unwrap() > 0);
}

#[test]
fn in_the_warm_up() {
    let place = Place::new();
    let Some(call) = start_on_mosquitto(&place, &["--warmup", "60s"]) else { return };
    place.wait_for_event("the warm-up", |event| event["phase"] == "warm-up");
    interrupt(&place, call, libc::SIGINT);
    let record = interrupted_record(&place);
    assert_count_eq!(count(&record, "offered"), 0, "nothing was measured: {}", record["delivery"]);
    assert!(record["connections"]["established"].as_u64().unwrap() > 10, "{}", record["connections"]);
}

/// Waits until messages of the measured window have arrived.
fn wait_for_deliveries(place: &Place) {
    place.wait_for_event("deliveries", |event| event["measured_delivered"].as_u64() > Some(0));
}

fn while_it_measures(signal: libc::c_int) {
    let place = Place::new();
    let Some(call) = start_on_mosquitto(&place, &["--warmup", "0s", "--qos", "1"]) else { return };
    wait_for_deliveries(&place);
    interrupt(&place, call, signal);
    let record = interrupted_record(&place);
    assert!(count(&record, "delivered") > 0, "{}", record["delivery"]);
    assert_eq!(record["workload"]["seed"], 1);
}

#[test]
fn while_it_measures_by_ctrl_c() {
    while_it_measures(libc::SIGINT);
}

#[test]
fn while_it_measures_by_sigterm() {
    while_it_measures(libc::SIGTERM);
}

#[test]
fn while_it_measures_by_a_closed_terminal() {
    while_it_measures(libc::SIGHUP);
}

#[test]
fn in_the_drain() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    let endpoint = broker.endpoint();
    let load = ["run", "smart-home", "--quiet", "--duration", "4s", "--warmup", "0s", "--drain", "60s"];
    let call = place.start_with_events(&[&load[..], &["--endpoint", &endpoint, "--qos", "1"]].concat());
    wait_for_deliveries(&place);
    // Messages in transit now never arrive, so the run waits for them.
    broker.signal(libc::SIGSTOP);
    place.wait_for_event("the drain", |event| event["phase"] == "drain");
    interrupt(&place, call, libc::SIGINT);
    broker.signal(libc::SIGCONT);
    // The whole window was measured, but the wait for late messages was cut short.
    let record = interrupted_record(&place);
    let missing = count(&record, "lost") + count(&record, "unknown") + count(&record, "unsent");
    assert!(missing > 0, "{}", record["delivery"]);
}

#[test]
fn a_second_signal_ends_at_once_and_the_next_run_clears_up() {
    let place = Place::new();
    let Some(mut call) = start_on_mosquitto(&place, &["--warmup", "0s"]) else { return };
    wait_for_deliveries(&place);
    // It does not end on request then, so an orderly end takes the 5 s after which it is killed.
    with_files_in(&place.temporary()).into_iter().for_each(|pid| signal(pid, libc::SIGSTOP));
    call.signal(libc::SIGINT);
    place.wait_for_event("the first signal's effect", |event| event["phase"] == "collect");
    // Signals within 150 ms count as one: this is the distance between the two.
    std::thread::sleep(Duration::from_millis(200));
    assert!(!call.has_ended(), "the first signal ended it");
    call.signal(libc::SIGINT);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    assert!(called.took < SOON, "{:?}", called.took);
    nothing_stays(&place);
}

#[test]
fn a_killed_pubmark_takes_mosquitto_along() {
    let place = Place::new();
    let Some(call) = start_on_mosquitto(&place, &["--warmup", "0s"]) else { return };
    wait_for_deliveries(&place);
    call.signal(libc::SIGKILL);
    let called = call.wait();
    assert_eq!(called.status.code(), None, "{called:?}");
    nothing_stays(&place);
}

/// No system remains, and the next run removes the folder that could not be removed.
fn nothing_stays(place: &Place) {
    wait_for("the end of mosquitto", ORPHANED, || with_files_in(&place.temporary()).is_empty());
    place.record(&["hello", "--system", "mosquitto", "--duration", "500ms", "--warmup", "0s"]);
    assert_eq!(files_in(&place.temporary()), 0, "the next run leaves what the killed one left");
}

#[test]
fn between_repetitions_the_finished_ones_stay() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let load = ["run", "hello", "--quiet", "--duration", "3s", "--warmup", "0s", "--repeat", "3", "--json"];
    let call = place.start_with_events(&[&load[..], ON_MOSQUITTO].concat());
    wait_for("the second repetition", 2 * LIMIT, || {
        let events = place.events();
        let mut second = events.iter().skip_while(|event| event["repetition"] != 2);
        second.any(|event| event["phase"] == "measure")
    });
    let called = interrupt(&place, call, libc::SIGINT);
    let records: Vec<Value> = place.runs().into_iter().map(|(_, record)| record).collect();
    let ends: Vec<&Value> = records.iter().map(|record| &record["run"]["status"]).collect();
    assert_eq!(ends, ["complete", "interrupted"], "no third repetition");
    assert!(called.json() == Value::Array(records), "what is printed is not what is kept");
}

#[test]
fn the_first_of_several_repetitions_is_still_printed_as_a_list() {
    let place = Place::new();
    let load = ["run", "hello", "--quiet", "--duration", "60s", "--warmup", "0s", "--repeat", "3", "--json"];
    let call = place.start_with_events(&load);
    wait_for_deliveries(&place);
    let called = interrupt(&place, call, libc::SIGINT);
    assert!(called.json() == Value::Array(vec![interrupted_record(&place)]), "no list of one record");
}
