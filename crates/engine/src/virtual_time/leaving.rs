//! Devices that disconnect while their messages are in transit.

use std::time::Duration;

use pubmark_testing::assert_count_eq;

use super::{Ended, Simulation};
use crate::plan::QUIESCE_LIMIT;

const SOON: Duration = Duration::from_micros(100);

/// A device that disconnects after each message at a check and reconnects at the next one. Its broker accepts the
/// connection after the first of these times and acknowledges a message after the other.
fn run(accepted_after: Duration, acknowledged_after: Duration) -> Ended {
    let workload = "
name: virtual
devices:
  - name: device
    count: 5
    arrival: periodic
    every: 50ms
    payload: 100B
    topic: 'v/{device}'
    qos: 1
    churn: {disconnect: 60% every 1s, reconnect: 60% every 1s}
subscribers:
  - {name: subscriber, filters: ['v/#'], qos: 1}
";
    let simulation = Simulation::new(workload, Duration::from_secs(20));
    simulation.broker.borrow_mut().accepts_after_ns = accepted_after.as_nanos() as u64;
    simulation.broker.borrow_mut().acknowledges_after_ns = acknowledged_after.as_nanos() as u64;
    simulation.run()
}

#[test]
fn a_device_that_is_busy_leaves_when_its_messages_are_acknowledged() {
    let ended = run(SOON, Duration::from_millis(45));
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    assert!(ended.outcome.counters.planned_leaves > 10, "{}", ended.outcome.counters.planned_leaves);
    assert!(delivery.skipped_planned > 0);
    assert_count_eq!(broker.ended_before_acknowledged, 0, "nobody left before its messages were acknowledged");
    assert_count_eq!((delivery.unknown, delivery.lost, delivery.unsent), (0, 0, 0));
    assert_count_eq!((delivery.sent, delivery.delivered), (broker.published, broker.published));
    assert_count_eq!(delivery.offered, delivery.sent + delivery.skipped_planned);
}

#[test]
fn a_device_does_not_wait_longer_than_its_limit_for_acknowledgements() {
    let ended = run(SOON, QUIESCE_LIMIT * 3);
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    assert!(broker.ended_before_acknowledged > 0);
    // They were delivered, so the outcome of unacknowledged messages is known.
    assert_count_eq!((delivery.unknown, delivery.lost), (0, 0));
    assert_count_eq!(delivery.delivered, broker.published);
    assert_count_eq!(delivery.offered, delivery.sent + delivery.skipped_planned + delivery.unsent);
}

/// A system may have accepted a client that has not read the response yet. If its connection is cut then, the system
/// treats it as lost and publishes its will.
#[test]
fn a_device_due_to_leave_while_it_connects_disconnects_once_accepted() {
    let ended = run(Duration::from_millis(700), SOON);
    assert!(ended.outcome.counters.planned_leaves > 10, "{}", ended.outcome.counters.planned_leaves);
    assert_count_eq!(ended.broker.borrow().ended_without_disconnect, 0);
    let too_long = run(QUIESCE_LIMIT * 3, SOON);
    assert!(too_long.broker.borrow().ended_without_disconnect > 0, "nobody waits longer than the limit");
}
