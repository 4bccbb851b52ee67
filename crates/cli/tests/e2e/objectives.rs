//! Limits that a run has to meet: from the command line, from the workload, and judged again by `check`.

use serde_json::Value;

use crate::support::place::{Called, Place};
use crate::support::schema;

const LIMITED: &str = "\
name: limited
devices:
  - {name: sensor, count: 10, every: 50ms, payload: 100B, topic: 'limited/{index}'}
subscribers:
  - {name: all, filters: ['limited/#']}
objectives:
  - delivered >= 99%
  - max < 1h
";

const TIMES: [&str; 6] = ["--duration", "2s", "--warmup", "0s", "--out", "runs"];

/// The outcomes in a record, in order.
fn outcomes(record: &Value) -> Vec<&str> {
    record["objectives"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect()
}

/// Fails unless the call ended with this code, or 5: on a busy machine a run may be invalid, which has priority.
fn assert_code(called: &Called, code: i32) {
    assert!([code, 5].contains(&called.code()), "not {code}: {called:?}");
}

#[test]
fn limits_of_a_workload_are_judged_and_those_of_the_call_replace_them() {
    let place = Place::new();
    place.write("limited.yaml", LIMITED);
    let kept = place.call(&[&["run", "limited.yaml", "--json"][..], &TIMES].concat());
    assert_code(&kept, 0);
    let record = kept.json();
    schema::assert_agrees(&record);
    assert_eq!(outcomes(&record), ["passed", "passed"], "{}", record["objectives"]);
    assert_eq!(record["objectives"][1]["limit"], "max < 1h");
    let missed = place.call(&[&["run", "limited.yaml", "--json", "--slo", "rate>1000000/s"][..], &TIMES].concat());
    assert_code(&missed, 3);
    assert_eq!(outcomes(&missed.json()), ["missed"]);
    let spec = std::fs::read_to_string(place.runs().last().unwrap().0.join("run.yaml")).unwrap();
    assert!(spec.contains("objectives: rate>1000000/s"), "{spec}");
    let wrong = place.call(&["run", "limited.yaml", "--slo", "p98<1s"]);
    assert_eq!(wrong.code(), 2, "{wrong:?}");
    assert!(format!("{wrong:?}").contains("there is no figure `p98`"), "{wrong:?}");
}

#[test]
fn a_limit_inside_the_interval_is_undecided_until_the_caller_decides() {
    let place = Place::new();
    place.write("limited.yaml", LIMITED);
    let record = place.record(&[&["limited.yaml"][..], &TIMES[..4]].concat());
    let bound = |name: &str| record["latency"]["total"][name]["p50_us"].as_f64().unwrap();
    let middle_us = (bound("lower") + bound("upper")) / 2.0;
    assert!(bound("lower") < middle_us && middle_us < bound("upper"), "{}", record["latency"]["total"]);
    let folder = place.runs().remove(0).0;
    let check = |more: &[&str]| {
        let limit = format!("p50<{middle_us:.3}us");
        place.call(&[&["check", folder.to_str().unwrap(), "--require", &limit], more].concat())
    };
    assert_code(&check(&[]), 8);
    assert_code(&check(&["--undecided", "pass"]), 0);
    assert_code(&check(&["--undecided", "fail"]), 3);
}
