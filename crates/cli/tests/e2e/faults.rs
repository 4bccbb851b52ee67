//! Runs with faults: the requested fault is injected, its effects are in the record and add up to the run's accounting,
//! nothing is left behind, and impossible faults are refused before anything starts.

use pubmark_systems::{Definition, install};
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::support::books::{assert_closed, check, connections, count, names_cause};
use crate::support::mosquitto;
use crate::support::place::Place;
use crate::support::processes::with_files_in;
use crate::support::schema;

/// Twenty devices at QoS 1 with persistent sessions, as many at QoS 0, and a subscriber for each kind.
const WORKLOAD: &str = "\
name: faulted
devices:
  - {name: sensor, count: 20, every: 25ms, payload: 100B, topic: 'sure/{index}', qos: 1, session: persistent}
  - {name: gauge, count: 20, every: 25ms, payload: 100B, topic: 'loose/{index}', qos: 0}
subscribers:
  - {name: reader, filters: ['sure/#'], qos: 1, session: persistent}
  - {name: watcher, filters: ['loose/#'], qos: 0}
";
const CONNECTIONS: u64 = 42;
/// Devices and a subscriber at QoS 1.
const KEPT: u64 = 21;
const TIMES: [&str; 4] = ["--duration", "6s", "--warmup", "1s"];

/// A run with faults against a system; the accounting adds up in total and by fault, and nothing is left behind.
fn broken(system: &[&str], faults: &[&str]) -> Value {
    broken_by(WORKLOAD, system, faults)
}

fn broken_by(workload: &str, system: &[&str], faults: &[&str]) -> Value {
    let place = Place::new();
    place.write("faulted.yaml", workload);
    let faults: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", fault]).collect();
    let record = place.record_with_processors(&[&["faulted.yaml"], &TIMES[..], system, &faults].concat());
    schema::assert_agrees(&record);
    assert_closed(&record);
    assert_adds_up(&record);
    // Of a system without processors, faults may be late. None may fail or be left out.
    let checks = record["verdict"]["checks"].as_array().unwrap();
    let faults = checks.iter().find(|check| check["code"] == "V20").unwrap();
    let is_late_only = || faults["text"].as_str().unwrap().split("; ").all(|fault| fault.ends_with(" s late"));
    let is_as_configured = faults["status"] == "valid" || (is_late_only() && check(&record, "V28") == "invalid");
    assert!(is_as_configured, "{}", record["verdict"]);
    assert_eq!(with_files_in(&place.temporary()), [] as [u32; 0], "a system was left");
    record
}

fn mosquitto_with(profile: &str, faults: &[&str]) -> Option<Value> {
    mosquitto::is_installed().then(|| broken(&["--system", "mosquitto", "--profile", profile], faults))
}

/// The intervals between faults add up to the run's accounting.
fn assert_adds_up(record: &Value) {
    let figures = &record["conditions"]["faults"];
    let faults = figures["faults"].as_array().expect("rows of faults");
    let parts = faults.iter().map(|fault| &fault["levels"]).chain([&figures["before"]]);
    let levels: Vec<&Value> = parts.flat_map(|levels| levels.as_array().expect("levels")).collect();
    for name in ["expected", "delivered", "lost", "unknown", "absent", "duplicated", "out_of_order"] {
        let sum: u64 = levels.iter().map(|level| level[name].as_u64().unwrap()).sum();
        assert_count_eq!(sum, count(record, name), "{name} by fault: {figures}");
    }
    // A message that was partly written when its connection was lost is only in the run's accounting.
    let skipped: u64 = levels.iter().map(|level| level["skipped_disconnected"].as_u64().unwrap()).sum();
    assert_count!(skipped <= count(record, "skipped_disconnected"), "{figures}");
}

fn fault(record: &Value, number: usize) -> &Value {
    &record["conditions"]["faults"]["faults"][number]
}

fn of_connections(record: &Value, name: &str) -> u64 {
    let found = &fault(record, 0)["connections"];
    found[name].as_u64().unwrap_or_else(|| panic!("no {name} in {found}"))
}

fn seconds(record: &Value, name: &str) -> f64 {
    let fault = fault(record, 0);
    let found = fault[name].as_f64().or(fault["connections"][name].as_f64()).or(fault["latency"][name].as_f64());
    found.unwrap_or_else(|| panic!("no {name} in {fault}"))
}

