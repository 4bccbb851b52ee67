//! What a shard measures: times, counters, series.

use std::sync::Arc;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::series::Series;
use pubmark_model::schedule::Due;

use crate::content::counts::ContentCounts;
use crate::message_log::row::{Row, RowKind};
use crate::message_log::writer::ShardLog;
use crate::plan::TYPE_LIMIT;
use crate::progress::Progress;
use crate::shard_outcome::{Counters, Times, TypeTimes};
use crate::transform::GroupTransforms;

/// The figures of a shard.
pub struct Figures {
    /// Times.
    pub times: Times,
    /// Times by type: see [`type_row`].
    pub types: Vec<Option<Box<TypeTimes>>>,
    /// Counters.
    pub counters: Counters,
    /// What clients with predicates did, by subscriber group.
    pub content: Vec<Option<Box<ContentCounts>>>,
    /// What steps of `transform` did, by device group.
    pub transform: GroupTransforms,
    /// Over time.
    pub series: Series,
    /// Latencies by the sender's node, in a run on several.
    pub from_nodes: Vec<Option<Box<Bounds>>>,
    /// Where the latencies of the last seconds can be read, and which of its shards this is.
    pub live: Option<(Arc<Progress>, usize)>,
    /// Where messages are noted one by one, if the run has a message log.
    pub log: Option<Box<ShardLog>>,
}

impl Figures {
    /// Empty figures for this number of groups; series begin at `series_start_ns`.
    pub fn new(groups: usize, series_start_ns: i64) -> Figures {
        let types = groups.min(TYPE_LIMIT) + usize::from(groups > TYPE_LIMIT);
        Figures {
            times: Times::new(),
            types: vec![None; types.max(1)],
            counters: Counters::default(),
            content: vec![],
            transform: vec![],
            series: Series::new(series_start_ns),
            from_nodes: vec![],
            live: None,
            log: None,
        }
    }

    /// Notes a measured message that was not handed over, in a run with a message log.
    pub fn note_unsent(&mut self, kind: RowKind, publisher: u32, due: &Due, due_ns: u64) {
        let Some(log) = &mut self.log else { return };
        log.note(Row {
            kind,
            publisher,
            sequence: 0,
            audience: 0,
            payload_bytes: due.payload_bytes,
            due_ns,
            at_ns: due_ns,
            lag_ns: 0,
            late_ns: 0,
            write_start_us: None,
        });
    }

    /// Publishes the latency of a delivery for live progress.
    #[inline]
    pub fn show_latency(&self, latency_ns: i64, width_ns: u64, measured: bool) {
        if let Some((progress, shard)) = &self.live {
            let shown = &progress.shards()[*shard];
            let bounds = if measured { &shown.window } else { &shown.warm_up };
            bounds.note(latency_ns, width_ns);
        }
    }
}

/// The row of a group: its own below the limit, the shared one from there on.
pub fn type_row(types: &mut [Option<Box<TypeTimes>>], group: u16) -> &mut TypeTimes {
    let index = usize::from(group).min(types.len() - 1);
    types[index].get_or_insert_with(Default::default)
}
