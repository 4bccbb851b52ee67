//! Instructions per message through codec and accounting, counted by callgrind: other load on the machine does not
//! change this figure. It depends on the compiler and the build profile, so there is a baseline for each combination;
//! without one for this compiler, the test is skipped with that reason.
//!
//! To store a new baseline after an intended change: `UPDATE=1 cargo test -p pubmark-bench --test instructions`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest difference from the baseline, as a share of it.
const TOLERANCE: f64 = 0.03;
/// Messages of the two runs; start and end of the program cancel out in the difference.
const MESSAGES: (u64, u64) = (4_000, 24_000);

#[test]
fn a_message_costs_as_many_instructions_as_before() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        pubmark_testing::skip("valgrind is not installed (`apt-get install valgrind`)");
        return;
    }
    let per_message = per_message("loop");
    let key = key();
    println!("{per_message:.1} instructions a message ({key})");
    if std::env::var_os("UPDATE").is_some() {
        write_baseline(&key, per_message);
        return;
    }
    let Some(baseline) = baselines().into_iter().find(|(known, _)| *known == key).map(|(_, value)| value) else {
        pubmark_testing::skip(format_args!(
            "there is no baseline for {key}; UPDATE=1 writes one to {}",
            baseline_file().display()
        ));
        return;
    };
    let change = per_message / baseline - 1.0;
    assert!(
        change.abs() <= TOLERANCE,
        "a message costs {per_message:.1} instructions, {:+.1} % against the baseline of {baseline:.1}",
        change * 100.0
    );
}

/// Largest additional cost with `--metrics`, as a share of the cost without: the variation of callgrind itself.
const MOST_FOR_METRICS: f64 = 0.002;

#[test]
fn reading_metrics_adds_no_instructions_to_a_message() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        pubmark_testing::skip("valgrind is not installed (`apt-get install valgrind`)");
        return;
    }
    // The number of reads is the same with few messages and with many: reads cancel out, a higher cost per message does
    // not.
    let (without, with) = (per_message("loop"), per_message("watched-loop"));
    let share = with / without - 1.0;
    println!("{without:.1} instructions a message, {with:.1} while another thread reads: {:+.2} %", share * 100.0);
    assert!(count("watched-loop", MESSAGES.0) > count("loop", MESSAGES.0), "nobody read");
    assert!(share.abs() <= MOST_FOR_METRICS, "a message costs {:+.2} % more while another thread reads", share * 100.0);
}

/// Largest additional cost of a message log, as a share of the cost without: both rows of a message are created and
/// written.
const MOST_FOR_LOG: f64 = 0.15;

#[test]
fn a_message_log_adds_at_most_fifteen_percent() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        pubmark_testing::skip("valgrind is not installed (`apt-get install valgrind`)");
        return;
    }
    let (without, with) = (per_message("loop"), per_message("logged-loop"));
    let share = with / without - 1.0;
    println!("{without:.1} instructions a message, {with:.1} with a message log: {:+.1} %", share * 100.0);
    // A log without any cost would not have been written.
    assert!(with > without + 20.0, "{with:.1} with a message log, {without:.1} without");
    assert!(share <= MOST_FOR_LOG, "a message log adds {:.1} %", share * 100.0);
}

/// Instructions per message in a loop of the bench.
fn per_message(which: &str) -> f64 {
    let (few, many) = (count(which, MESSAGES.0), count(which, MESSAGES.1));
    (many - few) as f64 / (MESSAGES.1 - MESSAGES.0) as f64
}

/// Instructions of a whole run of the loop.
fn count(which: &str, messages: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_pubmark-bench"))
        .args([which, &messages.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "valgrind failed:\n{text}");
    let line = text.lines().find(|line| line.contains("Collected :")).unwrap_or_else(|| panic!("no count in:\n{text}"));
    line.rsplit(':').next().unwrap().trim().parse().unwrap()
}

fn key() -> String {
    let version = Command::new(std::env::var("RUSTC").unwrap_or("rustc".into())).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    format!("{} {profile}", version.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

fn baseline_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt")
}

fn baselines() -> Vec<(String, f64)> {
    let text = std::fs::read_to_string(baseline_file()).unwrap_or_default();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.split_once(": ")).map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect()
}

fn write_baseline(key: &str, value: f64) {
    let mut rows = baselines();
    rows.retain(|(known, _)| known != key);
    rows.push((key.to_owned(), value));
    let mut text = "# Instructions a message, by compiler and build profile: see tests/instructions.rs.\n".to_owned();
    rows.iter().for_each(|(key, value)| text.push_str(&format!("{key}: {value:.1}\n")));
    std::fs::write(baseline_file(), text).unwrap();
}
