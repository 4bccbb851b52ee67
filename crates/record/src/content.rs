//! Subscribers that are interested in messages by their content, and filter what they received.

pub use pubmark_model::workload::FilterPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyBounds;

/// What the subscribers of one group with `where` did with measured messages. First copies only. Where they filter themselves, the
/// message accounting has all of them as delivered; where the broker does, those that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentRow {
    /// The group.
    pub group: String,
    /// Its predicate.
    pub r#where: String,
    /// Messages that arrived, by the message accounting: once for each subscription, or shared group; `null` where a cap was reached, or
    /// a part of the run is lost.
    pub arrived: Option<u64>,
    /// Of these, messages for which the predicate holds, by what their publishers built; `null` likewise.
    pub should_match: Option<u64>,
    /// Messages that arrived and for which the predicate holds, by what the subscribers received.
    pub matched: u64,
    /// Messages that arrived and for which it does not hold. A broker that filters lets none of them through.
    pub filtered: u64,
    /// Payload bytes of the filtered: wasted.
    pub filtered_bytes: u64,
    /// Of the filtered, messages that were no JSON with the fields that the predicate names.
    pub unreadable: u64,
    /// Subscribers (and shared groups) that did not match or filter as many as they should, each compared by itself; `null` as `arrived`.
    #[serde(default)]
    pub differing_subscribers: Option<u64>,
    /// Messages by which these differ, together.
    #[serde(default)]
    pub differing_messages: Option<u64>,
    /// Messages for which the predicate holds and that were lost or are unknown; `null` as `arrived`.
    pub missed: Option<u64>,
    /// Who filters: the subscribers, of what they received, or the broker.
    #[serde(default)]
    pub at: FilterPlace,
    /// Messages that the broker kept back as the predicate does not hold; `null` as `arrived`, and where the subscribers filter.
    #[serde(default)]
    pub filtered_out: Option<u64>,
    /// Delivery − due of the matched.
    pub latency: Option<LatencyBounds>,
}
