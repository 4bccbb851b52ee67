//! Memory does not grow with messages.

use crate::child;
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row, fewer};
use crate::test_system::TestSystem;

pub const ROW: Row = Row {
    name: "growth",
    measure: "RSS growth per 10 million messages",
    known: "PSMark and mq-bench grow with every message",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut values = vec![];
    let mut messages = 0;
    for _ in 0..fewer(repetitions) {
        let broker = TestSystem::mosquitto(false)?;
        let set = ["arrival=flood", "publishers=10", "payload=16B"];
        let order = Order { warmup_s: 5.0, duration_s: 60.0, ..Order::new(&broker.address, &set) };
        let found: Finding = child::run_child("generator", &order)?;
        messages = found.arrived;
        let growth = found.rss_bytes.1 as f64 - found.rss_bytes.0 as f64;
        values.push(growth / 1e6 / (found.arrived as f64 / 1e7));
    }
    let reading = Reading::new("60 s of flood", values, "MB", Some(1.0));
    Ok(vec![Reading { note: format!("{messages} messages in the last one"), ..reading }])
}
