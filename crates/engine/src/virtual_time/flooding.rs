//! Devices that flood, and disconnect and reconnect by plan.

use std::time::Duration;

use pubmark_model::fleet::Device;
use pubmark_model::schedule::{ChurnCursor, Rules};
use pubmark_testing::assert_count_eq;

use super::Simulation;

#[test]
fn a_flooding_device_that_begins_offline_sends_once_it_has_joined() {
    let workload = "
name: virtual
devices:
  - name: device
    count: 8
    arrival: flood
    payload: 100B
    topic: 'v/{device}'
    qos: 1
    in_flight_window: 1
    churn: {disconnect: 60% every 1s, reconnect: 60% every 1s}
subscribers:
  - {name: subscriber, filters: ['v/#'], qos: 1}
";
    let simulation = Simulation::new(workload, Duration::from_secs(10));
    simulation.broker.borrow_mut().acknowledges_after_ns = 10_000_000;
    let plan = simulation.plan.clone();
    let rules = Rules::all(&plan.workload, plan.seed, &plan.timeline);
    let begins_offline = |device: &&Device| !ChurnCursor::new(&rules[0], device).online_at_start();
    let offline: Vec<u32> = plan.fleet.devices().iter().filter(begins_offline).map(|device| device.publisher).collect();
    assert!(!offline.is_empty());
    // A flood that waits for the window lets no virtual time pass, so the schedule begins with the window.
    let ended = simulation.run_begun_at(0);
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    for publisher in offline {
        let sent = broker.journal.iter().filter(|copy| copy.publisher == publisher).count();
        assert!(sent > 10, "publisher {publisher} sent {sent} messages");
    }
    assert!(ended.outcome.counters.planned_leaves > 5, "{}", ended.outcome.counters.planned_leaves);
    assert_count_eq!(delivery.skipped_planned, 0);
    assert_count_eq!((delivery.offered, delivery.delivered, delivery.unknown), (delivery.sent, delivery.sent, 0));
    assert_count_eq!(broker.ended_before_acknowledged, 0);
}
