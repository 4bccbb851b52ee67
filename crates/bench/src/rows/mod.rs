//! The rows of the table, in the order of the README. To add a measurement, add a file and a row here.

use crate::row::Row;

mod books;
mod flood_broker;
mod flood_sink;
mod growth;
mod idle;
mod interval;
mod lag;
mod libraries;
mod links;
mod native;
mod paced;
mod pairs;
mod protocols;
mod report;

/// All rows.
pub const ROWS: &[Row] = &[
    idle::ROW,
    flood_sink::ROW,
    flood_broker::ROW,
    paced::ROW,
    lag::ROW,
    interval::ROW,
    books::ROW,
    pairs::ROW,
    protocols::FLOOD,
    protocols::PACED,
    native::ROW,
    protocols::IDLE,
    libraries::ZENOH,
    libraries::DDS,
    libraries::RUSTDDS,
    links::ROW,
    growth::ROW,
    report::ROW,
];
