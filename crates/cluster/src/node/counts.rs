//! Counts of a node's own clients, for display on the node. They are read from the memory that its workers share with
//! the node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pubmark_engine::progress::{Progress, Totals};
use pubmark_engine::window_latency::{WindowLatency, WindowWatch};

/// Interval between two readings.
const LOOK: Duration = Duration::from_secs(1);

/// Counts of a node's own clients in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCounts {
    /// Time at which the first worker of the run started on this node.
    pub began: SystemTime,
    /// Counters of the node's clients.
    pub totals: Totals,
    /// Latencies of the messages that its subscribers received in the measured window.
    pub latency: WindowLatency,
}

/// Reads the counts of a run's workers, by their numbers. A worker that has ended stays until the next run starts.
pub(super) struct CountWatch {
    began: SystemTime,
    workers: BTreeMap<u32, (Arc<Progress>, WindowWatch)>,
    looked: Instant,
}

impl CountWatch {
    /// Creates it without workers.
    pub fn new() -> CountWatch {
        CountWatch { began: SystemTime::now(), workers: BTreeMap::new(), looked: Instant::now() }
    }

    /// Adds a worker that was started, the first of a run or a further one.
    pub fn begin(&mut self, number: u32, progress: Arc<Progress>, is_first: bool) {
        if is_first {
            *self = CountWatch::new();
        }
        self.workers.insert(number, (progress, WindowWatch::default()));
    }

    /// The counts until now, if the last reading is a second ago and there are workers.
    pub fn look(&mut self) -> Option<NodeCounts> {
        (self.looked.elapsed() >= LOOK && !self.workers.is_empty()).then(|| self.now())
    }

    /// The counts until now.
    pub fn now(&mut self) -> NodeCounts {
        self.looked = Instant::now();
        let mut counts = NodeCounts { began: self.began, totals: Totals::default(), latency: WindowLatency::default() };
        for (progress, watch) in self.workers.values_mut() {
            counts.totals.add(&progress.totals());
            let latency = watch.last(progress);
            counts.latency.upper.add(&latency.upper);
            counts.latency.lower.add(&latency.lower);
        }
        counts
    }
}
