//! Cost of emulated links without impairment.

use pubmark_systems::environment;

use crate::child;
use crate::links_loop::LinkCost;
use crate::row::{Reading, Row};

pub const ROW: Row = Row {
    name: "links",
    measure: "emulated link without impairment, 64 B, emulator under SCHED_FIFO",
    known: "—",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let found: Vec<LinkCost> = (0..repetitions).map(|_| child::run_child("links", &())).collect::<Result<_, _>>()?;
    let values = |of: fn(&LinkCost) -> f64| found.iter().map(of).collect::<Vec<f64>>();
    let note = match (found.iter().all(|cost| cost.realtime), environment::load()) {
        (false, _) => "SCHED_FIFO refused".to_owned(),
        (true, load) => load.map_or(String::new(), |load| format!("load {load:.1}")),
    };
    let reading = |case: &str, values: Vec<f64>, unit: &'static str, bar: Option<f64>| Reading {
        note: note.clone(),
        ..Reading::new(case, values, unit, bar)
    };
    // A rate of 100,000 per second is 10 µs per packet.
    let spacing = values(|cost| if cost.packets_per_s > 0.0 { 1e6 / cost.packets_per_s } else { f64::INFINITY });
    Ok(vec![
        reading("loopback, round trip by TCP, p50", values(|cost| cost.loopback_us[0]), "µs", None),
        reading("loopback, round trip by TCP, p99", values(|cost| cost.loopback_us[1]), "µs", None),
        reading("added by the link, p50", values(|cost| cost.star_us[0] - cost.loopback_us[0]), "µs", Some(35.0)),
        reading("added by the link, p99", values(|cost| cost.star_us[1] - cost.loopback_us[1]), "µs", Some(150.0)),
        reading("fastest of 100,000 to 250,000 packets/s without a drop, time a packet", spacing, "µs", Some(10.0)),
        reading("CPU of the emulator a packet at that rate", values(|cost| cost.cpu_ns), "ns", None),
    ])
}