/// A count of a level since the first fault.
fn of_level(record: &Value, qos: u64, name: &str) -> u64 {
    let levels = fault(record, 0)["levels"].as_array().unwrap();
    levels.iter().find(|level| level["qos"] == qos).map_or(0, |level| level[name].as_u64().unwrap())
}

fn promise(record: &Value, qos: u64) -> &str {
    let promises = record["conditions"]["faults"]["promises"].as_array().unwrap();
    let found = promises.iter().find(|promise| promise["qos"] == qos).expect("a promise of the level");
    found["verdict"].as_str().unwrap()
}

#[test]
fn a_system_that_is_killed_is_noticed_and_found_again_and_has_forgotten_what_it_did_not_save() {
    let Some(record) = mosquitto_with("tuned", &["kill:at=2s,for=1s"]) else { return };
    assert_count_eq!([of_connections(&record, "connected"), of_connections(&record, "lost")], [CONNECTIONS; 2]);
    assert_count_eq!(of_connections(&record, "reconnected"), CONNECTIONS);
    let (detected_s, reconnected_s) = (seconds(&record, "last_detected_s"), seconds(&record, "all_reconnected_s"));
    // The longest pause is 5 s, and few attempts fail in one second.
    assert!(detected_s < 0.5 && (1.0..4.0).contains(&reconnected_s), "{}", fault(&record, 0));
    let times = [seconds(&record, "done_at_s"), seconds(&record, "ended_at_s")];
    assert!((2.0..2.5).contains(&times[0]) && (3.0..3.5).contains(&times[1]), "{times:?}: {}", record["verdict"]);
    assert_count_eq!(of_connections(&record, "sessions_lost"), KEPT, "it keeps nothing on its disk");
    assert_count_eq!(connections(&record, "dropped"), CONNECTIONS);
    assert!(of_connections(&record, "failed_tries") > 0 && of_level(&record, 0, "skipped_disconnected") > 0);
    assert!(record["conditions"]["faults"]["faults"][0]["latency"]["disturbed"].as_bool().unwrap());
    assert_eq!(record["conditions"]["faults"]["reconnect"]["first_pause_ms"], 100.0);
}

#[test]
fn a_restart_of_a_system_that_saves_its_sessions_loses_nothing_at_qos_1() {
    let Some(record) = mosquitto_with("durable", &["restart:at=2s,for=500ms"]) else { return };
    assert_count_eq!(of_connections(&record, "sessions_resumed"), KEPT, "{}", fault(&record, 0));
    assert_count_eq!(of_connections(&record, "sessions_lost"), 0);
    assert_count_eq!([of_level(&record, 1, "lost"), of_level(&record, 1, "unknown")], [0, 0], "{}", fault(&record, 0));
    assert!(of_level(&record, 1, "skipped_disconnected") > 0, "half a second of 800 messages/s");
    assert_eq!(promise(&record, 1), "kept");
    assert_count_eq!(of_connections(&record, "reconnected"), CONNECTIONS);
}

/// Mosquitto, which begins to start 8 s late from the second time on.
fn slow_to_return() -> String {
    let definition = include_str!("../../../../systems/mosquitto.yaml");
    let slow = "cd {directory} && { test -e begun && sleep 8; touch begun; PATH=$PATH:/usr/sbin exec mosquitto -c mosquitto.conf; }";
    let parts = [
        ("name: mosquitto\n", "name: slow\n".to_owned()),
        ("    program: mosquitto\n", "    program: sh\n".to_owned()),
        ("    version: {arguments: [-h], after: \"mosquitto version \"}\n", String::new()),
        ("add: [-c, \"{directory}/mosquitto.conf\"]", format!("add: [-c, '{slow}']")),
    ];
    parts.iter().fold(definition.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    })
}

#[test]
fn the_drain_waits_for_a_system_that_returns_after_the_window() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    place.write("faulted.yaml", WORKLOAD);
    place.write("slow.yaml", slow_to_return());
    let system =
        ["--system", "./slow.yaml", "--profile", "durable", "--fault", "restart:at=5500ms,for=100ms", "--drain", "60s"];
    let record = place.record(&[&["faulted.yaml"], &TIMES[..], &system].concat());
    assert_count_eq!([of_level(&record, 1, "lost"), of_level(&record, 1, "unknown")], [0, 0], "{}", fault(&record, 0));
    let drain_s = record["settings"]["drain_s"].as_f64().unwrap();
    // It waits for the system, for the last client to connect again, and then for silence, but not to its limit.
    assert!((7.0..55.0).contains(&drain_s), "it ended after {drain_s} s");
    assert_count_eq!(record["delivery"]["at_end"]["sessions_not_resumed"], 0);
}

