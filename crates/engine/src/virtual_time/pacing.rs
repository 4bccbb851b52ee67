//! Publishers that send in quanta, and how often a shard that receives checks its sockets.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pubmark_model::pace::Pace;
use pubmark_protocol::run_clock::Mapping;
use pubmark_testing::assert_count_eq;

use super::{BEGIN_NS, Ended, Simulation};
use crate::command::Command;
use crate::pacing::Pacing;

const MS: u64 = 1_000_000;

/// 100 devices, 10,000 messages a second, with a broker that takes 100 µs, acknowledged or not.
fn run(qos: u8, pace: Pace) -> Ended {
    let workload = format!(
        "
name: virtual
devices:
  - {{name: device, count: 100, arrival: poisson, every: 10ms, payload: 100B, topic: 'v/{{device}}', qos: {qos}}}
subscribers:
  - {{name: subscriber, filters: ['v/#'], qos: {qos}}}
"
    );
    let simulation = Simulation::prepared(&workload, Duration::from_secs(3), |setup| {
        // For scripted clients, the only known time of arrival is that of the read.
        if !setup.publishers.is_empty() {
            setup.pacing = Pacing { pace, at_most: Duration::ZERO };
        }
    });
    simulation.run()
}

#[test]
fn what_is_sent_together_is_late_by_no_more_than_the_quantum_and_counts_as_that() {
    for qos in [0, 1] {
        let exact = run(qos, Pace::Exact).outcome;
        let paced = run(qos, Pace::Quantum(Duration::from_millis(1))).outcome;
        let (all, delivery) = (exact.books.delivery.offered, &paced.books.delivery);
        assert_count_eq!([delivery.offered, delivery.sent, delivery.delivered], [all; 3]);
        let (lag, latency) = (&paced.times.scheduler_lag, &paced.times.latency);
        assert_count_eq!(exact.times.scheduler_lag.max_ns(), 0);
        assert!((MS / 2..=MS).contains(&lag.max_ns()), "{} ns", lag.max_ns());
        // The broker took 0.1 ms for each message; the rest is caused by the quantum. A histogram has three significant
        // digits.
        assert!(latency.lower.max_ns() <= 100_100, "{} ns", latency.lower.max_ns());
        assert!(latency.upper.max_ns() >= MS / 2);
    }
}

#[test]
fn who_receives_checks_often_while_a_message_is_on_its_way_and_seldom_otherwise() {
    let workload = "
name: virtual
devices:
  - {name: device, every: 1h, payload: 100B, topic: 'v/{device}'}
subscribers:
  - {name: subscriber, filters: ['v/#']}
";
    let mut simulation = Simulation::new(workload, Duration::from_secs(3));
    simulation.tell(Command::Connect, None);
    simulation.advance(BEGIN_NS + 100 * MS);
    let now_ns = simulation.broker.borrow().now_ns;
    let wait_ns = || simulation.loops[1].until_ns().expect("a shard that receives waits for so long at most") - now_ns;
    assert_eq!(wait_ns(), 5 * MS);
    let [publisher, subscriber] = simulation.progress.shards() else { panic!("two shards") };
    publisher.expected.store(2, Relaxed);
    subscriber.delivered.store(1, Relaxed);
    assert_eq!(wait_ns(), MS);
    subscriber.delivered.store(2, Relaxed);
    assert_eq!(wait_ns(), 5 * MS);
    // A request that waits for its reply.
    subscriber.in_flight.store(1, Relaxed);
    assert_eq!(wait_ns(), MS);
    subscriber.in_flight.store(0, Relaxed);
    // What others sent is not known where machines are several.
    simulation.progress.run_clock().set(Mapping { local_ns: 0, run_ns: 0, rate_ppb: 0 });
    assert_eq!(wait_ns(), MS);
}
