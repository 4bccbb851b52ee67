//! What of the metrics goes from one process to another. It may come from another machine, so that it is checked before it is used:
//! figures that no process of ours would make are an error, and never a panic later.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::holes::Range;

/// Why what came is not what a process of ours would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "not the message accounting of a shard: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Demands something of what came.
pub(crate) fn demand(holds: bool, what: &'static str) -> Result<(), Malformed> {
    if holds { Ok(()) } else { Err(Malformed(what)) }
}

/// A [`crate::ledger::Ledger`] on its way: windows without a bit, which most streams have, are left out.
#[derive(Serialize, Deserialize)]
pub(crate) struct CarriedLedger {
    /// Of each stream: highest number seen + 1, and up to where its window holds bits.
    pub heads: Vec<(u32, u32)>,
    /// By stream.
    pub windows: Vec<(u32, [u64; 16])>,
    /// By stream, ascending and apart.
    pub holes: Vec<(u32, Vec<Range>)>,
    pub range_limit: u64,
    pub forgotten: HashMap<u32, u64>,
}

/// A [`crate::series::SparseHistogram`] on its way.
#[derive(Serialize, Deserialize)]
pub(crate) struct CarriedBuckets {
    pub buckets: Vec<(u16, u32)>,
    pub max_ns: u64,
}
