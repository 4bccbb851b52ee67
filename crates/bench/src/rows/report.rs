//! The HTML report's size and time.

use crate::child;
use crate::row::{Reading, Row};

pub const ROW: Row = Row { name: "report", measure: "report.html of a 10-minute, 541-device run", known: "—", run };

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut size, mut time) = (vec![], vec![]);
    for _ in 0..repetitions {
        let (bytes, seconds): (usize, f64) = child::run_child("report", &())?;
        size.push(bytes as f64 / 1e6);
        time.push(seconds);
    }
    Ok(vec![Reading::new("size", size, "MB", Some(1.5)), Reading::new("time", time, "s", Some(1.0))])
}
