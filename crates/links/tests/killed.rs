//! A process that is killed leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test")]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{delayed, network, skip};

/// Set for the process that is to be killed.
const HOLDER: &str = "PUBMARK_LINKS_HOLDER";

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn a_holder_of_links() {
    if std::env::var_os(HOLDER).is_none() {
        return pubmark_testing::skip("it only waits to be killed");
    }
    let network = network(&[delayed(Duration::from_millis(1)); 4]).unwrap();
    let inodes: Vec<String> = [network.core()]
        .into_iter()
        .chain((0..4).map(|group| network.group(group).unwrap()))
        .map(|namespace| namespace.inode().to_string())
        .collect();
    // On a line of its own: the test runner prints as well.
    println!("\nnamespaces {}", inodes.join(" "));
    std::thread::sleep(Duration::from_secs(60));
}

fn interfaces() -> String {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned() + " ")).collect()
}

/// Network namespaces in which any thread is.
fn occupied() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(threads) = std::fs::read_dir(process.path().join("task")) else { continue };
        for thread in threads.flatten() {
            if let Ok(link) = std::fs::read_link(thread.path().join("ns/net")) {
                found.insert(link.to_string_lossy().trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned());
            }
        }
    }
    found
}

/// Named namespaces of the machine.
fn named() -> Vec<std::ffi::OsString> {
    std::fs::read_dir("/run/netns")
        .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default()
}

#[test]
fn fifty_kills_leave_no_interface_namespace_or_process() {
    if skip() {
        return;
    }
    let before = (interfaces(), named());
    for round in 0..50u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["a_holder_of_links", "--exact", "--ignored", "--nocapture"])
            .env(HOLDER, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Every other one is killed while it is being set up.
        let inodes: Vec<String> = if round % 2 == 0 {
            let line =
                lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("namespaces"))).unwrap().unwrap();
            line.split(' ').skip(1).map(str::to_owned).collect()
        } else {
            std::thread::sleep(Duration::from_micros(round * 700));
            Vec::new()
        };
        assert_eq!(inodes.len(), if round % 2 == 0 { 5 } else { 0 });
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + common::PATIENCE;
        while occupied().iter().any(|inode| inodes.contains(inode)) {
            assert!(Instant::now() < deadline, "round {round}: somebody is still in one of {inodes:?}");
        }
        assert!(!std::path::Path::new(&format!("/proc/{}", child.id())).exists());
    }
    assert_eq!((interfaces(), named()), before);
}
