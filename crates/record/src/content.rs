//! Subscribers that select messages by content, and filter the messages that they received.

pub use pubmark_model::workload::FilterPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyBounds;

/// Measured messages at the subscribers of one group with `where`. First copies only. Where the subscribers filter, the
/// message accounting counts all received messages as delivered; where the broker filters, only those that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentRow {
    /// Name of the group.
    pub group: String,
    /// Predicate of the group.
    pub r#where: String,
    /// Messages that arrived according to the message accounting, counted once for each subscription or shared group;
    /// `null` where a cap was reached, or a part of the run is lost.
    pub arrived: Option<u64>,
    /// Of these, messages for which the predicate holds, computed from what the publishers built; `null` likewise.
    pub should_match: Option<u64>,
    /// Messages that arrived and for which the predicate holds, computed from what the subscribers received.
    pub matched: u64,
    /// Messages that arrived and for which the predicate does not hold. A broker that filters forwards none of them.
    pub filtered: u64,
    /// Payload bytes of the filtered messages, which were transferred in vain.
    pub filtered_bytes: u64,
    /// Of the filtered, messages that were not JSON with the fields that the predicate names.
    pub unreadable: u64,
    /// Subscribers (and shared groups) whose matched or filtered count differs from the expected one; each is compared
    /// separately; `null` as `arrived`.
    #[serde(default)]
    pub differing_subscribers: Option<u64>,
    /// Sum of these differences, messages.
    #[serde(default)]
    pub differing_messages: Option<u64>,
    /// Messages for which the predicate holds and that are lost or unknown; `null` as `arrived`.
    pub missed: Option<u64>,
    /// Where filtering is done: by the subscribers on what they received, or by the broker.
    #[serde(default)]
    pub at: FilterPlace,
    /// Messages that the broker filtered out because the predicate does not hold; `null` as `arrived`, and where the
    /// subscribers filter.
    #[serde(default)]
    pub filtered_out: Option<u64>,
    /// Delivery − due of the matched messages.
    pub latency: Option<LatencyBounds>,
}
