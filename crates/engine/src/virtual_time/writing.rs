//! Clients that report writes in another order than that of the messages, or of messages that they withhold.

use std::time::Duration;

use pubmark_protocol::events::Reason;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{ONE_TO_ONE, Simulation};

/// The message whose write is reported after the refusal of the next one. It is never acknowledged.
const LATE: u32 = 5;

#[test]
fn a_message_that_is_written_and_refused_before_an_earlier_write_is_counted() {
    let simulation = Simulation::new(ONE_TO_ONE, Duration::from_secs(1));
    {
        let mut broker = simulation.broker.borrow_mut();
        broker.reports_written_after = Box::new(|sequence| if sequence == LATE { 15_000_000 } else { 0 });
        broker.acknowledges = Box::new(|sequence| match sequence {
            LATE => None,
            _ if sequence == LATE + 1 => Some(Err(Reason::words("full"))),
            _ => Some(Ok(())),
        });
    }
    let ended = simulation.run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    assert_count_eq!((delivery.offered, delivery.refused, delivery.sent), (broker.published, 1, broker.published - 1));
    assert_count_eq!((delivery.expected, delivery.delivered), (delivery.sent, delivery.sent));
    assert_count_eq!((delivery.lost, delivery.unknown, delivery.unsent), (0, 0, 0));
}

#[test]
fn what_may_be_the_generator_s_in_a_wait_for_the_window_is_in_the_upper_bound_only() {
    let workload = ONE_TO_ONE.replace("qos: 1}\nsubscribers", "qos: 1, in_flight_window: 1}\nsubscribers");
    let simulation = Simulation::new(&workload, Duration::from_secs(1));
    // A scripted client does not know since when its window was free, so all of a wait may be the generator's.
    simulation.broker.borrow_mut().acknowledges_after_ns = 15_000_000;
    let wait = simulation.run().outcome.times.backpressure;
    let [lower_ns, upper_ns] = [wait.lower.max_ns(), wait.upper.max_ns()];
    assert!(upper_ns >= 5_000_000 && lower_ns < upper_ns / 2, "{lower_ns} to {upper_ns} ns");
}

#[test]
fn what_a_client_holds_a_message_for_before_its_write_is_in_the_upper_bound_of_the_wait_only() {
    const HELD_NS: u64 = 50_000_000;
    let simulation = Simulation::new(&ONE_TO_ONE.replace("qos: 1", "qos: 0"), Duration::from_secs(1));
    simulation.broker.borrow_mut().holds_ns = HELD_NS;
    let wait = simulation.run().outcome.times.backpressure;
    let [lower_ns, upper_ns] = [wait.lower.max_ns(), wait.upper.max_ns()];
    assert!(upper_ns >= HELD_NS && lower_ns < HELD_NS / 50, "{lower_ns} to {upper_ns} ns");
}

#[test]
fn the_payload_of_a_withheld_message_was_not_published() {
    let simulation = Simulation::new(&ONE_TO_ONE.replace("qos: 1", "qos: 0"), Duration::from_secs(1));
    simulation.broker.borrow_mut().withholds = Box::new(|sequence| sequence % 2 == 0);
    let outcome = simulation.run().outcome;
    assert_count_eq!(outcome.counters.withheld, outcome.books.delivery.sent / 2);
    let published: u64 = outcome.traffic.iter().map(|group| group.published).sum();
    assert_count!((48..=51).contains(&published), "{published} of 100");
}
