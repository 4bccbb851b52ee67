//! Requests that wait because as many as permitted are open.

use std::time::Duration;

use super::{SECOND_NS, Simulation};

const REQUESTS: &str = "
name: virtual
devices: []
subscribers: []
requesters:
  - {name: asks, rate: 100/s, payload: 100B, topic: 'q/{device}', qos: 1, timeout: 5s, in_flight: 1}
responders:
  - {name: answers, filters: ['q/+'], qos: 1}
";

/// The replies before, which nothing waited for, say nothing about the end of a wait that begins later.
#[test]
fn a_wait_for_a_slow_reply_is_the_systems_whatever_replies_came_before() {
    let simulation = Simulation::new(REQUESTS, Duration::from_secs(3));
    simulation.broker.borrow_mut().replies =
        Box::new(|sequence| Some(if sequence == 50 { SECOND_NS } else { 100_000 }));
    let ended = simulation.run();
    let backpressure = &ended.outcome.times.backpressure;
    assert!(backpressure.upper.max_ns() > 900_000_000, "{} ns", backpressure.upper.max_ns());
    assert!(backpressure.lower.max_ns() > 900_000_000, "{} ns", backpressure.lower.max_ns());
}

/// Replies carry the lag of their requests, which is in the waits of the requests behind them only once.
#[test]
fn a_stop_of_the_requester_is_pubmarks_once_in_the_waits_behind_it() {
    // The system carries half of the requests, so the waits grow.
    let simulation = Simulation::new(&REQUESTS.replace("100/s", "400/s"), Duration::from_secs(3));
    simulation.broker.borrow_mut().replies = Box::new(|_| Some(5_000_000));
    simulation.at(SECOND_NS as i64, |broker| broker.now_ns += 50_000_000);
    let ended = simulation.run();
    let backpressure = &ended.outcome.times.backpressure;
    let [lower_ns, upper_ns] = [backpressure.lower.max_ns(), backpressure.upper.max_ns()];
    assert!(upper_ns > SECOND_NS, "{upper_ns} ns");
    assert!((upper_ns - 200_000_000..upper_ns).contains(&lower_ns), "{lower_ns} ns of {upper_ns} ns");
}
