//! The client program, if pubmark's own clients were not used.

use pubmark_record::record::Record;

use crate::numbers::{significant, time};

/// Library of the program, and the cost of the exchange with it; `None` for pubmark's own client.
pub fn client(record: &Record) -> Option<String> {
    let programs = record.connections.client_programs.as_ref()?;
    let round_trip = programs.round_trip.as_ref();
    let way = |value: Option<f64>| value.map_or_else(|| "—".to_owned(), |value| time(Some(value)));
    let cpu = record.cost.client_programs_cpu_s_per_million;
    let cpu = cpu.map_or_else(String::new, |cpu| format!("; {} s of CPU a million messages", significant(cpu)));
    Some(format!(
        "{}, a program of its own: to it and back {} p50, {} p99{cpu}",
        programs.library,
        way(round_trip.and_then(|summary| summary.p50)),
        way(round_trip.and_then(|summary| summary.p99))
    ))
}
