//! Comparison of two experiments: a change has to exceed the noise.

use crate::call::{assert_fits, call_in};
use crate::folders::{experiment, record, run};

const STEADY: &[f64] = &[800.0, 812.0, 795.0, 806.0, 801.0];
const NOISY: &[f64] = &[500.0, 2_000.0, 800.0, 1_400.0, 700.0];

#[test]
fn noise_is_no_regression_and_a_shift_is() {
    let folder = tempfile::tempdir().unwrap();
    let shifted: Vec<f64> = STEADY.iter().map(|p99_us| p99_us * 1.45).collect();
    experiment(folder.path(), "before", &[("mosquitto", STEADY), ("mochi", STEADY)], &[]);
    experiment(folder.path(), "after", &[("mosquitto", NOISY), ("mochi", &shifted)], &[]);
    let text = call_in(folder.path(), &["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"]);
    assert_fits(&text);
    assert!(text.ends_with("[exit code 4]\n"), "{text}");
    insta::assert_snapshot!("experiments", text);
}

/// A fifth of each latency may be pubmark's delay.
#[test]
fn a_shift_within_pubmarks_own_delay_is_undecided() {
    let folder = tempfile::tempdir().unwrap();
    let shifted: Vec<f64> = STEADY.iter().map(|p99_us| p99_us * 1.2).collect();
    experiment(folder.path(), "before", &[("mosquitto", STEADY)], &[]);
    experiment(folder.path(), "after", &[("mosquitto", &shifted)], &[]);
    let check = ["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"];
    let text = call_in(folder.path(), &check);
    assert_fits(&text);
    assert!(text.contains("? not p99>+10%") && text.ends_with("[exit code 8]\n"), "{text}");
    let failed = call_in(folder.path(), &[&check[..], &["--undecided", "fail"]].concat());
    assert!(failed.ends_with("[exit code 4]\n"), "{failed}");
}

#[test]
fn every_run_has_to_keep_a_limit_and_every_repetition_to_be_made() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "now", &[("mosquitto", NOISY), ("mochi", STEADY)], &["mochi"]);
    let text = call_in(folder.path(), &["check", "now", "--require", "p99<1ms,loss=0"]);
    assert_fits(&text);
    assert!(text.ends_with("[exit code 6]\n"), "{text}");
    insta::assert_snapshot!("every-run", text);
}

#[test]
fn a_cell_that_the_baseline_lacks_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "before", &[("mosquitto", STEADY), ("nats", STEADY)], &[]);
    experiment(folder.path(), "after", &[("mosquitto", STEADY), ("mochi", STEADY)], &[]);
    let text = call_in(folder.path(), &["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"]);
    assert!(text.contains("not measured in the baseline") && text.ends_with("[exit code 4]\n"), "{text}");
}

#[test]
fn a_run_is_no_baseline_for_several_cells() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "after", &[("mosquitto", STEADY), ("mochi", STEADY)], &[]);
    run(folder.path(), "before", &record(800.0));
    let text = call_in(folder.path(), &["check", "after", "--baseline", "before", "--fail-on", "p99>+10%"]);
    assert!(text.contains("several cells") && text.ends_with("[exit code 2]\n"), "{text}");
}
