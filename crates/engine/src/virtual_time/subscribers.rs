//! Subscribers that come and go while devices send.

use std::time::Duration;

use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;

use super::Simulation;

const MS: i64 = 1_000_000;

fn workload(session: &str, qos: u8) -> String {
    format!(
        "
name: virtual
devices:
  - {{name: device, count: 3, arrival: periodic, every: 7ms, payload: 100B, topic: 'v/{{device}}', qos: {qos}}}
subscribers:
  - {{name: subscriber, filters: ['v/#'], qos: {qos}, session: {session}}}
"
    )
}

fn flapping(session: &str, qos: u8) -> Simulation {
    let simulation = Simulation::new(&workload(session, qos), Duration::from_secs(3));
    // Never at a moment when a device sends, and again before it is back from the last time.
    for at_ms in [203, 407, 1_001, 1_022, 1_777] {
        simulation.at(at_ms * MS + 12_345, |broker| broker.cut("s0"));
    }
    simulation
}

#[test]
fn a_flapping_subscriber_with_a_clean_session_misses_what_was_sent_while_it_was_away() {
    let ended = flapping("clean", 0).run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    let heard = broker.journal.len() as u64;
    assert!(delivery.absent > 20 && broker.cuts >= 4, "{delivery:?}, {} cuts", broker.cuts);
    assert_count_eq!(delivery.sent, broker.published);
    assert_count_eq!((delivery.absent, delivery.expected), (broker.published - heard, heard));
    assert_count_eq!(delivery.lost, broker.overtaken, "what was on its way when the connection was cut");
    assert_count_eq!(delivery.delivered, heard - broker.overtaken);
    assert_count_eq!(ended.outcome.counters.dropped, broker.cuts);
}

#[test]
fn a_broker_that_keeps_nothing_for_a_persistent_session_loses_it() {
    let ended = flapping("persistent", 1).run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    let never = broker.journal.iter().filter(|copy| copy.at_ns.is_none()).count() as u64;
    assert!(never > 20, "{never}");
    assert_count_eq!((delivery.absent, delivery.expected), (0, delivery.sent), "the session is there all the time");
    assert_count_eq!(delivery.lost, never + broker.overtaken);
}

#[test]
fn a_filter_that_is_refused_expects_nothing_and_the_other_one_goes_on() {
    let workload = workload("clean", 0).replace("['v/#']", "['v/+', 'w/#']");
    let simulation = Simulation::new(&workload, Duration::from_secs(1));
    simulation.broker.borrow_mut().grants =
        Box::new(|filter| if filter == "v/+" { Err(Reason::code(0x87, "not authorized")) } else { Ok(()) });
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!((delivery.expected, delivery.delivered, delivery.absent), (0, 0, delivery.sent));
    assert_count_eq!(ended.outcome.counters.subscriptions_refused, 1);
}

#[test]
fn a_schedule_that_is_begun_late_offers_what_was_due_before_and_its_lag_is_ours() {
    let ended = Simulation::new(&workload("clean", 0), Duration::from_secs(1)).run_begun_at(300 * MS);
    let delivery = &ended.outcome.books.delivery;
    let due_in_a_second = 3 * 1_000 / 7;
    assert!(delivery.offered.abs_diff(due_in_a_second) <= 3, "{delivery:?}");
    assert_count_eq!((delivery.sent, delivery.delivered), (delivery.offered, delivery.offered));
    let lag = &ended.outcome.times.scheduler_lag;
    let late = lag.count_above(0);
    assert!((295_000_000..=301_000_000).contains(&lag.max_ns()), "{}", lag.max_ns());
    assert!(late.abs_diff(due_in_a_second * 3 / 10) <= 3, "{late} of them were late");
}
