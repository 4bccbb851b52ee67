//! Systems in containers, from their start until nothing remains.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;
mod contained;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{becomes_true, is_alive, mqtt_connect, options};
use contained::{containers, definition, engine};
use pubmark_systems::cgroup::usage::CgroupUsage;
use pubmark_systems::container::{Engine, EngineKind};
use pubmark_systems::limits::ResourceLimits;
use pubmark_systems::{BackEndChoice, Endpoint, RunningSystem, StartOptions, start};

/// Environment variable of the process that starts a system and is killed: file in which it notes what it started.
const NOTE: &str = "PUBMARK_TEST_NOTE";

fn accepts(endpoint: &Endpoint) -> Result<(), String> {
    match mqtt_connect(endpoint, None)? {
        0 => Ok(()),
        code => Err(format!("connect refused with code {code}")),
    }
}

fn begin(image: &str, change: impl FnOnce(&mut StartOptions)) -> RunningSystem {
    let mut options = options("mqtt5");
    options.back_end = Some(BackEndChoice::Container);
    change(&mut options);
    start(&definition(image), &options, &mut accepts).unwrap()
}

#[test]
fn a_system_in_a_container_is_started_described_measured_and_stopped() {
    let Some((engine, image)) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let limits = ResourceLimits {
        requested: "cpu=0.5,memory=64MB".to_owned(),
        cpu: Some(0.5),
        memory_bytes: Some(64_000_000),
        cores: None,
    };
    let is_limited = engine.limits_left_out.is_empty();
    let mut running = begin(image, |options| {
        options.directory = Some(folder.path().to_owned());
        options.limits = is_limited.then_some(limits);
    });
    let info = running.info();
    assert_eq!((info.back_end.as_str(), info.image.as_deref()), ("container", Some(image)));
    assert!(image.ends_with(&format!(":{}-1", info.version.as_deref().unwrap())), "{info:?}");
    assert_eq!(info.limits.map(|limits| limits.held_by), is_limited.then(|| "container".to_owned()));
    assert_eq!(running.ended(), None);
    let place = running.cost_sources().remove(0);
    assert_eq!(std::fs::read_to_string(format!("/proc/{}/comm", place.pid)).unwrap(), "mosquitto\n");
    let usage = CgroupUsage::read(&place.cgroup.unwrap());
    assert!(usage.cpu_ns.is_some_and(|ns| ns > 0), "{usage:?}");
    assert_eq!(usage.limits.is_some(), is_limited);
    let monitor = parent_of(place.pid);
    running.stop();
    let log = std::fs::read_to_string(folder.path().join("contained.log")).unwrap();
    assert!(log.contains("terminating"), "{log}");
    assert!(!is_alive(place.pid));
    assert!(
        engine.kind != EngineKind::Podman || !is_alive(monitor),
        "what watched the container for the engine is left"
    );
}

