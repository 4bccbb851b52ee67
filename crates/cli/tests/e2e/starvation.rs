//! Systems that other programs keep from running: the run notices it, reports it, waits for them, and does not blame
//! the system.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::support::books::{assert_closed, check, count};
use crate::support::mosquitto;
use crate::support::place::{Call, Place};
use crate::support::processes::{descriptors, wait_for, with_files_in};

const LIMIT: Duration = Duration::from_secs(20);
/// Ten messages arrive for each that a device sends, so that the broker has work.
const WORKLOAD: &str = "\
name: busy
devices:
  - {name: meter, count: 10, every: 5ms, payload: 100B, topic: 'busy/{index}', qos: 0}
subscribers:
  - {name: reader, count: 1, filters: ['busy/#'], qos: 0}
";
const RUN: [&str; 8] = ["run", "busy.yaml", "--system", "mosquitto", "--duration", "3s", "--warmup", "0s"];

/// Programs that compute on the first CPU, and leave almost nothing of it to others of a lower priority.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start() -> Hogs {
        let words = ["-c", "0", "sh", "-c", "while :; do :; done"];
        let hog = || Command::new("taskset").args(words).stdin(Stdio::null()).spawn().unwrap();
        Hogs((0..3).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The process of a run's broker.
fn broker_of(place: &Place) -> Option<u32> {
    with_files_in(&place.temporary())
        .into_iter()
        .find(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "mosquitto"))
}

/// The process of a run's broker, once all clients are connected to it.
fn connected_broker(place: &Place) -> u32 {
    // Connections of ten devices and a subscriber, in addition to the descriptors that it has open anyway.
    wait_for("a broker with all connections", LIMIT, || broker_of(place).is_some_and(|pid| descriptors(pid) > 15));
    broker_of(place).unwrap()
}

/// Weights of a process against others: almost nothing, and the default. They apply in its control group, if pubmark
/// created one, otherwise in its session's group (`sched_autogroup_enabled`); both have more effect than its priority.
const LEAST: Weight = Weight { v1: "2", v2: "1", nice: "19" };
const USUAL: Weight = Weight { v1: "1024", v2: "100", nice: "0" };

struct Weight {
    v1: &'static str,
    v2: &'static str,
    nice: &'static str,
}

fn weigh(pid: u32, weight: &Weight) {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let ours = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        path.contains("pubmark-").then_some((controllers, path))
    });
    for (controllers, path) in ours {
        let (folder, file, value) = match controllers {
            "" => ("/sys/fs/cgroup", "cpu.weight", weight.v2),
            controllers if controllers.split(',').any(|one| one == "cpu") => {
                ("/sys/fs/cgroup/cpu", "cpu.shares", weight.v1)
            }
            _ => continue,
        };
        // If the controller is not enabled, its file does not exist, and priorities apply.
        let file = Path::new(&format!("{folder}{path}")).join(file);
        if file.exists() {
            std::fs::write(file, value).unwrap();
        }
    }
    // The file does not exist in a kernel without such groups.
    let _ = std::fs::write(format!("/proc/{pid}/autogroup"), weight.nice);
    call("renice", &["-n", weight.nice, "-p", &pid.to_string()]);
}

fn call(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// A run whose broker is on the first CPU, with almost nothing of it beside other programs.
struct Starved {
    call: Call,
    broker: u32,
    hogs: Hogs,
}

impl Starved {
    /// Starts it, and does not limit the broker until all clients are connected.
    fn start(place: &Place, options: &[&str]) -> Starved {
        place.write("busy.yaml", WORKLOAD);
        let hogs = Hogs::start();
        let run = place.start_with_events(&[&RUN[..], options].concat());
        let broker = connected_broker(place);
        call("taskset", &["-a", "-cp", "0", &broker.to_string()]);
        weigh(broker, &LEAST);
        Starved { call: run, broker, hogs }
    }

    /// Lets the broker run at the default weight.
    fn release(self) -> Call {
        drop(self.hogs);
        weigh(self.broker, &USUAL);
        self.call
    }
}

/// Whether a process has a pending signal to end. One that has ended counts.
fn is_told_to_end(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    let pending = u64::from_str_radix(pending.trim(), 16).unwrap();
    [libc::SIGTERM, libc::SIGKILL].iter().any(|signal| pending & (1 << (signal - 1)) != 0)
}

fn waited_share(record: &Value) -> f64 {
    record["cost"]["system"]["run_queue_wait_share"].as_f64().unwrap_or_else(|| panic!("{}", record["cost"]))
}

#[test]
fn a_broker_without_processor_shows_nothing_of_itself() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let Starved { call, broker, hogs } = Starved::start(&place, &["--drain", "1s"]);
    // The drain is over when pubmark sends SIGTERM to the broker. To end, the broker needs a CPU, too.
    wait_for("a broker with SIGTERM", LIMIT, || is_told_to_end(broker));
    drop(hogs);
    let called = call.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    let record = place.only_record();
    assert_closed(&record);
    assert!(waited_share(&record) > 0.5, "{}", record["cost"]);
    assert_count!(count(&record, "lost") + count(&record, "unsent") > 0, "{}", record["delivery"]);
    assert_eq!(check(&record, "V28"), "invalid");
    // Missing messages may be in the broker; if it had read everything that was sent, the rest is unsent and not
    // missing.
    let expected = if count(&record, "lost") > 0 { "suspect" } else { "valid" };
    let found = (&record["delivery"], &record["settings"]["drain_s"], &record["cost"]["system"]);
    assert_eq!(check(&record, "V19"), expected, "{found:?}");
}

