//! A single run.

use std::fs;

use pubmark_record::objectives::assess;
use pubmark_record::record::{Status, VerdictStatus};
use pubmark_record::threshold::Objectives;

use crate::call::{assert_fits, call_in};
use crate::folders::{judged, record, run};

/// Calls the binary, and fails unless the output fits a terminal and the exit code is `code`.
fn checked(folder: &std::path::Path, arguments: &[&str], code: u8) -> String {
    let text = call_in(folder, arguments);
    assert_fits(&text);
    assert!(text.ends_with(&format!("[exit code {code}]\n")), "not {code}: {text}");
    text
}

#[test]
fn limits_that_hold_and_limits_that_do_not() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "after", &record(840.0));
    let kept = checked(folder.path(), &["check", "after", "--require", "p99<1ms,loss=0,rate>=900/s,memory<15MB"], 0);
    insta::assert_snapshot!("kept", kept);
    run(folder.path(), "now", &record(840.0));
    let limits = ["--require", "p99<1us,memory_per_connection<1MB", "--fail-on", "p50>0s"];
    let missed = checked(folder.path(), &[&["check", "now"], &limits[..]].concat(), 3);
    insta::assert_snapshot!("missed", missed);
    checked(folder.path(), &["check", "after/record.json"], 0);
}

#[test]
fn a_run_is_held_against_the_limits_that_it_was_made_with_unless_others_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let with = |limits: &str| {
        let mut made = record(840.0);
        assess(&mut made, &Objectives::parse(limits).unwrap());
        made
    };
    run(folder.path(), "kept", &with("p99<1ms,loss=0"));
    run(folder.path(), "missed", &with("p99<1us"));
    assert!(checked(folder.path(), &["check", "kept"], 0).contains("✓ p99<1ms"));
    assert!(checked(folder.path(), &["check", "missed"], 3).contains("✗ p99<1us"));
    checked(folder.path(), &["check", "missed", "--require", "p99<1ms"], 0);
    let mut strange = with("p99<1us");
    strange.objectives[0].limit = "beauty>1".to_owned();
    run(folder.path(), "strange", &strange);
    assert!(checked(folder.path(), &["check", "strange"], 3).contains("no figure `beauty`"));
}

#[test]
fn a_limit_between_both_bounds_is_undecided_unless_the_caller_decides() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "now", &record(1_100.0));
    let check = ["check", "now", "--require", "p99<1ms,loss=0"];
    insta::assert_snapshot!("undecided", checked(folder.path(), &check, 8));
    let passed = checked(folder.path(), &[&check[..], &["--undecided", "pass"]].concat(), 0);
    assert!(passed.contains("! p99<1ms"), "{passed}");
    let failed = checked(folder.path(), &[&check[..], &["--undecided", "fail"]].concat(), 3);
    assert!(failed.contains("✗ p99<1ms"), "{failed}");
    assert!(checked(folder.path(), &["check", "now", "--require", "p99<0.8ms"], 3).contains("✗ p99<0.8ms"));
}

#[test]
fn changes_between_single_runs_are_plain_ratios_and_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "before", &record(840.0));
    run(folder.path(), "after", &record(1_260.0));
    let arguments = ["check", "after", "--baseline", "before", "--fail-on", "p99>+10%,rate<-5%,loss>+1%"];
    let worse = checked(folder.path(), &arguments, 4);
    insta::assert_snapshot!("regression", worse);
    let back = ["check", "before", "--baseline", "after", "--fail-on", "p99>+10%"];
    assert!(checked(folder.path(), &back, 0).contains("−33.3 %"));
}

#[test]
fn a_run_that_cannot_be_believed_fails_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "invalid", &judged(record(840.0), VerdictStatus::Invalid));
    run(folder.path(), "suspect", &judged(record(840.0), VerdictStatus::Suspect));
    let mut stopped = record(840.0);
    stopped.run.status = Status::Interrupted;
    run(folder.path(), "stopped", &stopped);
    let invalid = checked(folder.path(), &["check", "invalid", "--require", "p99<0.5ms"], 5);
    insta::assert_snapshot!("invalid", invalid);
    assert!(checked(folder.path(), &["check", "suspect"], 0).contains("! run is valid"));
    checked(folder.path(), &["check", "suspect", "--strict"], 5);
    assert!(checked(folder.path(), &["check", "stopped"], 5).contains("stopped before its end"));
}

#[test]
fn a_workload_is_checked_and_its_links_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let links = "links:\n  field: {delay: 40ms, loss: 1%}\n";
    let devices = "devices:\n  - {name: soil, link: field, count: 4, every: 5s, payload: 120B}\n";
    let text = format!("name: garden\n{links}{devices}subscribers:\n  - {{name: controller, filters: ['#']}}\n");
    fs::write(folder.path().join("garden.yaml"), &text).unwrap();
    let shown = checked(folder.path(), &["check", "garden.yaml"], 0);
    for part in ["garden, corrected: 4 devices, 1 subscriber", "link field", "for soil", "40 ms", "1 %"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    assert!(checked(folder.path(), &["check", "smart-home"], 0).contains("links     none"));
    fs::write(folder.path().join("wrong.yaml"), text.replace("link: field", "link: meadow")).unwrap();
    assert!(checked(folder.path(), &["check", "wrong.yaml"], 2).contains("meadow"));
    assert!(
        checked(folder.path(), &["check", "smart-home", "--require", "loss=0"], 2).contains("`pubmark run smart-home`")
    );
}