/// Parent of a process: the second field after the name in brackets.
fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_container_that_dies_is_noticed() {
    let Some((_, image)) = engine() else { return };
    let mut running = begin(image, |_| {});
    let pid = running.cost_sources()[0].pid;
    // SAFETY: plain system call on a process that this test started.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    let mut ended = None;
    for _ in 0..1_000 {
        ended = running.ended();
        if ended.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // 128 + SIGKILL.
    assert!(ended.as_ref().is_some_and(|ended| ended.contains("137")), "{ended:?}");
}

#[test]
fn a_container_is_killed_paused_and_started_again() {
    let Some((engine, image)) = engine() else { return };
    let mut running = begin(image, |_| {});
    let id = id_of(running.pid());
    assert!(is_there(engine, &id));
    running.kill(None).unwrap();
    assert!(running.ended().unwrap().contains("137"));
    assert!(accepts(running.endpoint()).is_err() && running.kill(None).unwrap_err().contains("had ended before"));
    running.start_again(None).unwrap();
    let listens = |running: &RunningSystem| (0..3).any(|_| becomes_true(|| accepts(running.endpoint()).is_ok()));
    assert!(listens(&running));
    running.end(None).unwrap();
    running.start_again(Some(0)).unwrap();
    assert!(listens(&running), "{}", running.log_tail());
    assert_eq!(running.ended(), None);
    if engine.rootless && !engine.limits_left_out.is_empty() {
        pubmark_testing::skip(format_args!("pausing, which {} cannot without root's rights here", engine.title()));
        return;
    }
    running.pause(None, true).unwrap();
    let mut stream = TcpStream::connect(running.endpoint().address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream.write_all(b"\x10\x0c\0\x04MQTT\x04\x02\0\x1e\0\0").unwrap();
    assert!(stream.read(&mut [0; 4]).is_err(), "nobody answers");
    running.pause(None, false).unwrap();
    assert!(listens(&running));
    // A paused container is removed, too.
    running.pause(None, true).unwrap();
    drop(running);
    assert!(!is_there(engine, &id), "{}", containers(engine));
}

/// An engine that fails as many times as the file FAILURES says when it restarts a container.
const FAILING: &str = r#"#!/bin/sh
left=$(cat FAILURES)
for word in "$@"; do
    if [ "$word" = --attach ] && [ "$left" -gt 0 ]; then
        echo $((left - 1)) >FAILURES
        echo "Error: failed to connect to container's attach socket"
        exit 125
    fi
done
exec ENGINE "$@"
"#;

#[test]
fn restarting_a_container_is_retried_a_limited_number_of_times() {
    let Some((engine, image)) = engine() else { return };
    if let Ok(failures) = std::env::var(NOTE) {
        let mut running = begin(image, |_| {});
        let mut starts_after = |times: u32| {
            running.kill(None).unwrap();
            std::fs::write(&failures, times.to_string()).unwrap();
            let started = running.start_again(None);
            assert!(started.is_err() || (0..3).any(|_| becomes_true(|| accepts(running.endpoint()).is_ok())));
            (started, std::fs::read_to_string(&failures).unwrap().trim().to_owned())
        };
        assert_eq!(starts_after(2), (Ok(()), "0".to_owned()));
        let (failed, left) = starts_after(5);
        let said = failed.unwrap_err();
        assert!(said.contains("failed 3 times") && said.contains("attach socket") && left == "2", "{said} {left}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, failures) = (folder.path().join("podman"), folder.path().join("failures"));
    let script = FAILING.replace("FAILURES", failures.to_str().unwrap());
    std::fs::write(&failures, "0").unwrap();
    std::fs::write(&program, script.replace("ENGINE", engine.program.to_str().unwrap())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut inner = Command::new(std::env::current_exe().unwrap());
    inner.args(["restarting_a_container_is_retried_a_limited_number_of_times", "--exact"]);
    inner.env(NOTE, &failures).env("PUBMARK_CONTAINER_ENGINE", &program).env("TMPDIR", folder.path());
    let (status, output) = pubmark_systems::process::run_to_end(inner, Duration::from_secs(120)).unwrap();
    assert!(status.success() && !output.contains("skipped"), "{output}");
    assert_eq!(std::fs::read_to_string(&failures).unwrap().trim(), "2", "the failing engine was used: {output}");
}

/// Id of the container in which a process runs.
fn id_of(pid: u32) -> String {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let words = groups.split(|letter: char| !letter.is_ascii_hexdigit());
    words.max_by_key(|word| word.len()).unwrap().to_owned()
}

/// Does the engine have a container with this id?
fn is_there(engine: &Engine, id: &str) -> bool {
    let mut inspect = Command::new(&engine.program);
    inspect.args(["inspect", "--type", "container", id]);
    pubmark_systems::process::run_to_end(inspect, Duration::from_secs(20)).unwrap().0.success()
}

/// Environment variable of the process that kills an owner: the moment, `MILESTONE+MS`.
const KILL_AT: &str = "PUBMARK_TEST_KILL_AT";
/// Name of this test, which runs itself twice more: as the owner, and as the parent of the owner.
const OWNER_KILLED: &str = "nothing_is_left_of_a_container_whose_owner_is_killed";
/// Longest time until nothing is left.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// An engine that creates the file MARK when a container is about to print its version.
const MARKING: &str = r#"#!/bin/sh
case "$*" in *"run --rm --name "*-version*) : >MARK ;; esac
exec ENGINE "$@"
"#;

/// Runs itself in a process that starts a container and is killed with SIGKILL: when the container is ready, and at
/// moments while another container prints the version.
#[test]
fn nothing_is_left_of_a_container_whose_owner_is_killed() {
    let Some((engine, image)) = engine() else { return };
    match (std::env::var(KILL_AT), std::env::var(NOTE)) {
        (Ok(moment), Ok(note)) => kill_owner(engine, &moment, Path::new(&note)),
        (Err(_), Ok(note)) => own(image, &note),
        _ => {
            for moment in ["ready+0", "version+50", "version+150", "version+250", "version+400", "version+900"] {
                leaves_nothing(engine, moment);
            }
        }
    }
}

/// The owner: starts a container and waits to be killed.
fn own(image: &str, note: &str) {
    let running = begin(image, |_| {});
    std::fs::write(format!("{note}-early"), running.cost_sources()[0].pid.to_string()).unwrap();
    std::fs::rename(format!("{note}-early"), note).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// The parent of the owner: kills it at the moment, and waits until no descendant is left. Every orphan among the
/// owner's descendants becomes a child of this process, so none can hide.
fn kill_owner(engine: &Engine, moment: &str, note: &Path) {
    // SAFETY: a plain call that changes only this process.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
    let (milestone, ms) = moment.split_once('+').unwrap();
    let mark = note.with_file_name(milestone);
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args([OWNER_KILLED, "--exact"]).env(NOTE, note.with_file_name("ready")).env_remove(KILL_AT);
    let mut owner = owner.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!((0..6).any(|_| becomes_true(|| mark.exists())), "the owner did not come as far as {milestone}");
    std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    // The kernel has closed the pipes of the owner; its supervisor removes everything now.
    let deadline = std::time::Instant::now() + GONE_WITHIN;
    // SAFETY: all children of this process, and no other thread of it waits for one.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } != -1 {
        assert!(std::time::Instant::now() < deadline, "killed at {moment}: {:?} are left", descendants());
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut list = Command::new(&engine.program);
    list.args(["ps", "--all", "--format", "{{.Labels}} {{.Names}} {{.Status}}"]);
    let (_, said) = pubmark_systems::process::run_to_end(list, Duration::from_secs(20)).unwrap();
    assert!(!said.contains(&format!("/{}/", owner.id())), "killed at {moment}: {said}");
    eprintln!("nothing is left");
}

/// Command lines of the descendants of this process.
fn descendants() -> Vec<String> {
    let line = |pid| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let readable = |pid| format!("{pid}: {}", String::from_utf8_lossy(&line(pid)).replace('\0', " "));
    pubmark_systems::tree::below(std::process::id()).into_iter().map(readable).collect()
}

fn leaves_nothing(engine: &Engine, moment: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (program, note) = (folder.path().join("podman"), folder.path().join("note"));
    let script = MARKING.replace("MARK", folder.path().join("version").to_str().unwrap());
    std::fs::write(&program, script.replace("ENGINE", engine.program.to_str().unwrap())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut parent = Command::new(std::env::current_exe().unwrap());
    parent.args([OWNER_KILLED, "--exact", "--nocapture"]).env(NOTE, &note).env(KILL_AT, moment);
    parent.env("PUBMARK_CONTAINER_ENGINE", &program).env("TMPDIR", folder.path());
    let (status, output) = pubmark_systems::process::run_to_end(parent, Duration::from_secs(120)).unwrap();
    assert!(status.success() && output.contains("nothing is left"), "{output}");
    let directories: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(!directories.iter().any(|path| path.is_dir()), "killed at {moment}: {directories:?}");
}