#[test]
fn a_pause_breaks_no_connection_and_shows_in_the_latency() {
    let Some(record) = mosquitto_with("tuned", &["pause:at=2s,for=1s"]) else { return };
    assert_count_eq!([of_connections(&record, "lost"), connections(&record, "dropped")], [0, 0]);
    assert_eq!(fault(&record, 0)["connections"]["first_detected_s"], Value::Null);
    assert_count_eq!(count(&record, "delivered"), count(&record, "offered"), "{}", record["delivery"]);
    // Each device sends every 25 ms. On a busy machine a fault begins late, and the pause is shorter by that: the record has the time
    // in which no process of the system ran.
    let paused_us = (seconds(&record, "ended_at_s") - seconds(&record, "done_at_s")) * 1e6;
    let latency = &record["latency"]["total"]["upper"];
    assert!(paused_us > 500_000.0, "{}", fault(&record, 0));
    assert!(latency["max_us"].as_f64().unwrap() > paused_us - 50_000.0, "paused {paused_us} µs: {latency}");
    // A message that is due late in the pause waits less than the limit, which a noisy machine raises.
    let soonest_s = paused_us / 1e6 - 0.1 - seconds(&record, "limit_us") / 1e6;
    let effect = &fault(&record, 0)["latency"];
    // A noisy half second later is a further disturbance, which may last until the end.
    assert!(effect["recovered_after_s"].as_f64().is_none_or(|back_s| back_s >= soonest_s), "{effect}");
    assert_eq!(effect["disturbed"], true, "{effect}");
    assert!(seconds(&record, "worst_us") > 500_000.0);
}

#[test]
fn a_share_of_connections_is_reset_and_held_off_for_the_length_of_the_fault() {
    let Some(record) = mosquitto_with("tuned", &["reset:at=2s,share=50%,for=1s"]) else { return };
    assert_count_eq!([of_connections(&record, "chosen"), of_connections(&record, "lost")], [CONNECTIONS / 2; 2]);
    assert_count_eq!(of_connections(&record, "reconnected"), CONNECTIONS / 2);
    assert!(seconds(&record, "first_detected_s") < 0.1);
    // Held off until the planned end, however late the fault began.
    let back_s = seconds(&record, "done_at_s") + seconds(&record, "first_reconnected_s");
    assert!(back_s >= 2.999, "{back_s} s: {}", fault(&record, 0));
    assert!(names_cause(&record, "reset by a fault of the run"), "{}", record["connections"]);
    assert!(names_cause(&record, "held off by a fault of the run"), "{}", record["connections"]);
    assert_count_eq!(of_connections(&record, "sessions_lost"), 0, "the system never stopped");
    assert_count_eq!(of_level(&record, 1, "lost"), 0, "{}", fault(&record, 0));
}

#[test]
fn a_group_s_connections_that_die_silently_are_given_up_when_the_fault_ends() {
    let Some(record) = mosquitto_with("tuned", &["cut:at=2s,for=1s,group=gauge"]) else { return };
    assert_count_eq!([of_connections(&record, "chosen"), of_connections(&record, "lost")], [20, 20]);
    assert!((0.99..1.5).contains(&seconds(&record, "first_detected_s")), "{}", fault(&record, 0));
    assert_count_eq!(of_connections(&record, "reconnected"), 20);
    // One second of 800 messages that the devices wrote and no subscriber received.
    assert!((600..=800).contains(&of_level(&record, 0, "lost")), "{}", fault(&record, 0));
    assert_count_eq!(of_level(&record, 1, "lost") + of_level(&record, 1, "skipped_disconnected"), 0);
    assert_eq!(promise(&record, 0), "kept", "nothing was promised");
    assert_count_eq!(connections(&record, "dropped"), 20);
}

