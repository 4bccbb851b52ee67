//! Which crate may use which: the arrows of the architecture. A new arrow fails here until the table is changed on
//! purpose.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod circles;
mod features;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Crate and the crates that it may use in addition to `model`, which all may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("metrics", &[]),
    ("testing", &[]),
    ("record", &["metrics"]),
    ("protocol", &[]),
    ("wire", &[]),
    ("cyclone", &[]),
    ("adapters", &["protocol", "wire", "cyclone"]),
    ("broker", &["protocol", "wire"]),
    ("systems", &["record"]),
    ("links", &["protocol"]),
    ("engine", &["protocol", "metrics", "record"]),
    ("cluster", &["engine", "protocol"]),
    ("report", &["record", "metrics"]),
    ("protocols", &["adapters", "engine", "protocol"]),
    ("deploy", &["cluster", "record", "runner", "systems"]),
    ("serve", &["choose", "experiment", "preflight", "protocols", "record", "report", "runner", "systems"]),
    ("paper", &["experiment", "record", "report", "runner"]),
    ("choose", &["experiment", "protocols", "record", "report", "runner", "systems"]),
    ("preflight", &["choose", "engine", "experiment", "links", "paper", "record", "report", "runner", "systems"]),
    ("catalogue", &["experiment", "protocol", "protocols", "record", "report", "runner", "systems"]),
    ("experiment", &["protocols", "record", "report", "runner", "systems"]),
    ("runner", &["cluster", "engine", "links", "metrics", "protocol", "protocols", "record", "report", "systems"]),
];

/// Crates that may use all others: the binary, and crates that are built only to test and measure.
const EVERYTHING: &[&str] = &["cli", "conformance", "bench"];

/// Crates that tests may use in addition: peers to test against.
const TEST_PEERS: &[&str] = &["adapters", "protocols", "broker", "protocol", "wire", "systems", "testing"];

/// Arrows that are forbidden for tests, too. The truth tests require that the broker's journal is independent of our
/// counting.
const NEVER: &[(&str, &str)] =
    &[("broker", "metrics"), ("broker", "engine"), ("broker", "record"), ("engine", "report"), ("report", "engine")];

/// Metadata of this workspace's packages, from cargo.
fn metadata() -> serde_json::Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// (crate, crate it uses, only in tests), without the common prefix of the names.
fn arrows() -> Vec<(String, String, bool)> {
    let metadata = metadata();
    let mut arrows = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let user = short(package["name"].as_str().unwrap()).expect("a member of this workspace").to_owned();
        for dependency in package["dependencies"].as_array().unwrap() {
            if let Some(used) = short(dependency["name"].as_str().unwrap()) {
                arrows.push((user.clone(), used.to_owned(), dependency["kind"] == "dev"));
            }
        }
    }
    assert!(arrows.len() > 10, "too few arrows to be this workspace: {arrows:?}");
    arrows
}

fn short(name: &str) -> Option<&str> {
    name.strip_prefix("pubmark-")
}

#[test]
fn no_crate_uses_another_that_the_architecture_does_not_name() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(user, used)| (*user, used.iter().copied().chain(["model"]).collect())).collect();
    let mut wrong = Vec::new();
    for (user, used, only_tests) in arrows() {
        // A crate may use itself in its tests, with other features.
        if EVERYTHING.contains(&user.as_str()) || (only_tests && user == used) {
            continue;
        }
        let Some(allowed) = allowed.get(user.as_str()) else {
            wrong.push(format!("{user} is not in the table of arrows"));
            continue;
        };
        let in_tests = only_tests && TEST_PEERS.contains(&used.as_str());
        if !allowed.contains(used.as_str()) && !in_tests {
            wrong.push(format!("{user} -> {used}"));
        }
    }
    assert!(wrong.is_empty(), "arrows that the architecture does not have: {wrong:#?}");
}

/// Largest number of lines of the binary without tests: it has arguments, verbs, the printer and exit codes. Code that
/// a user of the library needs belongs in the library.
const LINES_OF_THE_BINARY: usize = 6_000;

#[test]
fn the_binary_has_nothing_that_a_library_user_would_miss() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let mut lines = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                lines += text.lines().take_while(|line| *line != "#[cfg(test)]").count();
            }
        }
    }
    assert!((1_000..=LINES_OF_THE_BINARY).contains(&lines), "{lines} lines in crates/cli/src");
}

#[test]
fn what_must_stay_independent_is() {
    for (user, used, _) in arrows() {
        assert!(!NEVER.contains(&(user.as_str(), used.as_str())), "{user} uses {used}");
    }
}

#[test]
fn nothing_uses_the_binary_or_the_test_suite() {
    for (user, used, only_tests) in arrows() {
        // The conformance suite consists only of tests.
        assert!(used != "testing" || only_tests || user == "conformance", "{user} uses what only tests may");
        assert!(!EVERYTHING.contains(&used.as_str()) || (only_tests && user == "cli"), "{user} uses {used}");
    }
}
