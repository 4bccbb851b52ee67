//! Reads a machine's usage every few seconds during a run.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubmark_record::cost::HostUsage;

use super::{ScrapeError, Scraper, Snapshot, own};
use crate::clock;

/// Time between two readings of an exporter. Each one costs some ms of CPU time on the machine under test.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time between two readings of this machine, which cost some µs. The start of the window is not known in advance, so
/// it lies between two readings.
const OWN_INTERVAL: Duration = Duration::from_millis(500);

/// Largest fall of a CPU time that is no restart of its counter, s: every core may be a tick behind.
const SLACK: f64 = 0.5;

/// Reads a machine's usage.
type Read = Box<dyn Fn() -> Result<Snapshot, ScrapeError> + Send>;

/// Reads a machine's usage from a separate thread, so that a slow response delays nothing.
#[derive(Debug)]
pub struct HostWatch {
    to_thread: Sender<()>,
    thread: JoinHandle<HostReadings>,
}

/// All readings, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReadings {
    /// URL without password, or the machine's name.
    pub url: String,
    /// Time of each reading (ns of our `CLOCK_MONOTONIC`, halfway between request and response), and its result.
    pub snapshots: Vec<(u64, Snapshot)>,
    /// Readings that failed.
    pub failed: u64,
}

impl HostWatch {
    /// Reads an exporter once, so that a wrong address is reported before the run, and then every 5 s.
    pub fn start(scraper: Scraper) -> Result<HostWatch, ScrapeError> {
        let url = scraper.url().to_owned();
        HostWatch::of(url, INTERVAL, Box::new(move || scraper.read()))
    }

    /// Reads the usage of this machine twice a second; `name` is the machine's name in the result.
    pub fn own(name: &str) -> Result<HostWatch, ScrapeError> {
        HostWatch::of(name.to_owned(), OWN_INTERVAL, Box::new(own::snapshot))
    }

    fn of(url: String, interval: Duration, read: Read) -> Result<HostWatch, ScrapeError> {
        let mut readings = HostReadings { url: url.clone(), ..HostReadings::default() };
        readings.snapshots.push(timed(&read)?);
        let (to_thread, requests) = mpsc::channel();
        let thread = thread::Builder::new().name("host-watch".to_owned()).stack_size(512 << 10).spawn(move || {
            loop {
                match requests.recv_timeout(interval) {
                    Ok(()) | Err(RecvTimeoutError::Timeout) => readings.add(&read),
                    Err(RecvTimeoutError::Disconnected) => return readings,
                }
            }
        });
        let thread = thread.map_err(|source| ScrapeError::Thread { url, source })?;
        Ok(HostWatch { to_thread, thread })
    }

    /// Requests a reading now, without waiting for it.
    pub fn read_soon(&self) {
        // If the thread has ended, it has panicked; `finish` reports that.
        let _ = self.to_thread.send(());
    }

    /// Waits for readings in progress (2 s at most for each request), stops, and returns all readings; `None` if the
    /// thread panicked, which was printed.
    pub fn finish(self) -> Option<HostReadings> {
        let HostWatch { to_thread, thread } = self;
        drop(to_thread);
        thread.join().ok()
    }
}

fn timed(read: &Read) -> Result<(u64, Snapshot), ScrapeError> {
    let before_ns = clock::monotonic_ns();
    let snapshot = read()?;
    Ok((before_ns + (clock::monotonic_ns() - before_ns) / 2, snapshot))
}

impl HostReadings {
    fn add(&mut self, read: &Read) {
        match timed(read) {
            Ok(snapshot) => self.snapshots.push(snapshot),
            Err(_) => self.failed += 1,
        }
    }

    /// Usage of the machine between two instants of `CLOCK_MONOTONIC`. A figure is `None` if it was not read both
    /// before the first and after the second instant, or if its counter restarted in between, as after a restart of the
    /// machine.
    pub fn usage(&self, start_ns: u64, end_ns: u64) -> HostUsage {
        let window_s = end_ns.saturating_sub(start_ns) as f64 / 1e9;
        let grown = |counter: fn(&Snapshot) -> Option<f64>| {
            Some(self.at(end_ns, counter)? - self.at(start_ns, counter)?)
                .filter(|grown| *grown >= -SLACK && window_s > 0.0 && self.only_rises(start_ns, end_ns, counter))
                .map(|grown| grown.max(0.0))
        };
        let bytes = |counter: fn(&Snapshot) -> Option<f64>| grown(counter).map(|bytes| bytes.round() as u64);
        let steal = grown(Snapshot::stolen_seconds)
            .zip(grown(|snapshot| Some(snapshot.total_seconds())).filter(|total_s| *total_s > 0.0))
            .map(|(stolen_s, total_s)| (stolen_s / total_s).min(1.0));
        let last = self.snapshots.last().map(|(_, snapshot)| snapshot);
        HostUsage {
            url: self.url.clone(),
            cores_total: last.and_then(|snapshot| snapshot.cores),
            cores: grown(|snapshot| Some(snapshot.busy_seconds())).map(|seconds| seconds / window_s),
            steal,
            steal_by_machine: BTreeMap::new(),
            is_this_machine: None,
            memory_bytes: last.and_then(|snapshot| snapshot.memory_bytes),
            peak_used_bytes: self
                .around(start_ns, end_ns)
                .iter()
                .filter_map(|(_, snapshot)| snapshot.used_bytes())
                .max(),
            received_bytes: bytes(|snapshot| snapshot.all_received_bytes().map(|bytes| bytes as f64)),
            sent_bytes: bytes(|snapshot| snapshot.all_sent_bytes().map(|bytes| bytes as f64)),
            failed_readings: self.failed,
        }
    }

