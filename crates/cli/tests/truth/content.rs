//! Subscribers that filter by content, behind a broker that loses and repeats messages.

use pubmark_testing::assert_count_eq;

use crate::liar::{Liar, Truth};

/// Four numbered messages of one device; the subscriber wants those from the third on.
fn run(script: &str, qos: u8) -> Truth {
    let workload = format!(
        "name: content
devices:
  - {{name: d, qos: {qos}, arrival: {{trace: [0s, 100ms, 200ms, 300ms]}}, topic: content, body: {{json: '{{\"n\": {{{{counter}}}}}}'}}}}
subscribers:
  - {{name: s, filters: [content], qos: {qos}, where: payload.n >= 3}}
"
    );
    let arguments = ["--duration", "500ms", "--warmup", "0s", "--drain", "3s"];
    let truth = Liar::start(script).run_workload(&workload, &arguments);
    truth.demand_agreement();
    truth
}

/// Arrived, should match, matched, filtered, missed.
fn counts(truth: &Truth) -> [u64; 5] {
    let row = &truth.record["delivery"]["content"][0];
    ["arrived", "should_match", "matched", "filtered", "missed"].map(|name| row[name].as_u64().unwrap())
}

fn check(truth: &Truth) -> &str {
    let checks = truth.record["verdict"]["checks"].as_array().unwrap();
    checks.iter().find(|check| check["code"] == "V30").unwrap()["status"].as_str().unwrap()
}

#[test]
fn a_lost_message_counts_as_missed_only_if_it_would_have_matched() {
    for qos in 0..=1 {
        for (script, expected) in [
            ("", [4, 2, 2, 2, 0]),
            ("drop message=3", [3, 1, 1, 2, 1]),
            ("drop message=1", [3, 2, 2, 1, 0]),
            ("duplicate message=4", [4, 2, 2, 2, 0]),
            ("duplicate message=2", [4, 2, 2, 2, 0]),
        ] {
            let truth = run(script, qos);
            assert_count_eq!(counts(&truth), expected, "`{script}` at QoS {qos}");
            assert_eq!(check(&truth), "valid", "`{script}` at QoS {qos}");
        }
    }
}
