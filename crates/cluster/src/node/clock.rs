//! The run's clock on a node: requested, estimated, and set for its workers.

use pubmark_engine::progress::Progress;
use pubmark_protocol::clock;
use pubmark_protocol::run_clock::Mapping;

use crate::clock::{Reading, RunClockEstimator};
use crate::messages::{Ask, Clock, Time, Welcome};

/// A node's own clock, and its estimate of the run's clock.
pub(super) struct NodeClock {
    estimator: RunClockEstimator,
    /// The run's time − the machine's `CLOCK_MONOTONIC_RAW`, ns, if node and coordinator have the same clock.
    constant_ns: Option<i64>,
    /// The same difference as the coordinator sends it, even if the node has another clock, ns.
    run_less_raw_ns: i64,
    /// The run began with the same clock, which turned out to be another one: how far time stamps were off until then is not known.
    was_the_same: bool,
    /// The largest bound of all nodes, as the coordinator sent it last, ns.
    largest_bound_ns: u64,
    error: Option<Error>,
    mapping: Option<Mapping>,
    worst_true_error_ns: u64,
}

/// An error that is put on purpose into a node's clock, to check whether it is detected.
#[derive(Clone, Copy)]
struct Error {
    offset_ns: i64,
    ppm: f64,
    since_ns: u64,
}

impl Error {
    /// The value of the wrong clock when the right clock has this value.
    fn wrong_ns(&self, right_ns: u64) -> u64 {
        let gained_ns = right_ns.saturating_sub(self.since_ns) as f64 * self.ppm / 1e6;
        right_ns.wrapping_add_signed(self.offset_ns + gained_ns as i64)
    }
}

impl NodeClock {
    /// Creates the clock of a node that has just joined.
    pub fn new(welcome: &Welcome, boot: &str, error: Option<(i64, f64)>) -> NodeClock {
        let is_the_same = error.is_none() && !boot.is_empty() && welcome.boot == boot;
        NodeClock {
            estimator: RunClockEstimator::default(),
            constant_ns: is_the_same.then_some(welcome.run_less_raw_ns),
            run_less_raw_ns: welcome.run_less_raw_ns,
            was_the_same: false,
            largest_bound_ns: 0,
            error: error.map(|(offset_ns, ppm)| Error { offset_ns, ppm, since_ns: clock::raw_ns() }),
            mapping: None,
            worst_true_error_ns: 0,
        }
    }

    fn now_ns(&self) -> u64 {
        let raw_ns = clock::raw_ns();
        self.error.map_or(raw_ns, |error| error.wrong_ns(raw_ns))
    }

    /// A request for the coordinator's time.
    pub fn ask(&self) -> Ask {
        Ask { origin_ns: self.now_ns(), bound_ns: self.bound_ns() }
    }

    /// Largest possible error of the clock now, ns.
    fn bound_ns(&self) -> u64 {
        if self.constant_ns.is_some() { 0 } else { self.estimator.bound_ns() }
    }

    /// Processes a response that has just arrived.
    pub fn hear(&mut self, time: &Time) {
        if time.receive_ns == 0 {
            return;
        }
        let (receive_ns, transmit_ns) = (time.receive_ns, time.transmit_ns);
        self.largest_bound_ns = time.largest_bound_ns;
        self.estimator.read(Reading {
            origin_ns: time.origin_ns,
            receive_ns,
            transmit_ns,
            destination_ns: self.now_ns(),
        });
        // Virtual machines that were copied while they ran can have the same boot id and different clocks.
        if self.constant_ns.is_some_and(|constant_ns| !self.estimator.is_constant(constant_ns)) {
            self.constant_ns = None;
            self.was_the_same = true;
        }
    }