#[test]
fn what_a_system_sent_into_a_cut_connection_is_not_called_late() {
    let Some(record) = mosquitto_with("tuned", &["cut:at=2s,for=1s,group=watcher"]) else { return };
    assert_count_eq!([of_connections(&record, "chosen"), of_connections(&record, "lost")], [1, 1]);
    assert_count!(of_level(&record, 0, "lost") > 0, "a second of 800 messages: {}", fault(&record, 0));
    // The system's kernel still tries to send them: the filter of the cut socket acknowledges nothing.
    assert_count_eq!(record["delivery"]["at_end"]["system_unsent_bytes"], 0);
    let checks = record["verdict"]["checks"].as_array().unwrap();
    let late = checks.iter().find(|check| check["code"] == "V19").unwrap();
    // On a machine without free processors V19 may name the system's wait for one.
    assert!(!late["text"].as_str().unwrap().contains("bytes still on their way"), "{late}");
}

#[test]
fn messages_written_into_a_dead_connection_are_sent_again_at_qos_1() {
    let Some(record) = mosquitto_with("tuned", &["cut:at=2s,for=1s,group=sensor"]) else { return };
    assert_count_eq!(of_connections(&record, "sessions_resumed"), 20, "{}", fault(&record, 0));
    assert!(record["connections"]["resent"].as_u64().unwrap() > 0, "{}", record["delivery"]);
    assert_count_eq!([of_level(&record, 1, "lost"), of_level(&record, 1, "unknown")], [0, 0], "{}", fault(&record, 0));
    assert_eq!(promise(&record, 1), "kept");
}

#[test]
fn a_group_behind_a_link_is_partitioned_and_a_link_goes_down_and_both_heal() {
    let missing = pubmark_links::privilege::probe().missing();
    if let Some(missing) = missing {
        return pubmark_testing::skip(missing);
    }
    let behind = |name: &str| WORKLOAD.replace(&format!("name: {name},"), &format!("name: {name}, link: far,"));
    let workload = format!("{}links:\n  far: {{delay: 1ms}}\n", behind("gauge"));
    for fault in ["partition:at=2s,for=1s,group=gauge", "link-down:at=2s,for=1s,link=far"] {
        let record = broken_by(&workload, &["--system", "builtin"], &[fault]);
        assert_count_eq!(of_connections(&record, "lost"), 0, "TCP outlives a second: {}", record["connections"]);
        assert!(
            record["conditions"]["links"]["groups"][0]["up"]["traffic"]["lost_down"].as_u64().unwrap() > 0,
            "{}",
            record["conditions"]["links"]
        );
        assert!(
            record["latency"]["total"]["upper"]["max_us"].as_f64().unwrap() > 900_000.0,
            "{}",
            record["latency"]["total"]["upper"]
        );
        assert_count_eq!(count(&record, "lost"), 0, "TCP sent all of it again: {}", record["delivery"]);
    }
}

