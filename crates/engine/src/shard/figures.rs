//! Measurements of a shard: times, counters, time series.

use std::sync::Arc;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::series::Series;
use pubmark_model::schedule::Due;

use crate::content::counts::ContentCounts;
use crate::due_times::sample::DueSample;
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
    /// Results of clients with predicates, by subscriber group.
    pub content: Vec<Option<Box<ContentCounts>>>,
    /// Results of the steps of `transform`, by device group.
    pub transform: GroupTransforms,
    /// Time series.
    pub series: Series,
    /// Latencies by the sender's node, in a run on several nodes.
    pub from_nodes: Vec<Option<Box<Bounds>>>,
    /// A sample of the due times that measured first copies carried.
    pub due_times: DueSample,
    /// The progress in which the latencies of the last seconds are published, and the index of this shard there.
    pub live: Option<(Arc<Progress>, usize)>,
    /// The message log of this shard, if the run has one.
    pub log: Option<Box<ShardLog>>,
}

impl Figures {
    /// Empty figures for this number of groups and a measured window of this length. Time series begin at
    /// `series_start_ns`.
    pub fn new(groups: usize, series_start_ns: i64, window_ns: u64) -> Figures {
        let types = groups.min(TYPE_LIMIT) + usize::from(groups > TYPE_LIMIT);
        Figures {
            times: Times::new(),
            types: vec![None; types.max(1)],
            counters: Counters::default(),
            content: vec![],
            transform: vec![],
            series: Series::new(series_start_ns, window_ns),
            from_nodes: vec![],
            due_times: DueSample::new(0),
            live: None,
            log: None,
        }
    }

    /// Logs a measured message that was not passed to the adapter, in a run with a message log.
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

/// The row of a group: a separate one below the limit, a shared one from the limit on.
pub fn type_row(types: &mut [Option<Box<TypeTimes>>], group: u16) -> &mut TypeTimes {
    let index = usize::from(group).min(types.len() - 1);
    types[index].get_or_insert_with(Default::default)
}
