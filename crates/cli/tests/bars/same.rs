//! A/A: mosquitto compared with itself has no winner. Bar: at most 2 of 40 comparisons name a winner, by any figure;
//! `make test` makes three, and none may: in forty there was none.

use serde_json::Value;

use super::place::{Place, is_full, load, times, unjudged};

/// Two cells that differ only in their label.
const EXPERIMENT: &str = "\
name: same
title: mosquitto against itself
workload: pairs
set: {pairs: 20, rate: 75/s, payload: 100B}
duration: 1s
warmup: 300ms
repeat: 5
seed: SEED
quiet_machine: {below: 20%, within: 2s}
axes:
  system:
    - {label: one, system: mosquitto, profile: tuned}
    - {label: other, system: mosquitto, profile: tuned}
";

/// Figures by which an experiment names a winner.
fn winners(experiment: &Value) -> Vec<String> {
    let contests = experiment["contests"].as_array().unwrap();
    let named = contests.iter().filter(|contest| !contest["winner"].is_null());
    named.map(|contest| contest["figure"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_system_does_not_win_against_itself() {
    let place = Place::new();
    let (count, most) = (times(3, 40), times(0, 2));
    let mut named = 0;
    for number in 1..=count {
        let file = place.write("same.yaml", &EXPERIMENT.replace("SEED", &number.to_string()));
        let experiment = place.json(&["experiment", &file, "--json", "--quiet"]);
        let unjudged = unjudged(&experiment);
        if !unjudged.is_empty() {
            // A bar that was not measured is not met; a few cells on a noisy machine are not a failure of what is
            // tested.
            assert!(!is_full(), "too few runs counted: {unjudged:?}");
            pubmark_testing::skip(format_args!(
                "A/A {number} of {count}: too few runs counted on this machine: {unjudged:?}"
            ));
        }
        let found = winners(&experiment);
        // If every cell has its runs, something is judged: a bar without contests would always be met.
        assert!(!unjudged.is_empty() || !experiment["contests"].as_array().unwrap().is_empty(), "nothing was judged");
        eprintln!("A/A {number:>2} of {count}: winner by {found:?}, load {}", load());
        named += u32::from(!found.is_empty());
    }
    eprintln!("A/A: {named} of {count} comparisons of mosquitto with itself named a winner, at most {most} may");
    assert!(named <= most, "{named} of {count}");
}
