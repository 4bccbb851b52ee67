//! Replies that arrive after the time-out of their requests.

use std::time::Duration;

use pubmark_testing::{assert_count, assert_count_eq};

use super::Simulation;

const REQUESTS: &str = "
name: virtual
devices: []
subscribers: []
requesters:
  - {name: asks, rate: 100/s, payload: 100B, topic: 'q/{device}', qos: 1, timeout: 500ms, in_flight: 100}
responders:
  - {name: answers, filters: ['q/+'], qos: 1}
";

#[test]
fn a_late_reply_is_no_answer_and_arrived_all_the_same() {
    let simulation = Simulation::new(REQUESTS, Duration::from_secs(2));
    simulation.broker.borrow_mut().replies = Box::new(|_| Some(600_000_000));
    let ended = simulation.run();
    let requests = ended.outcome.requests.as_ref().expect("requests");
    let figures = &requests.figures;
    assert_count!(figures.outcomes.late > 100);
    // Those to requests of the window's first 1.4 s.
    assert_count!(requests.replies_in_window >= 130);
    assert!(figures.answered_per_s.abs() < f64::EPSILON, "{}", figures.answered_per_s);
    let expected_per_s = requests.replies_in_window as f64 / 2.0;
    assert!(figures.replies_per_s.is_some_and(|per_s| (per_s - expected_per_s).abs() < 1e-6), "{figures:?}");
    assert_eq!(figures.outcomes.late_by_generator, 0, "the system took 600 ms");
    assert_eq!(figures.timeout_s, Some(0.5));
}

/// The requester's thread stands still over the end of the time-out and the reply, and then reads the reply first.
#[test]
fn a_reply_after_the_time_out_is_late_on_a_thread_that_finds_it_before_the_end_of_the_time_out() {
    let simulation = Simulation::new(REQUESTS, Duration::from_secs(2));
    simulation.broker.borrow_mut().replies = Box::new(|_| Some(600_000_000));
    simulation.at(1_000_000_000, |broker| broker.now_ns += 700_000_000);
    let ended = simulation.run();
    let figures = &ended.outcome.requests.as_ref().expect("requests").figures;
    assert_count_eq!(figures.outcomes.answered, 0, "each reply took 600 ms of 500");
    assert_count!(figures.outcomes.late > 100);
    assert!(figures.outcomes.close(), "{:?}", figures.outcomes);
    assert!(figures.round_trip.is_none(), "a late reply has no round trip");
    assert!(figures.answered_per_s.abs() < f64::EPSILON, "{}", figures.answered_per_s);
}
