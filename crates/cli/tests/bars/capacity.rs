//! Capacity: a broker that accepts 5,000 messages a second is measured at 5,000 ± 5 %, within 90 s; a generator that is
//! throttled to 3,000 a second is reported as the limit.

use std::time::{Duration, Instant};

use super::place::{Place, load, times};

/// The built-in broker with a known capacity.
const CAPPED: &str = "\
name: capped
title: broker of known capacity
description: the built-in broker, which takes 5,000 messages a second
ranked: false
listeners:
  mqtt: {scheme: mqtt}
protocols:
  mqtt5: {listener: mqtt, highest_qos: 2, retain: true, persistent_sessions: true}
back_ends:
  process:
    program: \"{self}\"
    install: this program
    arguments:
      - add: [broker, --listen, \"{host}:{port:mqtt}\", --at-most, \"5000\"]
profiles:
  default:
    description: as it comes
";

/// 1,200 messages a second, the load from which the search doubles.
const LOAD: [&str; 6] = ["--set", "pairs=20", "--set", "rate=60/s", "--set", "payload=100B"];
/// Longest duration of a search.
const LIMIT: Duration = Duration::from_secs(90);

#[test]
fn a_known_capacity_is_found() {
    let place = Place::new();
    let file = place.write("capped.yaml", CAPPED);
    let count = times(1, 10);
    let mut right = 0;
    for number in 1..=count {
        let began = Instant::now();
        let seed = number.to_string();
        let arguments = ["capacity", "pairs", "--system", &file, "--slo", "p99<50ms,loss=0", "--seed", &seed];
        let found = place.json(&[&arguments[..], &LOAD, &["--json", "--quiet"]].concat());
        let took = began.elapsed();
        let holds = found["result"]["holds_per_s"].as_f64().unwrap_or(0.0);
        let limit = found["result"]["limit"].as_str().unwrap_or("—").to_owned();
        let trials = found["trials"].as_array().unwrap().len();
        eprintln!(
            "capacity {number:>2} of {count}: {holds:.0} msg/s, limit {limit}, {trials} trials in {:.0} s, load {}",
            took.as_secs_f64(),
            load()
        );
        let is_right = (4_750.0..=5_250.0).contains(&holds) && limit == "system" && took <= LIMIT;
        if !is_right {
            found["trials"].as_array().unwrap().iter().for_each(|trial| eprintln!("  {}", trial_line(trial)));
        }
        right += u32::from(is_right);
    }
    eprintln!("capacity: {right} of {count} searches found 5,000 ± 5 % within {} s", LIMIT.as_secs());
    assert_eq!(right, count);
}

fn trial_line(trial: &serde_json::Value) -> String {
    format!("{}/s {}: {}", trial["offered_per_s"], trial["outcome"], trial["reason"])
}

#[test]
fn a_slow_generator_is_called_the_limit() {
    let place = Place::new();
    // Each send lasts a third of a millisecond: 3,000 a second.
    let arguments = ["capacity", "pairs", "--system", "builtin", "--handicap", "333us", "--most", "200"];
    let found = place.json(&[&arguments[..], &LOAD, &["--json", "--quiet"]].concat());
    let limit = found["result"]["limit"].as_str().unwrap_or("—");
    let holds = found["result"]["holds_per_s"].as_f64().unwrap_or(0.0);
    eprintln!("slow generator: limit {limit} above {holds:.0} msg/s: {}", found["result"]["text"]);
    assert_eq!(limit, "generator", "{}", found["result"]);
    // Never more than the generator can send; how much less depends on the machine, too.
    assert!((1_000.0..=3_150.0).contains(&holds), "{}", found["result"]);
}
