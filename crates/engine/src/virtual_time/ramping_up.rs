//! The ramp-up: together, all shards start connects at the plan's rate, however unequal they are.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::fleet::Fleet;
use pubmark_model::placement::Labels;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{ONE_TO_ONE, Simulation, plan};
use crate::plan::RunPlan;

/// Number of devices that connected before the schedule began, and the time of it, s.
fn ramp_of_devices(plan: RunPlan) -> (u64, f64) {
    let [_, ramp] = Simulation::of_plan(plan, |_| {}).run().outcome.ramps;
    (ramp.accepted, ramp.seconds().expect("devices connected"))
}

#[test]
fn devices_on_one_of_ten_nodes_connect_at_the_rate_of_the_whole_run() {
    let workload =
        format!("{}placement: {{device: site=edge}}\n", ONE_TO_ONE.replace("arrival:", "count: 20, arrival:"));
    let mut node_labels = vec![Labels::new(); 10];
    node_labels[3].insert("site".to_owned(), "edge".to_owned());
    let plan = plan(&workload, Duration::from_secs(1));
    let mut plan = RunPlan { connects_per_s: 1_000.0, nodes: 10, node_labels, ..plan };
    plan.fleet = Arc::new(Fleet::on_nodes(&plan.workload, plan.labels()));
    let (accepted, seconds) = ramp_of_devices(plan);
    assert_count_eq!(accepted, 20);
    assert!((0.019..0.020).contains(&seconds), "the last one starts after 19 ms: {seconds} s");
}

/// Together they take twice as long as an attempt may.
#[test]
fn no_attempt_ends_because_sessions_wait_for_an_adapter_that_connects_one_at_a_time() {
    let workload = ONE_TO_ONE.replace("arrival:", "count: 20, arrival:").replace("every: 10ms", "every: 1s");
    let simulation = Simulation::new(&workload, Duration::from_secs(25));
    simulation.broker.borrow_mut().accepts_after_ns = 1_000_000_000;
    simulation.broker.borrow_mut().connects_at_once = 1;
    let ended = simulation.run();
    let counters = &ended.outcome.counters;
    assert_count_eq!((counters.attempted, counters.established, counters.retried), (21, 21, 0));
    let longest_ms = ended.outcome.times.connect.max_ns() / 1_000_000;
    assert!(longest_ms < 1_100, "{longest_ms} ms contain the time of others");
}

#[test]
fn shards_of_unequal_groups_finish_together() {
    let workload = "
name: virtual
devices:
  - {name: many, count: 9, isolate: process, every: 100ms, payload: 100B, topic: 'v/{device}'}
  - {name: one, isolate: process, every: 100ms, payload: 100B, topic: 'v/{device}'}
subscribers:
  - {name: subscriber, filters: ['v/#']}
";
    let plan = RunPlan { connects_per_s: 1_000.0, ..plan(workload, Duration::from_secs(1)) };
    let (accepted, seconds) = ramp_of_devices(plan);
    assert_count_eq!(accepted, 10);
    assert!((0.0085..0.0095).contains(&seconds), "nine connects in 10 ms, one every 1.1 ms: {seconds} s");
}

#[test]
fn devices_that_begin_offline_take_nothing_from_the_rate_of_the_others() {
    let workload = "
name: virtual
devices:
  - name: absent
    count: 100
    isolate: process
    every: 100ms
    payload: 100B
    topic: 'v/{device}'
    churn: {disconnect: 60% every 1s, reconnect: 60% every 1s}
  - {name: present, count: 20, isolate: process, every: 100ms, payload: 100B, topic: 'v/{device}'}
subscribers:
  - {name: subscriber, filters: ['v/#']}
";
    let plan = RunPlan { connects_per_s: 2_000.0, ..plan(workload, Duration::from_secs(1)) };
    let (accepted, seconds) = ramp_of_devices(plan);
    assert_count!((21..120).contains(&accepted), "{accepted}");
    assert!(seconds < accepted as f64 / 2_000.0, "{accepted} devices in {seconds} s");
}
