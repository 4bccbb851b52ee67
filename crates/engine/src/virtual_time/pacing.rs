//! Publishers that send in quanta.

use std::time::Duration;

use pubmark_model::pace::Pace;
use pubmark_testing::assert_count_eq;

use super::{Ended, Simulation};
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
fn messages_of_one_quantum_are_late_by_at_most_the_quantum() {
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
