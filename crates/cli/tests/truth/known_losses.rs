//! Losses that are reported during a run: never more than the record has at the end, and including messages that the
//! broker dropped early enough.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::liar::{Liar, Truth};

/// A device that sends 20 messages a second for 6 s.
const WORKLOAD: &str = "
name: steady
devices:
  - {name: device, every: 50ms, payload: 100B, topic: steady/device, qos: 0}
subscribers:
  - {name: subscriber, filters: [steady/#], qos: 0}
";

/// A run with its events, and the losses in each line of progress.
fn run(script: &str) -> (Truth, Vec<u64>) {
    let liar = Liar::start(script);
    let (workload, events) = (liar.folder().join("workload.yaml"), liar.folder().join("events.jsonl"));
    std::fs::write(&workload, WORKLOAD).unwrap();
    let [workload, events] = [workload, events].map(|path| path.to_str().unwrap().to_owned());
    let arguments = [workload.as_str(), "--duration", "6s", "--warmup", "0s", "--events", &events];
    let output = liar.command(&arguments).output().unwrap();
    let text = std::fs::read_to_string(&events).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let progress = lines.filter(|line| line["event"] == "progress");
    let known = progress.map(|line| line["lost"].as_u64().unwrap_or_else(|| panic!("no losses in {line}"))).collect();
    let truth = liar.truth(&output);
    truth.demand_agreement();
    (truth, known)
}

#[test]
fn what_was_dropped_is_known_two_seconds_later_and_what_came_late_is_no_loss() {
    // Messages 10, 20, … 120 are dropped, 4 is overtaken by 5; the last one has nothing behind it.
    let (truth, known) = run("swap message=4\ndrop every=10 from=10");
    assert_count_eq!(truth.count("lost"), 12);
    assert!(known.is_sorted(), "{known:?}");
    assert_eq!(known.first(), Some(&0));
    // Those of the first three seconds at least, never what comes behind all others.
    let last = *known.last().unwrap();
    assert_count!((6..=11).contains(&last), "{known:?}");
}

#[test]
fn what_was_sent_into_an_absence_is_not_called_lost() {
    // The third connection and the next five are refused: for more than a second no subscriber receives from the
    // device.
    let (truth, known) = run("refuse-connect code=0x88 from=3 count=5\ncut-subscriber how=close message=30");
    assert_count!(truth.count("absent") > 5, "{}", truth.record["delivery"]);
    assert_count_eq!(truth.count("lost"), 0);
    assert!(known.iter().all(|lost| *lost == 0), "{known:?}");
}
