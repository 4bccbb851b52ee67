//! Subscribers that disconnect and reconnect while devices send.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use pubmark_model::random::mix;
use pubmark_protocol::events::Reason;
use pubmark_testing::assert_count_eq;

use super::{Simulation, window_ns};

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
    // Never at a moment when a device sends, and once before the subscriber has reconnected from the last cut.
    for at_ms in [203, 407, 1_001, 1_022, 1_777] {
        simulation.at(at_ms * MS + 12_345, |broker| broker.cut("s0"));
    }
    simulation
}

#[test]
fn a_flapping_subscriber_with_a_clean_session_misses_messages_sent_during_its_absence() {
    let ended = flapping("clean", 0).run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    let forwarded = broker.journal.len() as u64;
    assert!(delivery.absent > 20 && broker.cuts >= 4, "{delivery:?}, {} cuts", broker.cuts);
    assert_count_eq!(delivery.sent, broker.published);
    assert_count_eq!((delivery.absent, delivery.expected), (broker.published - forwarded, forwarded));
    assert_count_eq!(delivery.lost, broker.overtaken, "what was on its way when the connection was cut");
    assert_count_eq!(delivery.delivered, forwarded - broker.overtaken);
    assert_count_eq!(ended.outcome.counters.dropped, broker.cuts);
}

#[test]
fn a_persistent_session_that_the_broker_discarded_is_lost() {
    let ended = flapping("persistent", 1).run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    let never = broker.journal.iter().filter(|copy| copy.at_ns.is_none()).count() as u64;
    assert!(never > 20, "{never}");
    assert_count_eq!((delivery.absent, delivery.expected), (0, delivery.sent), "the session is there all the time");
    assert_count_eq!(delivery.lost, never + broker.overtaken);
}

#[test]
fn a_persistent_session_without_a_connection_at_the_end_is_counted() {
    assert_count_eq!(flapping("persistent", 1).run().outcome.counters.not_resumed, 0);
    for (session, expected) in [("persistent", 1), ("clean", 0)] {
        let simulation = flapping(session, 1);
        // The drain ends after 10 s. Each connection of its last second is cut.
        for at_ms in 11_900..13_100 {
            simulation.at(at_ms * MS + 12_345, |broker| broker.cut("s0"));
        }
        assert_count_eq!(simulation.run().outcome.counters.not_resumed, expected, "{session}");
    }
}

