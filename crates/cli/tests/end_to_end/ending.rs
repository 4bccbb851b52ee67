//! Runs that end early.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{assert_closed, only_run, pubmark};

/// Longest wait for something that takes milliseconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(30);

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < LIMIT, "{what} did not come in {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: a plain system call; the child has not been waited for, so its id is its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

/// Processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind_name = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        behind_name.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

fn is_running(pid: u32) -> bool {
    // A zombie has ended.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

/// Waits until a run with `--events events` has measured for this long.
fn wait_until_measured(folder: &Path, seconds: f64) {
    let is_it = |event: Value| event["phase"] == "measure" && event["elapsed_s"].as_f64() >= Some(seconds);
    wait_for("the window", || {
        let text = std::fs::read_to_string(folder.join("events")).unwrap_or_default();
        // The last line may not be complete.
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).any(is_it)
    });
}

/// Starts a long run and waits until its broker runs.
fn long_run(folder: &Path) -> (Child, u32) {
    let arguments = ["run", "smart-home", "--duration", "300s", "--warmup", "0s", "--events", "events"];
    let child = pubmark(folder, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut broker = None;
    wait_for("the broker", || {
        // First a separate process queries the version; the broker has a listener. It runs below its supervisor.
        let supervisors = children(child.id());
        broker = supervisors.into_iter().flat_map(children).find(|pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"--listen")
        });
        broker.is_some()
    });
    (child, broker.unwrap())
}

#[test]
fn ctrl_c_at_any_moment_leaves_a_record_and_no_process() {
    // Moments in which a run starts, and one in which it measures.
    let moments =
        [(Some(0), libc::SIGINT), (Some(150), libc::SIGTERM), (Some(400), libc::SIGINT), (None, libc::SIGINT)];
    for (after, signal) in moments {
        let folder = tempfile::tempdir().unwrap();
        let (child, broker) = long_run(folder.path());
        match after {
            Some(after) => std::thread::sleep(Duration::from_millis(after)),
            None => wait_until_measured(folder.path(), 0.0),
        }
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "after {after:?} ms: {output:?}");
        wait_for("the broker's end", || !is_running(broker));
        let runs = folder.path().join("runs");
        let is_kept = std::fs::read_dir(&runs).unwrap().count() > 0;
        assert!(is_kept || after.is_some(), "no record of a run that measured");
        if is_kept {
            let (_, record) = only_run(&runs);
            assert_eq!(record["run"]["status"], "interrupted", "after {after:?} ms");
            assert_ne!(record["verdict"]["status"], "valid");
            if record["delivery"]["offered"].as_u64().unwrap() > 0 {
                assert_closed(&record);
            }
        }
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_takes_the_broker_along() {
    let folder = tempfile::tempdir().unwrap();
    let (child, broker) = long_run(folder.path());
    send(&child, libc::SIGINT);
    send(&child, libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    wait_for("the broker's end", || !is_running(broker));
}

#[test]
fn a_killed_pubmark_leaves_no_broker_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, broker) = long_run(folder.path());
    send(&child, libc::SIGKILL);
    child.wait().unwrap();
    wait_for("the broker's end", || !is_running(broker));
}

#[test]
fn a_broker_that_dies_in_the_middle_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let times = ["--duration", "3s", "--warmup", "0s", "--drain", "1s"];
    let arguments = [&["run", "smart-home", "--events", "events"], &times[..]].concat();
    let child = pubmark(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut broker = None;
    wait_for("the broker", || {
        // It runs below its supervisor.
        let supervisors = children(child.id());
        broker = supervisors.into_iter().flat_map(children).find(|pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"--listen")
        });
        broker.is_some()
    });
    let broker = broker.unwrap();
    wait_until_measured(folder.path(), 1.0);
    // SAFETY: a plain system call; the broker is a child of ours' child and runs still.
    assert_eq!(unsafe { libc::kill(broker as libc::pid_t, libc::SIGKILL) }, 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("`builtin` ended during the run"), "{errors}");
    let (run, record) = only_run(&folder.path().join("runs"));
    assert_closed(&record);
    let ended = &record["system"]["ended"];
    assert_eq!((&ended["signal"], &ended["how"]), (&9.into(), &"signal: 9 (SIGKILL)".into()), "{ended}");
    assert!((0.0..3.0).contains(&ended["at_s"].as_f64().unwrap()), "{ended}");
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(record["verdict"]["status"] == "invalid" && reasons.contains("V25"), "{reasons}");
    let checked = pubmark(folder.path(), &["check", run.to_str().unwrap()]).output().unwrap();
    assert_eq!(checked.status.code(), Some(5), "{checked:?}");
    assert!(record["connections"]["dropped"].as_u64().unwrap() > 0, "{}", record["connections"]);
    assert!(record["delivery"]["skipped_disconnected"].as_u64().unwrap() > 0, "{}", record["delivery"]);
}
