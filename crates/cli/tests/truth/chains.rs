//! Chains of reactions: which messages are triggered, which are not because the trigger was lost, and on which side of
//! the window they are.
//!
//! Four messages of one device at known times; a client reacts to each on another topic, and to that reaction on a
//! third. The client itself subscribes to all three.

use pubmark_testing::assert_count_eq;

use crate::liar::{Liar, Truth};

fn run(script: &str, qos: u8, think: &str, warmup: &str) -> Truth {
    let workload = format!(
        "name: chain
defaults: {{payload: 100B, qos: {qos}}}
devices:
  - {{name: root, arrival: {{trace: [0s, 500ms, 505ms, 1s]}}, topic: chain/root}}
  - {{name: answer, client: c, arrival: {{reaction_to: chain/root, think: {think}}}, topic: chain/answer}}
  - {{name: last, client: c, arrival: {{reaction_to: chain/+, think: {think}}}, topic: last/answer}}
subscribers:
  - {{name: c, client: c, filters: [chain/answer, last/answer, chain/root], qos: {qos}}}
"
    )
    .replace("reaction_to: chain/+", "reaction_to: chain/answer");
    let arguments = ["--duration", "1500ms", "--warmup", warmup, "--drain", "5s"];
    let truth = Liar::start(script).run_workload(&workload, &arguments);
    truth.demand_agreement();
    truth
}

fn reactions(truth: &Truth) -> [u64; 3] {
    ["scheduled", "triggered", "starved"].map(|name| truth.record["delivery"]["reactions"][name].as_u64().unwrap())
}

#[test]
fn every_delivery_triggers_once_at_every_level() {
    for qos in 0..=2 {
        let truth = run("", qos, "0s", "0s");
        assert_count_eq!(reactions(&truth), [4, 8, 0]);
        truth.demand_only(&[("offered", 12), ("sent", 12), ("expected", 12), ("delivered", 12)]);
    }
}

/// Each root triggers four messages, 50 ms apart.
fn bursts(script: &str, warmup: &str) -> Truth {
    let workload = "name: burst
defaults: {payload: 100B, qos: 0}
devices:
  - {name: root, arrival: {trace: [0s, 500ms, 505ms, 1s]}, topic: burst/root}
  - {name: siren, client: c, rate: 20/s, arrival: {reaction_to: burst/root, for: 200ms}, topic: burst/siren}
subscribers:
  - {name: c, client: c, filters: [burst/#]}
";
    let arguments = ["--duration", "1500ms", "--warmup", warmup, "--drain", "5s"];
    let truth = Liar::start(script).run_workload(workload, &arguments);
    truth.demand_agreement();
    truth
}

#[test]
fn a_trigger_makes_a_burst_of_messages_due_and_a_lost_one_starves_it() {
    let truth = bursts("", "0s");
    assert_count_eq!(reactions(&truth), [4, 16, 0]);
    truth.demand_only(&[("offered", 20), ("sent", 20), ("expected", 20), ("delivered", 20)]);
    // The last of a burst is due 150 ms after its trigger.
    let chain = truth.histogram("chain");
    assert_eq!(chain.len(), 16);
    assert!(chain.max() >= 150_000_000, "{} ns", chain.max());
    let truth = bursts("drop topic=burst/root message=2", "0s");
    assert_count_eq!(reactions(&truth), [4, 12, 4]);
    truth.demand_only(&[("offered", 16), ("sent", 16), ("expected", 16), ("delivered", 15), ("lost", 1)]);
}

#[test]
fn a_burst_belongs_to_the_window_of_its_trigger() {
    // Two roots fall into the warm-up; the burst of the last one ends after the window.
    let truth = bursts("", "502ms");
    assert_count_eq!(reactions(&truth), [2, 8, 0]);
    truth.demand_only(&[("offered", 10), ("sent", 10), ("expected", 10), ("delivered", 10)]);
}

#[test]
fn a_lost_root_starves_its_chain() {
    let truth = run("drop topic=chain/root message=2", 0, "0s", "0s");
    assert_count_eq!(reactions(&truth), [4, 6, 2]);
    truth.demand_only(&[("offered", 10), ("sent", 10), ("expected", 10), ("delivered", 9), ("lost", 1)]);
}

#[test]
fn a_lost_answer_starves_what_follows_it() {
    let truth = run("drop topic=chain/answer message=1", 1, "0s", "0s");
    assert_count_eq!(reactions(&truth), [4, 7, 1]);
    truth.demand_only(&[("offered", 11), ("sent", 11), ("expected", 11), ("delivered", 10), ("lost", 1)]);
}

#[test]
fn a_copy_triggers_nothing() {
    let truth = run("duplicate topic=chain/root message=3", 0, "0s", "0s");
    assert_count_eq!(reactions(&truth), [4, 8, 0]);
    truth.demand_only(&[("offered", 12), ("sent", 12), ("expected", 12), ("delivered", 12), ("duplicated", 1)]);
}

#[test]
fn a_chain_belongs_to_the_window_of_its_root() {
    // Two roots fall into the warm-up, and what follows from the third comes when the window is over.
    let truth = run("", 0, "600ms", "502ms");
    assert_count_eq!(reactions(&truth), [2, 4, 0]);
    truth.demand_only(&[("offered", 6), ("sent", 6), ("expected", 6), ("delivered", 6)]);
    let chain = truth.histogram("chain");
    assert_eq!(chain.len(), 4);
    // A histogram tells the lowest time of the bucket that its least one is in.
    let (least, most) = (chain.highest_equivalent(chain.min()), chain.max());
    assert!(least >= 600_000_000 && most >= 1_200_000_000, "{least} to {most} ns");
}
