//! A subscriber with a processing time on a shard that notices the end of each message late.

use std::time::Duration;

use pubmark_model::pace::Pace;
use pubmark_testing::assert_count_eq;

use super::Simulation;
use crate::pacing::Pacing;

const MS: u64 = 1_000_000;

/// 100 messages that arrive at once, for a subscriber that takes 1 ms over each, on a shard that turns every 1.3 ms.
/// Returns the longest lower and upper bound of a latency, ns, without the latency of the first message: it waits for a
/// turn of the shard, which counts as the broker's time here.
fn longest(tells_waits: bool) -> [u64; 2] {
    let workload = "
name: virtual
devices:
  - {name: device, count: 100, every: 1s, phase: aligned, payload: 100B, topic: 'v/{device}'}
subscribers:
  - {name: subscriber, filters: ['v/#'], processing: 1ms}
";
    let simulation = Simulation::prepared(workload, Duration::from_millis(1_500), |setup| {
        if setup.publishers.is_empty() {
            setup.pacing = Pacing { pace: Pace::Quantum(Duration::from_micros(1_300)), at_most: Duration::ZERO };
        }
    });
    {
        let mut broker = simulation.broker.borrow_mut();
        broker.copy_delays = Box::new(|_, _, _| vec![1_000]);
        broker.tells_waits = tells_waits;
    }
    let outcome = simulation.run().outcome;
    assert_count_eq!((outcome.books.delivery.delivered, outcome.books.delivery.lost), (100, 0));
    let latency = &outcome.times.latency;
    let first_ns = latency.upper.min_ns();
    [latency.lower.max_ns(), latency.upper.max_ns()].map(|bound_ns| bound_ns.saturating_sub(first_ns))
}

/// When the last message begins after the first one: 99 messages take 1 ms each; within the precision of the histogram.
const LAST_BEGINS: std::ops::Range<u64> = 98 * MS..100 * MS;

#[test]
fn the_lateness_of_all_messages_before_is_in_the_interval_of_a_latency() {
    let [lower_ns, upper_ns] = longest(false);
    assert!(LAST_BEGINS.contains(&lower_ns), "{lower_ns} ns");
    assert!(upper_ns > 126 * MS, "0.3 ms late after each message: {upper_ns} ns");
}

#[test]
fn a_message_that_surely_waited_begins_when_the_one_before_it_should_have_ended() {
    let [lower_ns, upper_ns] = longest(true);
    assert!(LAST_BEGINS.contains(&lower_ns), "{lower_ns} ns");
    assert!(upper_ns < 101 * MS, "late by one turn at most: {upper_ns} ns");
}

#[test]
fn a_session_has_the_processing_time_of_its_group() {
    let found = std::cell::RefCell::new(vec![]);
    let workload = "
name: virtual
devices:
  - {name: device, count: 1, every: 1s, payload: 100B, topic: 'v/{device}'}
subscribers:
  - {name: subscriber, filters: ['v/#'], processing: 1ms}
";
    Simulation::prepared(workload, Duration::from_secs(1), |setup| {
        found.borrow_mut().extend(setup.sessions.iter().map(|session| session.config.options.processing));
    });
    assert!(found.borrow().contains(&Duration::from_millis(1)), "{found:?}");
}
