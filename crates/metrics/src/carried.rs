//! Serialised forms of metrics, to be sent from one process to another. The data may come from another machine, so it
//! is validated before it is used: figures that no process of pubmark would produce are an error, and never cause a
//! panic later.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::holes::Range;

/// The reason why received data is not what a process of pubmark would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "not the message accounting of a shard: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Returns an error unless a condition on received data holds.
pub(crate) fn demand(holds: bool, what: &'static str) -> Result<(), Malformed> {
    if holds { Ok(()) } else { Err(Malformed(what)) }
}

/// Serialised form of a [`crate::ledger::Ledger`]. Windows without a bit, which most streams have, are omitted.
#[derive(Serialize, Deserialize)]
pub(crate) struct CarriedLedger {
    /// Of each stream: highest number seen + 1, and the number up to which its window has bits.
    pub heads: Vec<(u32, u32)>,
    /// Windows, by stream.
    pub windows: Vec<(u32, [u64; 16])>,
    /// Holes by stream, as ascending, non-adjacent ranges.
    pub holes: Vec<(u32, Vec<Range>)>,
    pub range_limit: u64,
    pub forgotten: HashMap<u32, u64>,
}

/// Serialised form of a [`crate::sparse_histogram::SparseHistogram`].
#[derive(Serialize, Deserialize)]
pub(crate) struct CarriedBuckets {
    pub buckets: Vec<(u16, u32)>,
    pub max_ns: u64,
}
