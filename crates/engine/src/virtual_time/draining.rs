//! The drain: when it ends, and what counts in it.

use std::time::Duration;

use pubmark_protocol::events::Reason;
use pubmark_testing::{assert_count, assert_count_eq};

use super::{ONE_TO_ONE, SECOND_NS, Simulation, plan, window_ns};
use crate::plan::{Networks, RunPlan};
use crate::progress::Totals;
use crate::sections;

#[test]
fn deliveries_of_refused_messages_do_not_stand_for_those_that_are_still_missing() {
    let workload = ONE_TO_ONE.replace("name: subscriber", "name: subscriber, count: 2");
    let simulation = Simulation::new(&workload, Duration::from_secs(1));
    {
        let mut broker = simulation.broker.borrow_mut();
        let refusal = Reason::code(0x97, "quota exceeded");
        broker.acknowledges =
            Box::new(move |sequence| Some(if sequence % 2 == 0 { Err(refusal.clone()) } else { Ok(()) }));
        broker.delivers_refused = true;
        // One subscriber receives everything at once, the other one after a second.
        broker.copy_delays = Box::new(|_, _, (_, session)| vec![if session.0 == 0 { 100_000 } else { 1_000_000_000 }]);
    }
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert!(delivery.refused > 40, "{delivery:?}");
    assert_count_eq!((delivery.lost, delivery.delivered), (0, 2 * delivery.sent));
    assert_count_eq!(delivery.delivered_after_refusal, 2 * delivery.refused);
}

#[test]
fn messages_without_acknowledgement_that_arrived_do_not_lengthen_the_drain() {
    let simulation = Simulation::new(ONE_TO_ONE, Duration::from_secs(1));
    simulation.broker.borrow_mut().acknowledges = Box::new(|sequence| (sequence != 10).then_some(Ok(())));
    simulation.at(500_000_000, |broker| broker.cut("p0"));
    let ended = simulation.run();
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!(ended.outcome.counters.dropped, 1);
    assert_count_eq!((delivery.lost, delivery.unknown, delivery.delivered), (0, 0, delivery.sent));
    assert!(ended.at_ns < window_ns() + 2 * SECOND_NS, "{} ns after the window", ended.at_ns - window_ns() - SECOND_NS);
}

#[test]
fn messages_written_in_the_drain_do_not_count_for_the_rate_of_the_window() {
    let workload = ONE_TO_ONE
        .replace("every: 10ms", "every: 1ms")
        .replace("qos: 1}\nsubscribers", "qos: 1, in_flight_window: 1}\nsubscribers");
    let simulation = Simulation::new(&workload, Duration::from_secs(1));
    simulation.broker.borrow_mut().acknowledges_after_ns = 2_000_000;
    let outcome = simulation.run().outcome;
    let (delivery, rates) = (&outcome.books.delivery, sections::throughput(&outcome));
    assert_count!(
        delivery.offered >= 999 && delivery.sent == delivery.offered,
        "the drain completes them: {delivery:?}"
    );
    assert!((300.0..=510.0).contains(&rates.sent_per_s), "{rates:?}");
    assert!((300.0..=510.0).contains(&rates.delivered_per_s), "{rates:?}");
}

/// Number of late messages, if a reaction to a message takes this long to arrive. It is due 3 s after the message.
fn late_reactions(after_ns: u64) -> u64 {
    let workload = "
name: virtual
devices:
  - {name: root, arrival: {trace: [100ms, 500ms]}, payload: 100B, topic: chain/root}
  - {name: answer, client: c, arrival: {reaction_to: chain/root, think: 3s}, payload: 100B, topic: chain/answer}
subscribers:
  - {name: c, client: c, filters: [chain/root, chain/answer]}
";
    let simulation = Simulation::new(workload, Duration::from_secs(1));
    simulation.broker.borrow_mut().copy_delays =
        Box::new(move |publisher, _, _| vec![if publisher == 0 { 100_000 } else { after_ns }]);
    let delivery = simulation.run().outcome.books.delivery;
    assert_count_eq!((delivery.sent, delivery.delivered), (4, 4));
    delivery.late
}