#[test]
fn several_faults_each_have_their_own_part_of_the_books() {
    let Some(record) = mosquitto_with("durable", &["pause:at=1s,for=200ms", "restart:at=3s"]) else { return };
    let kinds: Vec<&str> = record["conditions"]["faults"]["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["pause", "restart"]);
    assert_count_eq!(of_connections(&record, "lost"), 0, "the pause broke none");
    assert_count_eq!(fault(&record, 1)["connections"]["lost"], CONNECTIONS);
    assert_eq!(seconds(&record, "until_s"), fault(&record, 1)["done_at_s"].as_f64().unwrap());
}

/// Whether NATS is installed, as by `pubmark install`; prints a message if not.
fn nats() -> bool {
    let here = install::found(&Definition::load("nats").unwrap()).is_some();
    if !here {
        pubmark_testing::skip("nats is not installed (`pubmark install nats`)");
    }
    here
}

#[test]
fn nats_is_killed_and_restarted_and_a_stream_on_its_disk_keeps_what_it_acknowledged() {
    if !nats() {
        return;
    }
    for fault in ["kill:at=2s,for=500ms", "restart:at=2s"] {
        let plain = WORKLOAD.replace("qos: 1", "qos: 0").replace(", session: persistent", "");
        let record = broken_by(&plain, &["--system", "nats", "--protocol", "nats"], &[fault]);
        assert_count_eq!([of_connections(&record, "lost"), of_connections(&record, "reconnected")], [CONNECTIONS; 2]);
        assert_eq!(promise(&record, 0), "kept");
        let record = broken(&["--system", "nats", "--protocol", "jetstream"], &[fault]);
        assert_count_eq!([of_connections(&record, "lost"), of_connections(&record, "reconnected")], [CONNECTIONS; 2]);
        assert_count_eq!(of_level(&record, 1, "lost"), 0, "{}", fault_text(&record));
    }
}

fn fault_text(record: &Value) -> String {
    format!("{} {}", fault(record, 0), record["connections"])
}

#[test]
fn the_times_of_random_faults_are_equal_for_all_systems_and_shown_before_the_run() {
    let place = Place::new();
    place.write("faulted.yaml", WORKLOAD);
    let told = |system: &str, seed: &str| {
        let options = ["--system", system, "--seed", seed, "--fault", "kill:mttf=10s,mttr=2s", "--dry-run"];
        let called = place.call(&[&["run", "faulted.yaml"], &options[..]].concat());
        assert_eq!(called.code(), 0, "{called:?}");
        let lines = called.printed.lines().filter(|line| line.starts_with("  fault"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let ours = told("builtin", "1");
    assert!(ours.len() >= 3 && ours[0].contains("mean time to failure 10 s"), "{ours:?}");
    assert_eq!(ours, told("mosquitto", "1"));
    assert_ne!(ours, told("builtin", "2"));
}

#[test]
fn an_interrupt_in_the_middle_of_a_fault_leaves_nothing() {
    if !mosquitto::is_installed() {
        return;
    }
    for fault in ["kill:at=500ms,for=20s", "pause:at=500ms,for=20s"] {
        let place = Place::new();
        place.write("faulted.yaml", WORKLOAD);
        let load = ["run", "faulted.yaml", "--system", "mosquitto", "--warmup", "0s", "--duration", "30s", "--quiet"];
        let call = place.start_with_events(&[&load[..], &["--fault", fault]].concat());
        place.wait_for_event("the fault", |event| event["event"] == "fault" && event["what"] == "begins");
        place.wait_until_measured(2.0);
        call.signal(libc::SIGINT);
        let called = call.wait();
        assert_eq!(called.code(), 130, "{called:?}");
        assert_eq!(with_files_in(&place.temporary()), [] as [u32; 0], "{fault}: a system was left");
        let record = place.only_record();
        assert_eq!(fault_of(&record)["ended_at_s"], Value::Null, "{fault}: it did not come to its end");
    }
}

fn fault_of(record: &Value) -> &Value {
    fault(record, 0)
}

#[test]
fn what_cannot_be_had_is_refused_before_anything_starts() {
    let place = Place::new();
    place.write("faulted.yaml", WORKLOAD);
    for (options, expected) in [
        (&["--endpoint", "mqtt://127.0.0.1:9", "--fault", "kill:at=1s"][..], "a system that pubmark did not start"),
        (&["--fault", "partition:at=1s,for=1s,group=gauge"], "`gauge` is not behind a link"),
        (&["--fault", "link-down:at=1s,for=1s,link=lte"], "no group is behind a link `lte`"),
        (&["--fault", "kill:at=59s,for=5s"], "ends 64 s after the start of the measured window, which is 60 s long"),
        (&["--fault", "kill:at=9s,for=5s", "--fault", "pause:at=10s,for=1s"], "one fault at a time"),
        (&["--fault", "kill:at=9s,server=2"], "there is no server 2: the system has 1"),
        (&["--fault", "reset:at=9s,group=gouge"], "there is no group `gouge`"),
        (&["--fault", "pause:at=9s"], "`pause` without `for` has no end"),
        (&["--fault", "kill:at=9s,share=10%"], "`share` means nothing to `kill`"),
        (&["--fault", "explode:at=9s"], "explode"),
        (&["--fault", "kill:at=9"], "`9` has no unit"),
        (&["--fault", "kill"], "a fault is written KIND:KEY=VALUE"),
    ] {
        let called = place.call(&[&["run", "faulted.yaml"][..], options].concat());
        assert_eq!(called.code(), 2, "{options:?}: {called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{options:?}: {words}");
        assert!(place.runs().is_empty());
    }
    let call = ["run", "hello", "--system", "zeromq-peers", "--qos", "0", "--fault"];
    for (fault, expected) in
        [("kill:at=1s", "clients meet without one"), ("reset:at=1s", "breaks connections of pubmark's own")]
    {
        let called = place.call(&[&call[..], &[fault]].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{words}");
    }
}
