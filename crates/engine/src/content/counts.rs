//! The clients' side of content filters: which of the received messages match the predicates.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Precision;
use pubmark_model::payload::HeaderPlace;
use pubmark_model::workload::Workload;
use serde::{Deserialize, Serialize};

/// Counts of the clients of one subscriber group for measured messages. First copies only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContentCounts {
    /// Messages for which the predicate holds.
    pub matched: u64,
    /// Messages for which it does not hold, or cannot be evaluated.
    pub filtered: u64,
    /// Payload bytes of the filtered messages.
    pub filtered_bytes: u64,
    /// Of the filtered messages, those for which it cannot be evaluated.
    pub unreadable: u64,
    /// Delivery − due of the matched messages.
    pub latency: Bounds,
    /// Number of matched and filtered messages of each audience, by its number in the message accounting.
    pub by_audience: BTreeMap<u32, [u64; 2]>,
}

impl ContentCounts {
    /// Without messages.
    pub fn new() -> ContentCounts {
        let latency = Bounds::new(Precision::Breakdown);
        ContentCounts {
            matched: 0,
            filtered: 0,
            filtered_bytes: 0,
            unreadable: 0,
            latency,
            by_audience: BTreeMap::new(),
        }
    }

    /// Adds the counts of another shard.
    pub fn merge(&mut self, other: &ContentCounts) {
        self.matched += other.matched;
        self.filtered += other.filtered;
        self.filtered_bytes += other.filtered_bytes;
        self.unreadable += other.unreadable;
        self.latency.merge(&other.latency);
        for (audience, [matched, filtered]) in &other.by_audience {
            let sum = self.by_audience.entry(*audience).or_default();
            *sum = [sum[0] + matched, sum[1] + filtered];
        }
    }
}

impl Default for ContentCounts {
    fn default() -> ContentCounts {
        ContentCounts::new()
    }
}

/// The predicates of a shard's clients.
pub struct ContentFilter {
    workload: Arc<Workload>,
    /// By audience of the shard: its subscriber group.
    groups: Vec<u16>,
    /// By device group: where the document begins in a payload, bytes.
    document_at: Vec<u32>,
}

/// A first copy of a measured message.
pub struct FirstCopy<'a> {
    /// Its audience, by index on the shard.
    pub audience: u32,
    /// Number of the audience in the message accounting.
    pub number: u32,
    /// Its device group.
    pub group: u16,
    /// Its whole payload.
    pub payload: &'a [u8],
    /// Its document, if steps of `transform` had to be reversed to read it.
    pub reversed: Option<&'a [u8]>,
    /// Delivery − due, ns.
    pub latency_ns: i64,
    /// Upper bound of the generator's part in that, ns.
    pub width_ns: u64,
}

impl ContentFilter {
    /// For audiences of these groups; `None` if no group has a predicate.
    pub fn new(workload: &Arc<Workload>, groups: Vec<u16>) -> Option<ContentFilter> {
        let has_predicate = |group: &u16| workload.subscribers[usize::from(*group)].predicate.is_some();
        groups.iter().any(has_predicate).then(|| ContentFilter {
            document_at: workload
                .devices
                .iter()
                .map(|group| if group.header == HeaderPlace::UserProperty { 0 } else { group.header_bytes() })
                .collect(),
            workload: Arc::clone(workload),
            groups,
        })
    }

    /// The subscriber group of an audience, by its index on the shard, if the system filters for it.
    pub fn filtered_for(&self, audience: usize) -> Option<u16> {
        let group = self.groups[audience];
        self.workload.subscribers[usize::from(group)].broker_filter().map(|_| group)
    }

    /// Evaluates the predicate of the audience's group, if it has one.
    pub fn enter(&self, copy: &FirstCopy<'_>, counts: &mut Vec<Option<Box<ContentCounts>>>) {
        let group = usize::from(self.groups[copy.audience as usize]);
        let Some(predicate) = &self.workload.subscribers[group].predicate else { return };
        if counts.len() <= group {
            counts.resize(group + 1, None);
        }
        let counts = counts[group].get_or_insert_with(Default::default);
        let in_payload = || copy.payload.get(self.document_at[usize::from(copy.group)] as usize..).unwrap_or_default();
        let document = copy.reversed.unwrap_or_else(in_payload);
        let holds = predicate.holds(document);
        counts.by_audience.entry(copy.number).or_default()[usize::from(holds != Ok(true))] += 1;
        if holds == Ok(true) {
            counts.matched += 1;
            counts.latency.record(copy.latency_ns, copy.width_ns);
            return;
        }
        counts.filtered += 1;
        counts.filtered_bytes += copy.payload.len() as u64;
        counts.unreadable += u64::from(holds.is_err());
    }
}
