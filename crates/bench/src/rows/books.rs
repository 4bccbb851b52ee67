//! Cost of the books.

use crate::child;
use crate::row::{Reading, Row};

pub const ROW: Row =
    Row {
        name: "books", measure: "ledger + histograms per delivery, 80,000 streams in random order", known: "—", run
    };

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut cost, mut memory) = (vec![], vec![]);
    for _ in 0..repetitions {
        let (cost_ns, bytes): (f64, f64) = child::ask("books", &())?;
        cost.push(cost_ns);
        memory.push(bytes);
    }
    Ok(vec![
        Reading::new("CPU a delivery", cost, "ns", Some(150.0)),
        Reading::new("memory a stream", memory, "B", Some(192.0)),
    ])
}