    /// Estimates the run's clock again, and sets the clocks of workers; the clock of a run in progress is not stepped.
    pub fn set<'a>(&mut self, workers: impl Iterator<Item = &'a Progress>, is_running: bool) {
        let now_ns = self.now_ns();
        let exact = self.constant_ns.map(|constant_ns| Mapping {
            local_ns: now_ns,
            run_ns: now_ns.wrapping_add_signed(constant_ns),
            rate_ppb: 0,
        });
        self.note_true_error();
        let Some(mapping) = exact.or_else(|| self.estimator.meet(now_ns, is_running)) else { return };
        self.mapping = Some(mapping);
        self.note_true_error();
        let mapping = self.as_workers_read(mapping);
        let apart_ns = self.bound_ns().saturating_add(self.largest_bound_ns);
        for worker in workers {
            worker.run_clock().set(mapping);
            worker.run_clock().set_apart_ns(apart_ns);
            worker.run_clock().keep_alive(clock::machine_ns());
        }
    }

    /// Is there a mapping?
    pub fn is_set(&self) -> bool {
        self.mapping.is_some()
    }

    /// A worker reads its machine's clock without the test error, so the error is removed from the mapping's local
    /// side.
    fn as_workers_read(&self, mapping: Mapping) -> Mapping {
        let Some(error) = self.error else { return mapping };
        let raw_ns = clock::raw_ns();
        let rate = (1.0 + mapping.rate_ppb as f64 / 1e9) * (1.0 + error.ppm / 1e6) - 1.0;
        Mapping {
            local_ns: raw_ns,
            run_ns: mapping.run_ns(error.wrong_ns(raw_ns)),
            rate_ppb: (rate * 1e9).round() as i64,
        }
    }

    /// With a test error on the coordinator's machine, the true time is known: notes the error of the mapping now.
    fn note_true_error(&mut self) {
        if let (Some(error), Some(mapping)) = (self.error, self.mapping) {
            let raw_ns = clock::raw_ns();
            let true_ns = raw_ns.wrapping_add_signed(self.run_less_raw_ns);
            let off_ns = mapping.run_ns(error.wrong_ns(raw_ns)).abs_diff(true_ns);
            self.worst_true_error_ns = self.worst_true_error_ns.max(off_ns);
        }
    }

    /// Starts a run.
    pub fn begin(&mut self) {
        self.estimator.begin();
        self.worst_true_error_ns = 0;
        self.was_the_same = false;
    }

    /// Accuracy of the clock since the start of the run.
    pub fn report(&self) -> Option<Clock> {
        let true_error_ns = self.error.map(|_| self.worst_true_error_ns);
        if let Some(constant_ns) = self.constant_ns {
            return Some(Clock { offset_ns: constant_ns, is_the_same: true, ..Clock::default() });
        }
        if self.was_the_same {
            return Some(Clock { bound_ns: f64::INFINITY, true_error_ns, ..Clock::default() });
        }
        let figures = self.estimator.judge(self.now_ns())?;
        Some(Clock {
            offset_ns: figures.offset_ns,
            drift_ppb: figures.drift_ppb,
            bound_ns: figures.bound_ns,
            minimum_round_trip_ns: figures.minimum_round_trip_ns,
            samples: figures.samples,
            restarts: figures.restarts,
            true_error_ns,
            is_the_same: false,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BOOT: &str = "a boot";

    /// The clock of a node whose boot id is this one.
    fn of(boot: &str) -> NodeClock {
        let welcome = Welcome { boot: BOOT.to_owned(), run_less_raw_ns: 0, ..Welcome::default() };
        NodeClock::new(&welcome, boot, None)
    }

    /// A response of a coordinator whose clock is this far ahead.
    fn hear(clock: &mut NodeClock, ahead_ns: u64, largest_bound_ns: u64) {
        let origin_ns = clock::raw_ns();
        let receive_ns = origin_ns + ahead_ns;
        clock.hear(&Time { origin_ns, receive_ns, transmit_ns: receive_ns, largest_bound_ns });
    }

    #[test]
    fn a_clock_that_turns_out_to_be_another_one_during_a_run_has_no_bound_in_that_run() {
        let mut node = of(BOOT);
        node.set(std::iter::empty(), false);
        node.begin();
        assert!(node.report().unwrap().is_the_same);
        hear(&mut node, 40_000_000_000, 0);
        node.set(std::iter::empty(), true);
        let report = node.report().unwrap();
        assert!(!report.is_the_same && report.bound_ns.is_infinite(), "{report:?}");
        node.begin();
        assert!(node.report().unwrap().bound_ns.is_finite(), "the next run has this clock from its start");
    }

    #[test]
    fn workers_learn_how_far_the_clocks_of_two_nodes_may_be_apart() {
        let progress = Progress::new(1).unwrap();
        let mut node = of("another boot");
        hear(&mut node, 7, 20_000_000);
        node.set(std::iter::once(&progress), false);
        let own_ns = node.ask().bound_ns;
        assert!(own_ns > 0 && own_ns < 1_000_000_000, "{own_ns}");
        assert_eq!(progress.run_clock().apart_ns(), own_ns + 20_000_000);
        let mut node = of(BOOT);
        hear(&mut node, 0, 20_000_000);
        node.set(std::iter::once(&progress), false);
        assert_eq!((node.ask().bound_ns, progress.run_clock().apart_ns()), (0, 20_000_000));
    }
}