/// Bytes that a process has read so far.
fn read_bytes(pid: u32) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn messages_that_a_stopped_broker_has_not_read_are_late_and_not_lost() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    place.write("busy.yaml", WORKLOAD);
    // Longer than the silence that otherwise ends a drain.
    let run = place.start(&[&RUN[..], &["--drain", "5s"]].concat());
    let broker = connected_broker(&place);
    let before = read_bytes(broker);
    wait_for("a broker that reads messages", LIMIT, || read_bytes(broker) > before + 20_000);
    call("kill", &["-STOP", &broker.to_string()]);
    wait_for("a broker with SIGTERM", LIMIT, || is_told_to_end(broker));
    call("kill", &["-CONT", &broker.to_string()]);
    let called = run.wait();
    // On a machine that is busy with other programs, the run may be invalid for another reason.
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = place.only_record();
    assert_closed(&record);
    assert_count!(count(&record, "lost") > 0, "{}", record["delivery"]);
    assert!(record["delivery"]["at_end"]["system_unread_bytes"].as_u64() > Some(0), "{}", record["delivery"]);
    assert_eq!(check(&record, "V19"), "suspect", "{}", record["delivery"]);
    assert!(record["settings"]["drain_s"].as_f64() > Some(4.0), "{}", record["settings"]["drain_s"]);
}

#[test]
fn the_drain_does_not_end_for_the_silence_of_a_broker_that_cannot_run() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let starved = Starved::start(&place, &["--drain", "30s"]);
    // Longer in the drain than the longest wait without a message.
    let is_long = |event: &Value| event["phase"] == "drain" && event["elapsed_s"].as_f64() > Some(4.5);
    place.wait_for_event("a long drain", is_long);
    let called = starved.release().wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = place.only_record();
    assert_closed(&record);
    let drain_s = record["settings"]["drain_s"].as_f64().unwrap();
    assert!(drain_s > 4.0, "the broker was done in {drain_s} s: {}", record["cost"]);
    assert_count_eq!(count(&record, "lost"), 0, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "delivered"), count(&record, "sent"), "{}", record["delivery"]);
}

#[test]
fn a_broker_that_is_left_alone_has_processors() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    place.write("busy.yaml", WORKLOAD);
    let record = place.record(&[&RUN[1..], &["--rate", "0.1"]].concat());
    // On a machine that is busy with other programs, the rule may rightly find that it was starved.
    let others = record["cost"]["contention"]["other_cores"].as_f64().unwrap();
    assert!(check(&record, "V28") == "valid" || others > 0.2, "{}", record["cost"]);
    assert!(record["cost"]["system"]["run_queue_wait_ns"].is_u64(), "{}", record["cost"]);
}

#[test]
fn real_time_priority_that_starves_the_broker_is_no_loss_of_its_own() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let load =
        ["run", "fan-in", "--set", "publishers=20", "--set", "rate=1000/s", "--set", "payload=100B", "--qos", "0"];
    let how = ["--system", "mosquitto", "--realtime", "--duration", "2s", "--warmup", "0s", "--drain", "3s"];
    let called = place.call(&[&load[..], &how].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = place.only_record();
    assert_closed(&record);
    assert_count_eq!(
        count(&record, "offered"),
        40_000,
        "20 publishers, 1,000 a second each, 2 s: {}",
        record["delivery"]
    );
    assert_count_eq!(count(&record, "sent") + count(&record, "unsent"), 40_000, "{}", record["delivery"]);
    // A process with all CPUs may not count messages as lost that the broker had no time to forward.
    if count(&record, "lost") > 0 {
        assert_eq!(record["verdict"]["status"], "invalid", "{} {}", record["delivery"], record["verdict"]["reasons"]);
    }
}
