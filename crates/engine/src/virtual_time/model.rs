//! Random runs and one of a million messages, compared with a model that follows the definitions of the figures
//! directly: it sorts the broker's journal and counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use pubmark_model::random::mix;
use pubmark_protocol::clock;
use pubmark_testing::assert_count_eq;

use super::broker::{Client, Copy, CopyDelays};
use super::{Ended, Simulation, window_ns};
use crate::plan::LATE_AFTER;

/// The expected figures of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    expected: u64,
    delivered: u64,
    lost: u64,
    duplicated: u64,
    out_of_order: u64,
    late: u64,
    /// Sum of the latencies of first copies, ns.
    latency_ns: u128,
    largest_ns: u64,
}

/// The model: the copies of each stream in the order of their arrival.
fn expected(journal: &[Copy], duration: Duration, ended_ns: u64) -> Expected {
    let end_ns = window_ns() + duration.as_nanos() as u64;
    let mut streams: BTreeMap<(u32, Client), Vec<&Copy>> = BTreeMap::new();
    for copy in journal.iter().filter(|copy| (window_ns()..end_ns).contains(&copy.due_ns)) {
        streams.entry((copy.publisher, copy.client)).or_default().push(copy);
    }
    let mut found = Expected::default();
    for copies in streams.values() {
        let numbers: BTreeSet<u32> = copies.iter().map(|copy| copy.sequence).collect();
        let mut arrived: Vec<(u64, &Copy)> =
            copies.iter().filter_map(|copy| Some((copy.at_ns.filter(|at_ns| *at_ns <= ended_ns)?, *copy))).collect();
        arrived.sort_by_key(|(at_ns, _)| *at_ns);
        let mut had = BTreeSet::new();
        for (at_ns, copy) in arrived {
            let newest = had.last().copied().unwrap_or(0);
            if !had.insert(copy.sequence) {
                found.duplicated += 1;
                continue;
            }
            found.out_of_order += u64::from(copy.sequence < newest);
            found.late += u64::from(at_ns > end_ns + LATE_AFTER.as_nanos() as u64);
            found.latency_ns += u128::from(at_ns - copy.due_ns);
            found.largest_ns = found.largest_ns.max(at_ns - copy.due_ns);
        }
        found.expected += numbers.len() as u64;
        found.delivered += had.len() as u64;
        found.lost += (numbers.len() - had.len()) as u64;
    }
    found
}

/// The actual figures of a run.
fn found(ended: &Ended) -> Expected {
    let delivery = &ended.outcome.books.delivery;
    let latency = &ended.outcome.times.latency.upper;
    Expected {
        expected: delivery.expected,
        delivered: delivery.delivered,
        lost: delivery.lost,
        duplicated: delivery.duplicated,
        out_of_order: delivery.out_of_order,
        late: delivery.late,
        latency_ns: (latency.mean_ns().unwrap_or(0.0) * latency.count() as f64).round() as u128,
        largest_ns: latency.max_ns(),
    }
}

/// Fails unless a run and the model agree; times are compared to the precision of histograms and floating-point
/// numbers.
fn compare(ended: &Ended, duration: Duration) {
    let model = expected(&ended.broker.borrow().journal, duration, ended.at_ns);
    let found = found(ended);
    let exact = |figures: &Expected| {
        let Expected { expected, delivered, lost, duplicated, out_of_order, late, .. } = *figures;
        [expected, delivered, lost, duplicated, out_of_order, late]
    };
    assert_count_eq!(exact(&found), exact(&model), "expected, delivered, lost, duplicated, out of order, late");
    assert_count_eq!(ended.outcome.times.latency.upper.count(), model.delivered);
    let is_near = |one: u128, other: u128| one.abs_diff(other) <= 1 + other / 500;
    assert!(is_near(found.latency_ns, model.latency_ns), "{found:?}, {model:?}");
    assert!(is_near(found.largest_ns.into(), model.largest_ns.into()), "{found:?}, {model:?}");
    let delivery = &ended.outcome.books.delivery;
    assert_count_eq!(delivery.offered, delivery.sent, "a broker that takes everything leaves nothing unsent");
    assert_count_eq!((delivery.foreign, delivery.absent, delivery.unknown), (0, 0, 0));
}

/// How the scripted broker treats copies of messages: how many of a thousand it loses, how many it sends twice, and the
/// longest delay of each.
#[derive(Clone, Copy, Debug)]
struct CopyRules {
    seed: u64,
    lost: u64,
    doubled: u64,
    longest_ns: u64,
}

impl CopyRules {
    fn copy_delays(self, publisher: u32, sequence: u32, (_, listener): Client) -> CopyDelays {
        let draw = |number: u64| {
            let message = u64::from(publisher) << 32 | u64::from(sequence);
            mix(mix(mix(self.seed ^ message) ^ u64::from(listener.0)) ^ number)
        };
        let copies = match draw(0) % 1_000 {
            chance if chance < self.lost => 0,
            chance if chance < self.lost + self.doubled => 2,
            _ => 1,
        };
        (1..=copies).map(|copy| 1_000 + draw(copy) % self.longest_ns).collect()
    }
}

fn workload(devices: u32, every_us: u32, subscribers: u32, qos: u8) -> String {
    format!(
        "
name: virtual
devices:
  - {{name: device, count: {devices}, arrival: periodic, every: {every_us}us, payload: 24B, topic: 'v/{{device}}', qos: {qos}}}
subscribers:
  - {{name: subscriber, count: {subscribers}, filters: ['v/#'], qos: {qos}}}
"
    )
}

fn run(workload: &str, duration: Duration, copy_rules: CopyRules) -> Ended {
    let simulation = Simulation::new(workload, duration);
    simulation.broker.borrow_mut().copy_delays =
        Box::new(move |publisher, sequence, listener| copy_rules.copy_delays(publisher, sequence, listener));
    simulation.run()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_run_agrees_with_the_journal_of_the_broker(
        (devices, every_us, subscribers, qos) in (1u32..6, 700u32..30_000, 1u32..4, 0u8..2),
        (seed, lost, doubled) in (any::<u64>(), 0u64..300, 0u64..300),
        longest_ns in prop_oneof![Just(1_000), 1_000u64..5_000_000_000],
    ) {
        let duration = Duration::from_millis(1_500);
        let copy_rules = CopyRules { seed, lost, doubled, longest_ns };
        compare(&run(&workload(devices, every_us, subscribers, qos), duration, copy_rules), duration);
    }
}

#[test]
fn a_million_messages_are_counted_as_the_model_counts_them() {
    let duration = Duration::from_secs(10);
    let copy_rules = CopyRules { seed: 3, lost: 2, doubled: 3, longest_ns: 20_000_000 };
    let began_ns = clock::thread_cpu_ns();
    let ended = run(&workload(100, 1_000, 1, 0), duration, copy_rules);
    let took = Duration::from_nanos(clock::thread_cpu_ns() - began_ns);
    compare(&ended, duration);
    assert_count_eq!(ended.outcome.books.delivery.offered, 1_000_000);
    // About a second alone on a core; several times that where other programs take its caches.
    assert!(took < duration, "a million messages took {took:?} of CPU time");
}