#[test]
fn a_refused_filter_expects_nothing_and_the_other_one_continues() {
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
fn a_filter_that_is_refused_on_each_connection_is_one_refused_subscription() {
    let workload = workload("clean", 0).replace("['v/#']", "['v/+', 'w/#']");
    let simulation = Simulation::new(&workload, Duration::from_secs(3));
    simulation.broker.borrow_mut().grants =
        Box::new(|filter| if filter == "v/+" { Err(Reason::code(0x87, "not authorized")) } else { Ok(()) });
    for at_ms in [500, 1_200, 1_900] {
        simulation.at(at_ms * MS + 12_345, |broker| broker.cut("s0"));
    }
    let ended = simulation.run();
    let counters = &ended.outcome.counters;
    assert_count_eq!(counters.established, 3 + 4, "three devices, and the subscriber four times");
    assert_count_eq!(counters.subscriptions_refused, 1);
}

/// One of two filters is revoked in the run. Both subscribers have the same filters, and one is left as it is.
fn revoked(session: &str, qos: u8) -> Simulation {
    let workload = workload(session, qos).replace("['v/#']", "['v/+', 'w/#'], count: 2");
    let simulation = Simulation::new(&workload, Duration::from_secs(3));
    simulation.at(1_001 * MS + 12_345, |broker| broker.revoke("s0", "v/+"));
    simulation
}

#[test]
fn nothing_is_expected_of_a_subscription_from_its_revocation_on() {
    let ended = revoked("clean", 0).run();
    let (broker, outcome) = (ended.broker.borrow(), &ended.outcome);
    let (delivery, forwarded) = (&outcome.books.delivery, broker.journal.len() as u64);
    assert!(delivery.absent > 100, "{delivery:?}");
    assert_count_eq!((delivery.expected, delivery.delivered, delivery.lost), (forwarded, forwarded, 0));
    assert_count_eq!(delivery.absent, 2 * broker.published - forwarded);
    let counters = &outcome.counters;
    assert_count_eq!((counters.subscriptions_revoked, counters.subscriptions_refused, counters.dropped), (1, 0, 0));
    assert_eq!(counters.causes.get("subscription revoked: revoked by the script"), Some(&1));
}

#[test]
fn what_the_system_does_not_permit_is_a_cause_and_changes_nothing_else() {
    let simulation = Simulation::new(&workload("clean", 0), Duration::from_secs(3));
    for at_ms in [1_001, 1_022] {
        simulation.at(at_ms * MS + 12_345, |broker| broker.forbid("s0", "reports of deleted consumers"));
    }
    let ended = simulation.run();
    let (counters, delivery) = (&ended.outcome.counters, &ended.outcome.books.delivery);
    assert_eq!(counters.causes.get("not permitted: reports of deleted consumers"), Some(&2), "{:?}", counters.causes);
    assert_count_eq!((counters.dropped, counters.subscriptions_refused, counters.subscriptions_revoked), (0, 0, 0));
    assert_count_eq!((delivery.lost, delivery.absent, delivery.delivered), (0, 0, delivery.expected));
}

#[test]
fn a_refusal_after_a_revocation_is_a_further_cause_of_the_revocation() {
    let simulation = revoked("clean", 0);
    simulation.at(1_500 * MS, |broker| {
        broker.grants =
            Box::new(|filter| if filter == "v/+" { Err(Reason::code(0x87, "not authorized")) } else { Ok(()) });
    });
    simulation.at(1_777 * MS + 12_345, |broker| broker.cut("s0"));
    let ended = simulation.run();
    let counters = &ended.outcome.counters;
    assert_count_eq!((counters.subscriptions_revoked, counters.subscriptions_refused), (1, 0));
    assert_eq!(counters.causes.get("subscription revoked: not authorized (0x87)"), Some(&1), "{:?}", counters.causes);
    assert!(counters.causes.keys().all(|cause| !cause.starts_with("subscription refused")), "{:?}", counters.causes);
}

#[test]
fn a_session_that_the_system_still_had_can_lose_a_subscription_and_a_reconnect_can_restore_it() {
    // The broker retains the persistent session at the cut, so it sends no responses before it revokes the filter.
    let persistent = revoked("persistent", 1);
    persistent.at(407 * MS + 12_345, |broker| broker.cut("s0"));
    let ended = persistent.run();
    let delivery = &ended.outcome.books.delivery;
    assert!(delivery.absent > 100, "{delivery:?}");
    assert_count_eq!(ended.outcome.counters.subscriptions_revoked, 1);
    let clean = revoked("clean", 0);
    clean.at(1_777 * MS + 12_345, |broker| broker.cut("s0"));
    let ended = clean.run();
    let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
    let forwarded = broker.journal.len() as u64;
    assert_count_eq!((delivery.expected, delivery.absent), (forwarded, 2 * broker.published - forwarded));
    assert_count_eq!(delivery.lost, broker.overtaken);
    let after_ns = window_ns() + 2_500_000_000;
    let late = broker.journal.iter().filter(|copy| copy.due_ns > after_ns);
    let receivers: BTreeSet<_> = late.map(|copy| copy.client).collect();
    assert_count_eq!(receivers.len(), 2, "the reconnect subscribed again");
}

#[test]
fn a_reconnect_before_the_schedule_is_not_one_more_session_of_the_ramp_up() {
    let simulation = Simulation::new(&workload("clean", 0), Duration::from_secs(1));
    // Subscribers connect 1 s before the window, which is known 0.8 s before it begins.
    simulation.at(-950 * MS, |broker| broker.cut("s0"));
    let outcome = simulation.run().outcome;
    assert_count_eq!(outcome.counters.established, 2 + 3, "the subscriber twice, and three devices");
    let accepted: Vec<u64> = outcome.ramps.iter().map(|ramp| ramp.accepted).collect();
    assert_count_eq!(accepted, [1, 3], "subscribers, and devices");
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn whichever_client_flaps_each_message_is_in_the_category_of_the_brokers_journal(
        (devices, every_us, subscribers) in (1u32..5, 900u32..20_000, 1u32..4),
        (is_kept, best_effort) in (any::<bool>(), any::<bool>()),
        cuts in proptest::collection::vec((0u32..3, 0i64..1_600 * MS), 0..12),
        (seed, lost, longest_ns) in (any::<u64>(), 0u64..200, 1_000u64..1_000_000_000),
    ) {
        // Brokers store messages of QoS 1 for a persistent session.
        let (session, qos) = if is_kept { ("persistent", 1) } else { ("clean", u8::from(!best_effort)) };
        let workload = format!(
            "
name: virtual
devices:
  - {{name: device, count: {devices}, arrival: periodic, every: {every_us}us, payload: 100B, topic: 'v/{{device}}', qos: {qos}}}
subscribers:
  - {{name: subscriber, count: {subscribers}, filters: ['v/#'], qos: {qos}, session: {session}}}
"
        );
        let simulation = Simulation::new(&workload, Duration::from_millis(1_500));
        for (subscriber, at_ns) in cuts {
            simulation.at(at_ns, move |broker| broker.cut(&format!("s{}", subscriber % subscribers)));
        }
        {
            let mut broker = simulation.broker.borrow_mut();
            // Both sides know at the same time that a subscription is active again.
            broker.accepts_after_ns = 0;
            broker.copy_delays = Box::new(move |publisher, sequence, (_, listener)| {
                let draw = mix(mix(seed ^ u64::from(publisher) << 32 ^ u64::from(sequence)) ^ u64::from(listener.0));
                if draw % 1_000 < lost { vec![] } else { vec![1_000 + mix(draw) % longest_ns] }
            });
        }
        let ended = simulation.run();
        let (broker, delivery) = (ended.broker.borrow(), &ended.outcome.books.delivery);
        let had_session = broker.journal.len() as u64;
        let arrived = broker.journal.iter().filter(|copy| copy.at_ns.is_some_and(|at_ns| at_ns <= ended.at_ns)).count();
        let delivered = arrived as u64 - broker.overtaken;
        assert_count_eq!((delivery.offered, delivery.sent, delivery.unknown), (broker.published, broker.published, 0));
        assert_count_eq!(
            (delivery.expected, delivery.delivered, delivery.lost, delivery.absent),
            (
                had_session,
                delivered,
                had_session - delivered,
                broker.published * u64::from(subscribers) - had_session
            ),
            "{} cuts, {} overtaken",
            broker.cuts,
            broker.overtaken
        );
    }
}
