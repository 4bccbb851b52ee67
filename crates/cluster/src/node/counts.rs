//! Counts of a node's own clients, for display on the node: read from the memory in which its workers count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pubmark_engine::progress::{Progress, Totals};
use pubmark_engine::window_latency::{WindowLatency, WindowWatch};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Counts of a node's own clients in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCounts {
    /// When the run's first worker began here.
    pub began: SystemTime,
    /// Counters of its clients.
    pub totals: Totals,
    /// Latencies of what its subscribers received in the measured window.
    pub latency: WindowLatency,
}

/// Looks at the workers of a run, by their numbers. One that has ended stays until another run begins.
pub(super) struct CountWatch {
    began: SystemTime,
    workers: BTreeMap<u32, (Arc<Progress>, WindowWatch)>,
    looked: Instant,
}

impl CountWatch {
    /// Of no worker.
    pub fn new() -> CountWatch {
        CountWatch { began: SystemTime::now(), workers: BTreeMap::new(), looked: Instant::now() }
    }

    /// A worker began, the first of a run or a further one.
    pub fn begin(&mut self, number: u32, progress: Arc<Progress>, is_first: bool) {
        if is_first {
            *self = CountWatch::new();
        }
        self.workers.insert(number, (progress, WindowWatch::default()));
    }

    /// What has come until now, if the last look is a second ago and there is something to look at.
    pub fn look(&mut self) -> Option<NodeCounts> {
        (self.looked.elapsed() >= LOOK && !self.workers.is_empty()).then(|| self.now())
    }

    /// What has come until now.
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
