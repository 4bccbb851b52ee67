//! Leftovers of a system whose pubmark process was killed.

use crate::system::{PATIENCE, START, installed, processes_with, pubmark, wait_for};

/// Kills pubmark when a process of the system runs, and checks that no process remains, daemons included.
fn nothing_survives_a_kill(name: &str, protocol: &str, process: &str) {
    if installed(name).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Every process that is started inherits the variable.
    let mark = format!("PUBMARK_TEST_MARK={}", folder.path().display());
    let (variable, value) = mark.split_once('=').unwrap();
    let mut run = pubmark(folder.path(), &["run", "hello", "--system", name, "--protocol", protocol, "--quiet"])
        .env(variable, value)
        .env("TMPDIR", folder.path())
        .spawn()
        .unwrap();
    wait_for(START, "the start of the system", || {
        assert!(run.try_wait().unwrap().is_none(), "the run ended by itself");
        processes_with(&mark).iter().any(|found| found.ends_with(process))
    });
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for(PATIENCE, "the end of all processes", || processes_with(&mark).is_empty());
    let left = || std::fs::read_dir(folder.path()).unwrap().filter(|entry| is_private(entry.as_ref().unwrap())).count();
    wait_for(PATIENCE, "the end of private folders", || left() == 0);
}

fn is_private(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with("pubmark-system-")
}

#[test]
#[ignore = "slow: make test-all"]
fn nothing_of_rabbitmq_survives_a_kill_its_daemon_neither() {
    nothing_survives_a_kill("rabbitmq", "mqtt311", "epmd");
}

#[test]
#[ignore = "slow: make test-all"]
fn nothing_of_artemis_survives_a_kill() {
    nothing_survives_a_kill("artemis", "mqtt5", "java");
}

#[test]
#[ignore = "slow: make test-all"]
fn nothing_of_hivemq_survives_a_kill() {
    nothing_survives_a_kill("hivemq", "mqtt5", "java");
}
