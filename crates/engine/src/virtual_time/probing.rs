//! Probes before the schedule: they show which pairs discovered each other, and change no count of messages.

use std::time::Duration;

use pubmark_testing::assert_count_eq;

use super::{Ended, Simulation, plan};
use crate::probes;

/// Acknowledgements of probes arrive after the schedule has begun.
const LATE: Duration = Duration::from_millis(450);

fn run(has_probes: bool, qos: u8, processing: &str) -> Ended {
    let workload = format!(
        "
name: virtual
devices:
  - {{name: device, count: 3, arrival: periodic, every: 7ms, payload: 100B, topic: 'v/{{device}}', qos: {qos}}}
  - name: away
    count: 2
    arrival: periodic
    every: 7ms
    payload: 16B
    topic: 'v/{{device}}'
    qos: 0
    churn: {{disconnect: 60% every 1s, reconnect: 60% every 1s}}
subscribers:
  - {{name: subscriber, count: 4, filters: ['v/#'], qos: {qos}, processing: {processing}}}
"
    );
    let mut plan = plan(&workload, Duration::from_secs(2));
    plan.probes = has_probes;
    assert_eq!(probes::pairs(&plan), 12, "of devices that stay");
    let simulation = Simulation::of_plan(plan, |_| {});
    simulation.broker.borrow_mut().acknowledges_after_ns = LATE.as_nanos() as u64;
    simulation.run()
}

#[test]
fn probes_find_the_reached_pairs_and_are_not_counted() {
    for qos in [0, 1] {
        let (with, without) = (run(true, qos, "0s"), run(false, qos, "0s"));
        assert_count_eq!((with.reached, without.reached), (12, 0), "QoS {qos}");
        let [delivery, plain] = [&with, &without].map(|ended| ended.outcome.books.delivery);
        assert_count_eq!(delivery, plain, "QoS {qos}");
        assert_count_eq!((delivery.foreign, delivery.unknown, delivery.lost), (0, 0, 0), "QoS {qos}");
        assert!(with.broker.borrow().published > without.broker.borrow().published, "probes were published");
    }
}

#[test]
fn a_subscriber_takes_no_time_over_a_probe() {
    let ended = run(true, 0, "10s");
    assert_count_eq!(ended.reached, 12);
    // The last probe arrived 230 ms after the start; a subscriber at work is not quiet.
    assert!(ended.quiet_ns >= 150_000_000, "{}", ended.quiet_ns);
}
