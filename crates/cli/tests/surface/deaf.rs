//! Subscribers whose filters no device's topic matches.

use std::fs;

use crate::call::{assert_fits, call_in};

fn run_with(subscribers: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let devices = "  - {name: d/t, every: 100ms, payload: 100B, topic: \"a/b\"}";
    let file = format!("name: odd\ndevices:\n{devices}\nsubscribers:\n{subscribers}\n");
    fs::write(folder.path().join("odd.yaml"), file).unwrap();
    call_in(folder.path(), &["run", "odd.yaml", "--dry-run"])
}

#[test]
fn a_run_without_subscribers_is_refused() {
    let text = run_with("  - {name: deaf, filters: [\"x/#\"]}");
    assert_fits(&text);
    insta::assert_snapshot!("deaf-all", text);
}

#[test]
fn a_group_without_matching_topics_is_named_before_the_run() {
    let text = run_with("  - {name: listens, filters: [\"a/#\"]}\n  - {name: deaf, filters: [\"x/#\"]}");
    assert!(text.ends_with("[exit code 0]\n"), "{text}");
    let said = text.split("[standard error]").nth(1).unwrap_or_default();
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("subscriber group `deaf` receives nothing: no device's topic matches its filters `x/#`"),
        "{text}"
    );
}
