//! Cost of the message accounting.

use crate::child;
use crate::row::{Reading, Row};

pub const ROW: Row =
    Row {
        name: "books", measure: "ledger + histograms per delivery, 80,000 streams in random order", known: "—", run
    };

/// Memory per stream is computed from the difference between these numbers of streams, which excludes histograms.
const STREAMS: (u32, u32) = (40_000, 80_000);

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut cost, mut memory) = (vec![], vec![]);
    for _ in 0..repetitions {
        let (_, few_bytes): (f64, f64) = child::run_child("books", &STREAMS.0)?;
        let (cost_ns, bytes): (f64, f64) = child::run_child("books", &STREAMS.1)?;
        cost.push(cost_ns);
        memory.push((bytes - few_bytes) / f64::from(STREAMS.1 - STREAMS.0));
    }
    Ok(vec![
        Reading::new("CPU a delivery", cost, "ns", Some(150.0)),
        Reading::new("memory a stream", memory, "B", Some(192.0)),
    ])
}
