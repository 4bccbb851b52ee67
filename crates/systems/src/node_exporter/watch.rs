//! Reads a machine's figures every few seconds while a run goes on.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pubmark_record::cost::HostUsage;

use super::{ScrapeError, Scraper, Snapshot, own};
use crate::clock;

/// Time between two readings. An exporter takes some ms of the machine under test for each.
const INTERVAL: Duration = Duration::from_secs(5);
/// The same where the machine is this one, which takes some µs: nobody says when the window begins, so it lies between readings.
const OWN_INTERVAL: Duration = Duration::from_millis(500);

/// What gives a machine's figures.
type Read = Box<dyn Fn() -> Result<Snapshot, ScrapeError> + Send>;

/// Reads a machine's figures from a thread of its own, so that a slow answer delays nothing.
#[derive(Debug)]
pub struct HostWatch {
    to_thread: Sender<()>,
    thread: JoinHandle<HostReadings>,
}

/// What was read, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReadings {
    /// Where, without password, or the machine's name.
    pub url: String,
    /// When (ns of our `CLOCK_MONOTONIC`, half-way between question and answer), and what.
    pub snapshots: Vec<(u64, Snapshot)>,
    /// Readings that failed.
    pub failed: u64,
}

impl HostWatch {
    /// Asks an exporter once, so that a wrong address is told before the run, and then every 5 s.
    pub fn start(scraper: Scraper) -> Result<HostWatch, ScrapeError> {
        let url = scraper.url().to_owned();
        HostWatch::of(url, INTERVAL, Box::new(move || scraper.read()))
    }

    /// Reads this machine's own figures, twice a second; `name` is what it is called.
    pub fn own(name: &str) -> Result<HostWatch, ScrapeError> {
        HostWatch::of(name.to_owned(), OWN_INTERVAL, Box::new(own::snapshot))
    }

    fn of(url: String, interval: Duration, read: Read) -> Result<HostWatch, ScrapeError> {
        let mut readings = HostReadings { url: url.clone(), ..HostReadings::default() };
        readings.snapshots.push(timed(&read)?);
        let (to_thread, asked) = mpsc::channel();
        let thread = thread::Builder::new().name("host-watch".to_owned()).stack_size(512 << 10).spawn(move || {
            loop {
                match asked.recv_timeout(interval) {
                    Ok(()) | Err(RecvTimeoutError::Timeout) => readings.add(&read),
                    Err(RecvTimeoutError::Disconnected) => return readings,
                }
            }
        });
        let thread = thread.map_err(|source| ScrapeError::Thread { url, source })?;
        Ok(HostWatch { to_thread, thread })
    }

    /// Asks for a reading now, and does not wait for it.
    pub fn read_soon(&self) {
        // A thread that is gone has panicked, which `finish` tells.
        let _ = self.to_thread.send(());
    }

    /// Waits for readings that are under way (2 s at most for each asked for), ends, and gives all of them;
    /// `None` if the thread panicked, which was printed.
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

    /// What the machine used between two instants of `CLOCK_MONOTONIC`; a figure is `None` that was not read before the one
    /// and after the other, or that began anew in between, as after a restart of the machine.
    pub fn usage(&self, start_ns: u64, end_ns: u64) -> HostUsage {
        let window_s = end_ns.saturating_sub(start_ns) as f64 / 1e9;
        let grown = |counter: fn(&Snapshot) -> Option<f64>| {
            Some(self.at(end_ns, counter)? - self.at(start_ns, counter)?)
                .filter(|grown| *grown >= 0.0 && window_s > 0.0 && self.only_rises(start_ns, end_ns, counter))
        };
        let bytes = |counter: fn(&Snapshot) -> Option<f64>| grown(counter).map(|bytes| bytes.round() as u64);
        let last = self.snapshots.last().map(|(_, snapshot)| snapshot);
        HostUsage {
            url: self.url.clone(),
            cores_total: last.and_then(|snapshot| snapshot.cores),
            cores: grown(|snapshot| Some(snapshot.busy_seconds())).map(|seconds| seconds / window_s),
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
        values.is_sorted()
    }

    /// The readings of a window and one either side.
    fn around(&self, start_ns: u64, end_ns: u64) -> &[(u64, Snapshot)] {
        let first = self.snapshots.partition_point(|(at_ns, _)| *at_ns <= start_ns).saturating_sub(1);
        let after = self.snapshots.partition_point(|(at_ns, _)| *at_ns < end_ns).saturating_add(1);
        &self.snapshots[first..after.min(self.snapshots.len())]
    }

    /// A counter at an instant, on the line between the readings around it.
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
        // Nothing was read behind the window's end.
        let usage = readings.usage(5 * S, 25 * S);
        assert_eq!((usage.cores, usage.received_bytes), (None, None));
    }

    #[test]
    fn counters_that_began_anew_give_no_figure() {
        let readings = readings(vec![
            (0, snapshot(100.0, 0.0, 1_000, 900)),
            (5 * S, snapshot(1.0, 0.0, 10, 900)),
            (10 * S, snapshot(200.0, 0.0, 2_000, 900)),
        ]);
        let usage = readings.usage(0, 10 * S);
        assert_eq!((usage.cores, usage.received_bytes, usage.peak_used_bytes), (None, None, Some(100)));
    }
}
