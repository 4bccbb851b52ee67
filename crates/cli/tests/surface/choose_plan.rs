//! What `choose --dry-run` says: who is excluded and why, each stage, the time.

use crate::call::{assert_fits, call_in};

const REQUIREMENTS: &str = "\
workload: smart-home
growth: 3
objectives: p99<100ms,loss=0
recovery: 10s
needs: {qos: 1}
candidates: [builtin, 'mqtt://127.0.0.1:9', 'nats://127.0.0.1:9']
within: 20m
";

#[test]
fn a_plan_names_candidates_exclusions_stages_and_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("needs.yaml"), REQUIREMENTS).unwrap();
    let text = call_in(folder.path(), &["choose", "needs.yaml", "--dry-run"]);
    assert_fits(&text);
    insta::assert_snapshot!("choose-plan", text);
}
