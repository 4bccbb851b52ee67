//! Order: mosquitto limited to a fifth of a core is judged worse than unlimited mosquitto at the same load. Bar: 10 of
//! 10.
//!
//! Worse means a longer latency, by the median or the 99th percentile: on a machine where a stall of the generator can
//! make the unlimited p99 as long as the limited one, the median still shows the difference, and neither may show the
//! contrary.

use super::place::{Place, is_full, load};

/// A load for which mosquitto at once needs more than a fifth of a core.
const EXPERIMENT: &str = "\
name: order
title: mosquitto limited and not
workload: pairs
set: {pairs: 50, rate: 200/s, payload: 100B}
duration: 1500ms
warmup: 500ms
drain: 2s
repeat: 8
seed: SEED
quiet_machine: {below: 20%, within: 3s}
axes:
  system: [{label: mosquitto, system: mosquitto, profile: tuned}]
  limit: [none, cpu=0.2]
";

#[test]
fn a_limited_system_is_found_worse() {
    if !is_full() {
        return pubmark_testing::skip("a minute and a half for one judgement; `make bars` makes ten");
    }
    if !can_limit() {
        return pubmark_testing::skip("this process may not make control groups, so CPU time cannot be limited");
    }
    let place = Place::new();
    let count = 10;
    let mut right = 0;
    for number in 1..=count {
        let file = place.write("order.yaml", &EXPERIMENT.replace("SEED", &number.to_string()));
        let experiment = place.json(&["experiment", &file, "--json", "--quiet"]);
        let contests = experiment["contests"].as_array().unwrap();
        let winner_by = |figure: &str| {
            let mut of_limits = contests.iter().filter(|contest| contest["axis"] == "limit");
            of_limits.find(|contest| contest["figure"] == figure).and_then(|contest| contest["winner"].as_str())
        };
        let by_latency: Vec<Option<&str>> = ["latency p50", "latency p99"].map(winner_by).to_vec();
        let unlimited = experiment["cells"].as_array().unwrap().iter().find(|cell| cell["settings"]["limit"] == "none");
        let unlimited = unlimited.and_then(|cell| cell["id"].as_str()).unwrap();
        let mut named = by_latency.iter().flatten().peekable();
        let is_right = named.peek().is_some() && named.all(|winner| *winner == unlimited);
        eprintln!("order {number:>2} of {count}: better p50 and p99 of {by_latency:?}, load {}", load());
        right += u32::from(is_right);
    }
    eprintln!("order: {right} of {count} times the limited mosquitto was found worse");
    assert_eq!(right, count);
}

/// The same check as in pubmark: whether this process may make a control group with a quota.
fn can_limit() -> bool {
    let place = Place::new();
    let run = ["run", "hello", "--system", "mosquitto", "--limit", "cpu=0.5", "--duration", "100ms", "--warmup", "0s"];
    let output = place.command(&run).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    output.status.code() != Some(2) || !errors.contains("cgroup") && !errors.contains("control group")
}
