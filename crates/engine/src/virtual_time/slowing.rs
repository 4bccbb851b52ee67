//! Devices that send less after they received a message: which messages they leave out.

use std::time::Duration;

use proptest::prelude::*;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{Ended, SECOND_NS, Simulation, window_ns};

/// Publisher numbers.
const BOSS: u32 = 0;
const METER: u32 = 1;
const INTERVAL_NS: u64 = 100_000_000;

/// A boss that sends at these times, and a meter that sends every 100 ms, less after it received something from the boss.
fn simulation(times_ms: &[u64], pace: &str, length_ms: u64) -> Simulation {
    Simulation::new(&workload(times_ms, 100, pace, length_ms), Duration::from_secs(10))
}

fn workload(times_ms: &[u64], every_ms: u64, pace: &str, length_ms: u64) -> String {
    let times: Vec<String> = times_ms.iter().map(|time| format!("{time}ms")).collect();
    let times = times.join(", ");
    format!(
        "
name: virtual
devices:
  - {{name: boss, arrival: {{trace: [{times}]}}, payload: 40B, topic: busy}}
  - name: meter
    client: meter
    every: {every_ms}ms
    phase: aligned
    payload: 80B
    topic: readings
    qos: 1
    in_flight_window: 1
    when: {{receives: busy, {pace}, for: {length_ms}ms}}
subscribers:
  - {{name: meter, client: meter, filters: [busy]}}
  - {{name: centre, filters: [readings], qos: 1}}
"
    )
}

/// Due times of the meter's messages that were sent, ns relative to the window.
fn sent(ended: &Ended) -> Vec<u64> {
    let broker = ended.broker.borrow();
    broker.journal.iter().filter(|copy| copy.publisher == METER).map(|copy| copy.due_ns - window_ns()).collect()
}

/// Those that a device sends that received something at these times and then sends at most every `interval_ns`.
fn expected(received_ns: &[u64], interval_ns: u64, length_ns: u64) -> Vec<u64> {
    let is_slow = |due_ns: u64| received_ns.iter().any(|at_ns| (*at_ns..at_ns + length_ns).contains(&due_ns));
    let mut sent: Vec<u64> = vec![];
    for due_ns in (INTERVAL_NS..10 * SECOND_NS).step_by(INTERVAL_NS as usize) {
        let is_early = sent.last().is_some_and(|last_ns| due_ns - last_ns < interval_ns);
        if !(is_slow(due_ns) && is_early) {
            sent.push(due_ns);
        }
    }
    sent
}

fn assert_agrees(ended: &Ended, interval_ns: u64, length_ns: u64) {
    let received: Vec<u64> = {
        let broker = ended.broker.borrow();
        let copies = broker.journal.iter().filter(|copy| copy.publisher == BOSS);
        copies.filter_map(|copy| copy.at_ns).map(|at_ns| at_ns - window_ns()).collect()
    };
    let expected = expected(&received, interval_ns, length_ns);
    let due = 10 * SECOND_NS / INTERVAL_NS - 1;
    let slowed = due - expected.len() as u64;
    let delivery = &ended.outcome.books.delivery;
    assert_eq!(sent(ended), expected, "received at {received:?}");
    assert_count_eq!((delivery.slowed, delivery.skipped_planned, delivery.unsent), (slowed, slowed, 0));
    assert_count_eq!(delivery.offered, delivery.sent + delivery.skipped_planned);
    assert_count_eq!(delivery.lost, 0);
}

#[test]
fn a_device_sends_less_for_a_time_and_its_due_times_stay_offered() {
    let run = |pace: &str| {
        let simulation = simulation(&[2_000], pace, 3_000);
        simulation.broker.borrow_mut().copy_delays = Box::new(|_, _, _| vec![1_000]);
        simulation.run()
    };
    let half = run("rate: 2/s");
    // Of 2.1, 2.2 … 5.0 s only 2.5, 3.0 … 5.0 s.
    assert_count_eq!(half.outcome.books.delivery.slowed, 24);
    assert_agrees(&half, SECOND_NS / 2, 3 * SECOND_NS);
    let silent = run("rate: 0/s");
    assert_count_eq!(silent.outcome.books.delivery.slowed, 30);
    assert_agrees(&silent, u64::MAX, 3 * SECOND_NS);
}

#[test]
fn a_device_that_missed_the_message_sends_on() {
    let simulation = simulation(&[2_000], "rate: 0/s", 3_000);
    simulation.broker.borrow_mut().copy_delays =
        Box::new(|publisher, _, _| if publisher == BOSS { vec![] } else { vec![1_000] });
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!((delivery.slowed, delivery.lost, sent(&ended).len()), (0, 1, 99));
}

/// A meter that sends every 10 ms waits from 1.5 s on for an acknowledgement that never comes. Its thread may stand still from
/// 5.5 s to the end of the run.
#[test]
fn what_a_slowed_device_leaves_out_of_the_messages_that_wait_at_the_end_follows_from_their_due_times() {
    let run = |stands_still: bool| {
        let workload = workload(&[2_000], 10, "rate: 2/s", 3_000);
        let mut simulation = Simulation::new(&workload, Duration::from_secs(10));
        simulation.ends_behind = stands_still;
        simulation.broker.borrow_mut().acknowledges = Box::new(|sequence| (sequence < 150).then_some(Ok(())));
        if stands_still {
            // Longer than the drain: most messages that became due meanwhile are never reached.
            simulation.at(5_500_000_000, |broker| broker.now_ns += 30 * SECOND_NS);
        }
        let delivery = simulation.run().outcome.books.delivery;
        assert_count_eq!(delivery.offered, delivery.sent + delivery.skipped_planned + delivery.unsent);
        (delivery.unsent, delivery.slowed)
    };
    let (unsent, slowed) = run(false);
    assert_count!(unsent > 500 && slowed > 200, "{unsent} unsent, {slowed} slowed");
    assert_count_eq!(run(true), (unsent, slowed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the system's pace: messages that wait are judged by the time at which they were due.
    #[test]
    fn what_is_left_out_follows_from_what_was_received_and_when(
        times in proptest::collection::btree_set(0u64..9_000, 0..6),
        (interval_ms, length_ms) in (101u64..2_000, 1u64..4_000),
        // The longest waits end within the drain.
        (delay_ns, answer_ns) in (1_000u64..500_000_000, 1_000u64..190_000_000),
    ) {
        let times: Vec<u64> = times.into_iter().chain([9_500]).collect();
        let simulation = simulation(&times, &format!("every: {interval_ms}ms"), length_ms);
        {
            let mut broker = simulation.broker.borrow_mut();
            broker.acknowledges_after_ns = answer_ns;
            broker.copy_delays = Box::new(move |publisher, _, _| vec![if publisher == BOSS { delay_ns } else { 1_000 }]);
        }
        let ended = simulation.run();
        assert_agrees(&ended, interval_ms * 1_000_000, length_ms * 1_000_000);
    }
}
