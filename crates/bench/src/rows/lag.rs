//! How well due times are met.

use pubmark_systems::environment;

use crate::child::{self, Server};
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};

pub const ROW: Row = Row {
    name: "lag",
    measure: "scheduler lag at 10,000 sends/s, one shard",
    known: "tokio timers p50 1,051 µs, p99 3,379 µs",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let sink = Server::start("sink")?;
    let mut readings = vec![];
    for realtime in [true, false] {
        let order = Order {
            warmup_s: 1.0,
            duration_s: 5.0,
            realtime,
            publish_only: true,
            ..Order::new(&sink.address, &["publishers=1000", "rate=10/s", "payload=100B"])
        };
        let (mut p50, mut p99, mut obtained) = (vec![], vec![], true);
        for _ in 0..repetitions {
            let found: Finding = child::run_child("generator", &order)?;
            obtained &= found.realtime;
            let (middle, tail) = found.lag_us.ok_or("too few samples")?;
            p50.push(middle);
            p99.push(tail);
        }
        let bars = (Some(15.0), Some(if realtime { 60.0 } else { 100.0 }));
        let class = match (realtime, obtained) {
            (true, true) => "SCHED_FIFO",
            (true, false) => "SCHED_FIFO refused",
            (false, _) => "plain",
        };
        let note = environment::load().map_or(String::new(), |load| format!("load {load:.1}"));
        for (name, values, bar) in [("p50", p50, bars.0), ("p99", p99, bars.1)] {
            readings
                .push(Reading { note: note.clone(), ..Reading::new(&format!("{class}, {name}"), values, "µs", bar) });
        }
    }
    Ok(readings)
}
