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

/// The eight requests in transit are read while work that was due is not finished: one of them may wait. The twenty that became due
/// during the stop are sent together: the responder could have worked on thirteen of them.
#[test]
fn what_a_responder_drops_while_due_work_is_not_finished_is_pubmarks() {
    let simulation = simulation(OVERLOADED);
    simulation.at(SECOND_NS as i64, |broker| broker.now_ns += STOP_NS);
    let late = responses(simulation);
    assert_count!((18..=23).contains(&late.dropped_by_generator), "{late:?}");
    assert_count!(late.dropped > 200, "{late:?}");
}

/// The eight requests in transit are read at once.
#[test]
fn what_a_responder_drops_because_it_read_requests_together_is_pubmarks() {
    let simulation = simulation(IDLE);
    simulation.at(SECOND_NS as i64, |broker| {
        broker.now_ns += STOP_NS;
        broker.read_late_ns = STOP_NS;
    });
    simulation.at((SECOND_NS + STOP_NS) as i64 + 1, |broker| broker.read_late_ns = 0);
    let late = responses(simulation);
    assert_count!((24..=28).contains(&late.dropped), "{late:?}");
    assert_count_eq!(late.dropped_by_generator, late.dropped, "{late:?}");
}

/// The responder reads each request at once, but twenty come together.
#[test]
fn what_a_responder_drops_because_its_requester_was_late_is_pubmarks() {
    let simulation = simulation(IDLE);
    simulation.broker.borrow_mut().copy_delays = Box::new(|_, _, _| vec![200_000]);
    simulation.at(SECOND_NS as i64, |broker| broker.now_ns += STOP_NS);
    let late = responses(simulation);
    assert_count!((18..=20).contains(&late.dropped), "{late:?}");
    assert_count_eq!(late.dropped_by_generator, late.dropped, "{late:?}");
}

/// The system accepts no replies for 50 ms. Pubmark stands still at the end of that, or not.
#[test]
fn what_a_responder_drops_after_the_end_of_the_back_pressure_is_pubmarks() {
    for stop_ns in [0, STOP_NS] {
        let simulation = simulation(IDLE);
        simulation.at(SECOND_NS as i64, |broker| broker.blocks_replies = true);
        simulation.at((SECOND_NS + STOP_NS) as i64, move |broker| {
            (broker.blocks_replies, broker.replies_free_since_ns) = (false, Some(broker.now_ns));
            broker.now_ns += stop_ns;
        });
        let found = responses(simulation);
        let by_system = found.dropped - found.dropped_by_generator;
        assert_count!((18..=20).contains(&by_system), "{found:?}");
        // Those in transit, and those that were sent together.
        let by_pubmark = if stop_ns > 0 { 25..=29 } else { 0..=0 };
        assert_count!(by_pubmark.contains(&found.dropped_by_generator), "{found:?}");
    }
}