#[test]
fn what_cannot_be_read_is_underlined() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "after", &record(840.0));
    for (name, arguments) in [
        ("no-such-figure", &["check", "after", "--require", "p99<50ms, los=0"][..]),
        ("no-unit", &["check", "after", "--require", "p99<50"]),
        ("change-as-a-limit", &["check", "after", "--require", "p99<+10%"]),
        ("no-baseline", &["check", "after", "--fail-on", "p99>+10%"]),
        ("baseline-without-change", &["check", "after", "--baseline", "after", "--fail-on", "p99>1s"]),
        ("no-such-run", &["check", "yesterday"]),
    ] {
        insta::assert_snapshot!(format!("wrong-{name}"), checked(folder.path(), arguments, 2));
    }
}

#[test]
fn another_schedule_is_no_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = record(840.0);
    other.workload.schedule_hash = "beef".to_owned();
    run(folder.path(), "before", &other);
    run(folder.path(), "after", &record(840.0));
    let text = checked(folder.path(), &["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"], 2);
    assert!(text.contains("beef") && text.contains("schedule"), "{text}");
}

#[test]
fn a_baseline_with_other_settings_is_judged_and_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = record(840.0);
    other.workload.subscribers = 5;
    run(folder.path(), "before", &other);
    run(folder.path(), "after", &record(840.0));
    let arguments = ["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"];
    // Lines may be broken anywhere.
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(checked(folder.path(), &arguments, 0));
    assert!(text.contains("subscribers: 5, here 1"), "{text}");
    for (name, devices) in [("before", 100), ("after", 200)] {
        let mut flood = record(840.0);
        flood.workload.schedule_hash = "none".to_owned();
        flood.workload.devices = devices;
        run(folder.path(), name, &flood);
    }
    let text = words(checked(folder.path(), &arguments, 2));
    assert!(text.contains("another load (devices 100, here 200)"), "{text}");
}

#[test]
fn programs_get_the_same_as_json() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "before", &record(840.0));
    run(folder.path(), "after", &record(1_680.0));
    let arguments =
        ["check", "after", "--baseline", "before", "--fail-on", "p99>+10%,memory_per_connection>+1%", "--json"];
    let text = call_in(folder.path(), &arguments);
    let body: String = text.lines().skip(1).take_while(|line| !line.starts_with('[')).collect();
    let found: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((found["passed"].as_bool(), found["exit_code"].as_u64()), (Some(false), Some(4)));
    assert_eq!(found["checks"][1]["change"].as_f64(), Some(1.0));
    assert_eq!(found["checks"][2]["outcome"], "not-measured");
    assert!(found["checks"][2]["value"].is_null());
}

#[test]
fn a_latency_of_fewer_messages_than_the_baselines_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut lossy = record(840.0);
    let messages = &mut lossy.delivery.messages;
    (messages.lost, messages.delivered) = (1_000, messages.expected - 1_000);
    run(folder.path(), "before", &record(840.0));
    run(folder.path(), "after", &lossy);
    let check = ["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"];
    // Lines may be broken anywhere.
    let text = checked(folder.path(), &check, 8).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("? not p99>+10%") && text.contains("it is of fewer messages (delivered 90 %"), "{text}");
    let text = call_in(folder.path(), &[&check[..], &["--json"]].concat());
    let body: String = text.lines().skip(1).take_while(|line| !line.starts_with('[')).collect();
    let found: serde_json::Value = serde_json::from_str(&body).unwrap();
    let row = found["checks"].as_array().unwrap().iter().find(|row| row["kind"] == "regression").unwrap();
    assert_eq!(row["outcome"], "undecided");
    assert_eq!(row["survivors"], serde_json::json!([1.0, 0.9]));
    checked(folder.path(), &["check", "before", "--baseline", "after", "--fail-on", "p99>+10%"], 0);
}

#[test]
fn a_real_run_is_checked_as_its_record_says() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "hello", "--system", "builtin", "--duration", "2s", "--warmup", "1s", "--quiet"];
    let made = call_in(folder.path(), &arguments);
    assert!(made.ends_with("[exit code 0]\n") || made.ends_with("[exit code 5]\n"), "{made}");
    let json = fs::read_to_string(folder.path().join("runs/latest/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    // A busy machine may make the run invalid; the check must then report that.
    let code = if record["verdict"]["status"] == "invalid" { 5 } else { 0 };
    let text = checked(folder.path(), &["check", "runs/latest", "--require", "delivered=100%,max<60s"], code);
    assert!(text.contains("✓ delivered=100%"), "{text}");
}
