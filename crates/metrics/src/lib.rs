//! What is counted and timed while a run goes on: histograms, the books of each stream, time series.
//!
//! Everything here is owned by one shard while it runs and merged at the end; merging loses nothing.
//! [`distribution::Distribution`] holds latencies, [`ledger::Ledger`] tells first copies, duplicates and holes apart,
//! [`series::Series`] holds what happened when.

pub mod bounds;
pub mod carried;
pub mod distribution;
pub mod fine;
pub mod gaps;
pub mod holes;
pub mod ledger;
pub mod series;
