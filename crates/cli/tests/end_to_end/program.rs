//! The binary, called in a separate folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pubmark_testing::assert_count_eq;
use serde_json::Value;

/// The binary with its arguments, in `folder`.
pub fn pubmark(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("pubmark"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// Calls it and waits for its end.
pub fn call(folder: &Path, arguments: &[&str]) -> Output {
    pubmark(folder, arguments).output().unwrap()
}

/// Executes a short run and returns its record. On a busy machine the run may be invalid (exit code 5): the message
/// accounting adds up nevertheless.
pub fn record_of(folder: &Path, arguments: &[&str]) -> Value {
    let output = call(folder, &[&["run"], arguments, &["--json", "--quiet"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{arguments:?}: {:?}\n{errors}", output.status);
    assert!(errors.is_empty(), "{arguments:?} is not quiet: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that the message accounting of a record adds up; the error names the side that does not.
pub fn assert_closed(record: &Value) {
    let count = |name: &str| record["delivery"][name].as_u64().unwrap();
    let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<u64>();
    assert!(count("offered") > 0, "nothing was offered: {}", record["delivery"]);
    assert_count_eq!(
        count("offered"),
        sum(&["sent", "skipped_planned", "skipped_disconnected", "refused", "unsent"]),
        "{}",
        record["delivery"]
    );
    assert_count_eq!(count("expected"), sum(&["delivered", "lost", "unknown"]), "{}", record["delivery"]);
}

/// The only run folder below `out`, and its record.
pub fn only_run(out: &Path) -> (PathBuf, Value) {
    let folders: Vec<PathBuf> =
        std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !path.is_symlink()).collect();
    let [folder] = folders.as_slice() else { panic!("expected one run in {}: {folders:?}", out.display()) };
    let text = std::fs::read_to_string(folder.join("record.json")).unwrap();
    (folder.clone(), serde_json::from_str(&text).unwrap())
}
