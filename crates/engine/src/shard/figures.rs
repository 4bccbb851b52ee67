//! What a shard measures: times, counters, series.

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::series::Series;

use crate::plan::TYPE_LIMIT;
use crate::shard_outcome::{Counters, Times, TypeTimes};

/// The figures of a shard.
pub struct Figures {
    /// Times.
    pub times: Times,
    /// Times by type: see [`type_row`].
    pub types: Vec<Option<Box<TypeTimes>>>,
    /// Counters.
    pub counters: Counters,
    /// Over time.
    pub series: Series,
    /// Latencies by the sender's node, in a run on several.
    pub from_nodes: Vec<Option<Box<Bounds>>>,
}

impl Figures {
    /// Empty figures for this number of groups; series begin at `series_start_ns`.
    pub fn new(groups: usize, series_start_ns: i64) -> Figures {
        let types = groups.min(TYPE_LIMIT) + usize::from(groups > TYPE_LIMIT);
        Figures {
            times: Times::new(),
            types: vec![None; types.max(1)],
            counters: Counters::default(),
            series: Series::new(series_start_ns),
            from_nodes: vec![],
        }
    }
}

/// The row of a group: its own below the limit, the shared one from there on.
pub fn type_row(types: &mut [Option<Box<TypeTimes>>], group: u16) -> &mut TypeTimes {
    let index = usize::from(group).min(types.len() - 1);
    types[index].get_or_insert_with(Default::default)
}
