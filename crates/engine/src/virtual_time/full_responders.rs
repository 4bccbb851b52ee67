//! Responders that drop requests because they are full.

use std::time::Duration;

use pubmark_record::requests::ResponseBooks;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{SECOND_NS, Simulation};

const STOP_NS: u64 = 50_000_000;

/// A responder that can work on 256 of 400 requests a second: it always works, and drops what finds one waiting.
const OVERLOADED: &str = "{name: answers, filters: ['q/+'], processing: 3900us, queue: 1}";
/// A responder that is idle nearly always. None may wait.
const IDLE: &str = "{name: answers, filters: ['q/+'], processing: 100us, queue: 0}";

/// A run of two seconds with 400 requests a second, which take 20 ms to the responder.
fn simulation(responder: &str) -> Simulation {
    let workload = format!(
        "
name: virtual
devices: []
subscribers: []
requesters:
  - {{name: asks, rate: 400/s, payload: 100B, topic: 'q/{{device}}', timeout: 100ms, in_flight: 1000}}
responders:
  - {responder}
"
    );
    let simulation = Simulation::new(&workload, Duration::from_secs(2));
    {
        let mut broker = simulation.broker.borrow_mut();
        broker.passes_requests = true;
        broker.copy_delays = Box::new(|_, _, _| vec![20_000_000]);
    }
    simulation
}

/// Counts of the responder.
fn responses(simulation: Simulation) -> ResponseBooks {
    let ended = simulation.run();
    let responses = ended.outcome.requests.as_ref().expect("requests").figures.responses;
    assert!(responses.close(), "{responses:?}");
    responses
}

#[test]
fn what_a_prompt_responder_drops_is_the_workloads() {
    let prompt = responses(simulation(OVERLOADED));
    assert_count!(prompt.dropped > 200, "{prompt:?}");
    assert_count_eq!(prompt.dropped_by_generator, 0, "{prompt:?}");
    assert_count_eq!(responses(simulation(IDLE)).dropped, 0);
}

/// As where a client library owns the sockets: each request may have arrived 5 ms before it was passed on.
#[test]
fn requests_of_an_unknown_time_of_arrival_do_not_make_all_drops_of_a_full_responder_pubmarks() {
    let simulation = simulation(OVERLOADED);
    simulation.broker.borrow_mut().read_late_ns = 5_000_000;
    let found = responses(simulation);
    assert_count!(found.dropped > 200 && found.dropped_by_generator <= 3, "{found:?}");
}

/// The eight requests in transit are read while work that was due is not finished: one of them may wait.
#[test]
fn what_a_responder_drops_while_due_work_is_not_finished_is_pubmarks() {
    let simulation = simulation(OVERLOADED);
    simulation.at(SECOND_NS as i64, |broker| broker.now_ns += STOP_NS);
    let late = responses(simulation);
    assert_count!((6..=8).contains(&late.dropped_by_generator), "{late:?}");
    assert_count!(late.dropped > 200, "{late:?}");
}

/// The eight requests in transit are read at once. Those that the requester sends at once after the stop are read in time.
#[test]
fn what_a_responder_drops_because_it_read_requests_together_is_pubmarks() {
    let simulation = simulation(IDLE);
    simulation.at(SECOND_NS as i64, |broker| {
        broker.now_ns += STOP_NS;
        broker.read_late_ns = STOP_NS;
    });
    simulation.at((SECOND_NS + STOP_NS) as i64 + 1, |broker| broker.read_late_ns = 0);
    let late = responses(simulation);
    assert_count!((6..=8).contains(&late.dropped_by_generator), "{late:?}");
    assert_count!(late.dropped > late.dropped_by_generator, "{late:?}");
}