#[test]
fn a_reaction_that_is_due_after_the_window_is_late_two_seconds_after_its_due_time() {
    assert_count_eq!([late_reactions(1_900_000_000), late_reactions(2_100_000_000)], [0, 2]);
}

#[test]
fn sums_show_that_all_arrived_only_if_every_delivery_is_an_expected_one() {
    let filtered = |place: &str| {
        let workload = r#"
name: virtual
devices:
  - {name: hall/sensor, every: 1s, topic: 'hall/{device}', body: {json: '{"temperature": {{normal 21 5}}, "room": 1}'}}
subscribers:
  - {name: alarms, filters: 'hall/#', where: {filter: 'payload.temperature > 30', at: PLACE}}
"#;
        plan(&workload.replace("PLACE", place), Duration::from_secs(1))
    };
    let totals = Totals { expected: 10, delivered: 10, ..Totals::default() };
    assert!(
        !filtered("broker").have_all_arrived(&totals),
        "the broker may have left a message in and lost another one"
    );
    let plan = filtered("client");
    assert!(plan.have_all_arrived(&totals));
    for (missing, totals) in [
        ("a delivery", Totals { delivered: 9, ..totals }),
        ("a message that is due", Totals { backlog: 1, ..totals }),
        ("an acknowledgement", Totals { in_flight: 1, ..totals }),
        ("perhaps a delivery in place of an unexpected one", Totals { unexpected: 1, excused: 1, ..totals }),
    ] {
        assert!(!plan.have_all_arrived(&totals), "{missing}");
    }
    assert!(plan.have_all_arrived(&Totals { excused: 1, ..totals }), "an unacknowledged message is expected");
}

#[test]
fn silence_is_no_end_before_a_message_would_be_sent_again() {
    let quiet = |workload: &str, redelivers_after| {
        RunPlan { redelivers_after, ..plan(workload, Duration::from_secs(1)) }.quiet()
    };
    let redelivers_after = Some(Duration::from_secs(5));
    assert!(quiet(ONE_TO_ONE, redelivers_after) > Duration::from_secs(5));
    assert_eq!(quiet(ONE_TO_ONE, None), Duration::from_secs(3));
    let best_effort = ONE_TO_ONE.replace("qos: 1", "qos: 0");
    assert_eq!(quiet(&best_effort, redelivers_after), Duration::from_secs(3), "nothing is acknowledged");
}

#[test]
fn silence_is_no_end_behind_links_that_nodes_make_to_a_system_on_the_loopback_interface() {
    let plan = plan(ONE_TO_ONE, Duration::from_secs(1));
    let networks = Networks { devices: vec![Some(0)], subscribers: vec![None], ..Networks::none() };
    let linked = RunPlan { on_nodes: true, networks, ..plan.clone() };
    assert_eq!(linked.quiet(), linked.drain_limit);
    let networks = Networks { devices: vec![None], subscribers: vec![None], ..Networks::none() };
    assert_eq!(RunPlan { on_nodes: true, networks, ..plan }.quiet(), Duration::from_secs(3), "no link");
}

/// The thread of the subscriber stands still over the end of the drain, and then handles one message in each turn. Nine of ten
/// messages arrived meanwhile, and one arrives later.
#[test]
fn what_arrived_before_the_end_of_the_drain_is_delivered_however_late_it_is_handled() {
    let workload = ONE_TO_ONE.replace("every: 10ms", "every: 100ms").replace("qos: 1", "qos: 0");
    let simulation = Simulation::new(&workload, Duration::from_secs(1));
    simulation.broker.borrow_mut().copy_delays =
        Box::new(|_, sequence, _| vec![if sequence == 5 { 60 * SECOND_NS } else { 6 * SECOND_NS }]);
    simulation.at(5 * SECOND_NS as i64, |broker| {
        broker.now_ns += 30 * SECOND_NS;
        broker.serves_at_most = 1;
    });
    let delivery = simulation.run().outcome.books.delivery;
    assert_count_eq!((delivery.sent, delivery.delivered, delivery.lost), (10, 9, 1));
}
