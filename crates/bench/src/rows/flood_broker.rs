//! Cost of sending and receiving through a broker.

use crate::child;
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;

pub const ROW: Row = Row {
    name: "flood-broker",
    measure: "flood 1 → 1 by mosquitto, publisher + subscriber, CPU-s per million delivered",
    known: "mosquitto_pub/sub 4.8 (16 B), 5.5 (1 KB), 18.4 (QoS 1)",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let cases = [
        ("QoS 0, 16 B", 0, "16B", 2.0),
        ("QoS 0, 64 B", 0, "64B", 0.8),
        ("QoS 0, 1 KB", 0, "1KB", 2.0),
        ("QoS 1, 64 B", 1, "64B", 6.0),
        ("QoS 2, 16 B", 2, "16B", 25.0),
    ];
    let mut readings = vec![];
    for (case, qos, payload, bar) in cases {
        let mut values = vec![];
        for _ in 0..repetitions {
            let broker = TestSystem::mosquitto(false)?;
            let set = ["arrival=flood", "publishers=1", &format!("payload={payload}")];
            let order = Order { qos, ..Order::new(&broker.address, &set) };
            let found: Finding = child::run_child("generator", &order)?;
            values.push(found.cpu_s_per_million()?);
        }
        readings.push(Reading::new(case, values, "s", Some(bar)));
    }
    Ok(readings)
}