    fn only_rises(&self, start_ns: u64, end_ns: u64, counter: fn(&Snapshot) -> Option<f64>) -> bool {
        let values: Vec<f64> =
            self.around(start_ns, end_ns).iter().filter_map(|(_, snapshot)| counter(snapshot)).collect();
        // CPU times are counted in ticks, and the loops of `--awake` that are taken off them exactly.
        values.windows(2).all(|pair| pair[1] >= pair[0] - SLACK)
    }

    /// The readings of a window, and one on each side.
    fn around(&self, start_ns: u64, end_ns: u64) -> &[(u64, Snapshot)] {
        let first = self.snapshots.partition_point(|(at_ns, _)| *at_ns <= start_ns).saturating_sub(1);
        let after = self.snapshots.partition_point(|(at_ns, _)| *at_ns < end_ns).saturating_add(1);
        &self.snapshots[first..after.min(self.snapshots.len())]
    }

    /// A counter at an instant, interpolated linearly between the nearest readings.
    fn at(&self, at_ns: u64, counter: fn(&Snapshot) -> Option<f64>) -> Option<f64> {
        let after = self.snapshots.partition_point(|(read_ns, _)| *read_ns < at_ns);
        let value = |(read_ns, snapshot): &(u64, Snapshot)| Some((*read_ns, counter(snapshot)?));
        let (later_ns, later) = self.snapshots[after..].iter().find_map(value)?;
        if later_ns == at_ns {
            return Some(later);
        }
        let (earlier_ns, earlier) = self.snapshots[..after].iter().rev().find_map(value)?;
        Some(earlier + (later - earlier) * (at_ns - earlier_ns) as f64 / (later_ns - earlier_ns) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn snapshot(user: f64, idle: f64, received_bytes: u64, available_bytes: u64) -> Snapshot {
        Snapshot {
            cpu_seconds: [("user".to_owned(), user), ("idle".to_owned(), idle)].into(),
            cores: Some(4),
            memory_bytes: Some(1_000),
            available_bytes: Some(available_bytes),
            received_bytes: [("eth0".to_owned(), received_bytes)].into(),
            sent_bytes: [].into(),
        }
    }

    fn readings(snapshots: Vec<(u64, Snapshot)>) -> HostReadings {
        HostReadings { url: "http://x:1".to_owned(), snapshots, failed: 2 }
    }

    #[test]
    fn a_window_lies_between_readings() {
        let readings = readings(vec![
            (0, snapshot(10.0, 0.0, 100, 900)),
            (10 * S, snapshot(30.0, 20.0, 1_100, 400)),
            (20 * S, snapshot(30.0, 60.0, 1_100, 700)),
        ]);
        let usage = readings.usage(5 * S, 15 * S);
        assert_eq!((usage.cores_total, usage.cores, usage.memory_bytes), (Some(4), Some(1.0), Some(1_000)));
        assert_eq!((usage.peak_used_bytes, usage.received_bytes, usage.sent_bytes), (Some(600), Some(500), None));
        assert_eq!((usage.failed_readings, usage.url.as_str()), (2, "http://x:1"));
        // There is no reading after the window's end.
        let usage = readings.usage(5 * S, 25 * S);
        assert_eq!((usage.cores, usage.received_bytes), (None, None));
    }

    #[test]
    fn steal_is_a_share_of_the_cpu_time_of_the_window() {
        let at = |user: f64, idle: f64, stolen: Option<f64>| {
            let mut snapshot = snapshot(user, idle, 0, 900);
            snapshot.cpu_seconds.extend(stolen.map(|stolen| ("steal".to_owned(), stolen)));
            snapshot
        };
        let of = |stolen: [Option<f64>; 2]| {
            let snapshots = vec![(0, at(10.0, 0.0, stolen[0])), (10 * S, at(30.0, 10.0, stolen[1]))];
            readings(snapshots).usage(0, 10 * S).steal
        };
        assert_eq!(of([Some(2.0), Some(12.0)]), Some(0.25));
        assert_eq!(of([Some(2.0), Some(2.0)]), Some(0.0));
        assert_eq!(of([None, None]), None, "not 0");
    }

    #[test]
    fn reset_counters_give_no_figure() {
        let readings = readings(vec![
            (0, snapshot(100.0, 0.0, 1_000, 900)),
            (5 * S, snapshot(1.0, 0.0, 10, 900)),
            (10 * S, snapshot(200.0, 0.0, 2_000, 900)),
        ]);
        let usage = readings.usage(0, 10 * S);
        assert_eq!((usage.cores, usage.received_bytes, usage.peak_used_bytes), (None, None, Some(100)));
    }

    #[test]
    fn a_cpu_time_that_falls_by_ticks_is_no_reset() {
        let readings = readings(vec![
            (0, snapshot(100.0, 0.0, 0, 900)),
            (5 * S, snapshot(99.9, 5.0, 0, 900)),
            (10 * S, snapshot(99.95, 10.0, 0, 900)),
        ]);
        assert_eq!(readings.usage(0, 10 * S).cores, Some(0.0));
    }
}
