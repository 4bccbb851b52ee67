//! Cost of sending alone.

use crate::child::{self, Server};
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};

pub const ROW: Row = Row {
    name: "flood-sink",
    measure: "flood into a discard sink, 100 connections, CPU-s per million",
    known: "rumqttc 2.1, 2.6",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let sink = Server::start("sink")?;
    let mut readings = vec![];
    for (case, payload, bar) in [("16 B", "16B", 0.3), ("1 KB", "1KB", 0.8)] {
        let set = ["arrival=flood", "publishers=100", &format!("payload={payload}")];
        let order = Order { publish_only: true, ..Order::new(&sink.address, &set) };
        let mut values = vec![];
        for _ in 0..repetitions {
            let found: Finding = child::run_child("generator", &order)?;
            values.push(found.cpu_s_per_million_written()?);
        }
        readings.push(Reading::new(case, values, "s", Some(bar)));
    }
    Ok(readings)
}
