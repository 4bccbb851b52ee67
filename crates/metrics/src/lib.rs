//! What is counted and timed while a run goes on: histograms, the books of each stream, time series.
//!
//! Each value is owned by one shard during the run and merged at the end; merging loses no information.
//! [`distribution::Distribution`] has latencies, [`ledger::Ledger`] distinguishes first copies, duplicates and holes,
//! [`series::Series`] has counts and latencies over time.

pub mod bounded;
pub mod bounds;
pub mod carried;
pub mod distribution;
pub mod fine;
pub mod gaps;
pub mod holes;
pub mod ledger;
pub mod series;
pub mod sparse_histogram;
