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
        let order = Order {
            workload: "fan-in".to_owned(),
            set: vec!["arrival=flood".to_owned(), "publishers=100".to_owned(), format!("payload={payload}")],
            address: sink.address.clone(),
            subscribers: None,
            qos: 0,
            protocol: "mqtt5".to_owned(),
            client: None,
            warmup_s: 0.5,
            duration_s: 3.0,
            realtime: false,
            publish_only: true,
            in_flight_window: None,
        };
        let mut values = vec![];
        for _ in 0..repetitions {
            let found: Finding = child::run_child("generator", &order)?;
            values.push(found.cpu_s / (found.sent as f64 / 1e6));
        }
        readings.push(Reading::new(case, values, "s", Some(bar)));
    }
    Ok(readings)
}
