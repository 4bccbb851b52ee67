//! Many slow pairs.

use crate::child;
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;

pub const ROW: Row =
    Row { name: "pairs", measure: "5,000 pairs × 1 msg/s by mosquitto", known: "mq-bench 365 MB, still ramping", run };

/// Limit of p99 of the verdict rules V01 and V02.
const VALID_MS: f64 = 10.0;

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut memory, mut lost, mut lag, mut lateness) = (vec![], vec![], vec![], vec![]);
    for _ in 0..repetitions {
        let broker = TestSystem::mosquitto(false)?;
        let order = Order {
            workload: "pairs".to_owned(),
            warmup_s: 2.0,
            duration_s: 10.0,
            ..Order::new(&broker.address, &["pairs=5000", "rate=1/s", "payload=1KB"])
        };
        let found: Finding = child::run_child("generator", &order)?;
        memory.push(found.peak_rss_bytes as f64 / 1e6);
        lost.push((found.offered - found.delivered) as f64);
        lag.push(found.lag_us.ok_or("too few samples")?.1 / 1e3);
        lateness.push(found.receive_lateness_us.ok_or("too few samples")? / 1e3);
    }
    Ok(vec![
        Reading::new("generator's peak RSS", memory, "MB", Some(60.0)),
        Reading::new("offered and not delivered", lost, "messages", Some(0.0)),
        Reading::new("scheduler lag p99", lag, "ms", Some(VALID_MS)),
        Reading::new("receive lateness p99", lateness, "ms", Some(VALID_MS)),
    ])
}
