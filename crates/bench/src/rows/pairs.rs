//! Many slow pairs.

use crate::child;
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;

pub const ROW: Row =
    Row { name: "pairs", measure: "5,000 pairs × 1 msg/s by mosquitto", known: "mq-bench 365 MB, still ramping", run };

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut memory, mut lost, mut lag, mut lateness) = (vec![], vec![], vec![], vec![]);
    for _ in 0..repetitions {
        let broker = TestSystem::mosquitto(false)?;
        let order = Order {
            workload: "pairs".to_owned(),
            set: vec!["pairs=5000".to_owned(), "rate=1/s".to_owned(), "payload=1KB".to_owned()],
            address: broker.address.to_string(),
            subscribers: None,
            qos: 0,
            protocol: "mqtt5".to_owned(),
            client: None,
            warmup_s: 2.0,
            duration_s: 10.0,
            realtime: false,
            publish_only: false,
            in_flight_window: None,
        };
        let found: Finding = child::run_child("generator", &order)?;
        memory.push(found.peak_rss_bytes as f64 / 1e6);
        lost.push((found.offered - found.delivered) as f64);
        let latency = found.latency_us.map_or(0.0, |(_, p99)| p99);
        // Not invalid: within max(0.5 ms, half of the latency's p99).
        let limit = (latency / 2.0).max(500.0);
        lag.push(found.lag_us.ok_or("too few samples")?.1 / limit);
        lateness.push(found.receive_lateness_us.ok_or("too few samples")? / limit);
    }
    Ok(vec![
        Reading::new("generator's peak RSS", memory, "MB", Some(60.0)),
        Reading::new("offered and not delivered", lost, "messages", Some(0.0)),
        Reading::new("scheduler lag p99 over the limit of invalid", lag, "×", Some(1.0)),
        Reading::new("receive lateness p99 over the limit of invalid", lateness, "×", Some(1.0)),
    ])
}
