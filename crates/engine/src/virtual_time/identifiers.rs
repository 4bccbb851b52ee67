//! Sequence numbers that reach their maximum.

use std::time::Duration;

use pubmark_testing::assert_count_eq;

use super::Simulation;

const WORKLOAD: &str = "
name: virtual
devices:
  - {name: device, arrival: periodic, every: 10ms, payload: 100B, topic: 'v/{device}', qos: 1}
subscribers:
  - {name: subscriber, filters: ['v/#'], qos: 1}
";

#[test]
fn a_publisher_that_has_used_its_last_number_sends_nothing_more() {
    let simulation = Simulation::prepared(WORKLOAD, Duration::from_secs(1), |setup| {
        setup.publishers.iter_mut().for_each(|publisher| publisher.next_sequence = u32::MAX - 30);
    });
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!((delivery.offered, delivery.sent, delivery.unsent), (100, 30, 70));
    assert_count_eq!((delivery.expected, delivery.delivered, delivery.lost), (30, 30, 0));
}

#[test]
fn a_window_that_is_never_acknowledged_fills_and_the_rest_waits() {
    let workload = WORKLOAD.replace("qos: 1}\nsubscribers", "qos: 1, in_flight_window: 20}\nsubscribers");
    let simulation = Simulation::new(&workload, Duration::from_secs(1));
    simulation.broker.borrow_mut().acknowledges = Box::new(|_| None);
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!((delivery.offered, delivery.sent, delivery.unsent), (100, 20, 80));
    assert_count_eq!((delivery.delivered, delivery.unknown, delivery.lost), (20, 0, 0));
}
