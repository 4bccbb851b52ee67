//! Width of a latency's interval.

use crate::child;
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;

pub const ROW: Row = Row {
    name: "interval",
    measure: "interval of p99 (upper − lower) at 1,000 msg/s, 100 → 1 by mosquitto, 100 B, plain priority",
    known: "other tools give no interval",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut widths, mut upper) = (vec![], vec![]);
    for _ in 0..repetitions {
        let broker = TestSystem::mosquitto(false)?;
        let set = ["publishers=100", "rate=10/s", "payload=100B"];
        let order = Order { warmup_s: 2.0, duration_s: 10.0, ..Order::new(&broker.address, &set) };
        let found: Finding = child::run_child("generator", &order)?;
        let (least, most) = found.p99_us.ok_or("too few samples")?;
        widths.push(most - least);
        upper.push(most);
    }
    Ok(vec![Reading::new("width", widths, "µs", Some(80.0)), Reading::new("upper bound of p99", upper, "µs", None)])
}
