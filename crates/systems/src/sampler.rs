//! What a system and pubmark itself cost: CPU time and memory, sampled while a run goes on.
//!
//! A thread samples every [`INTERVAL`]; [`Sampler::sample_now`] adds a sample at an edge of the measured window, so that
//! CPU time between the edges is measured and only what lies between two samples is interpolated.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pubmark_record::cost::{ResourceRow, Resources, Usage};

use crate::clock;
use crate::meter::{Reading, TreeMeter, own_reading};

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_millis(250);
/// Most rows that a series has; samples are merged two by two, four by four, … to stay below.
const MOST_ROWS: usize = 600;

/// What was used until an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The system's tree; `None` where it is not ours to see.
    pub system: Option<Reading>,
    /// pubmark's own process.
    pub generator: Option<Reading>,
}

/// Samples a system and this process until it is finished.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug)]
struct State {
    meter: Option<TreeMeter>,
    samples: Vec<Sample>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A sample that panicked half-way has pushed nothing, so the state is whole.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn sample(&mut self) {
        let system = self.meter.as_mut().map(TreeMeter::read);
        let generator = own_reading();
        self.samples.push(Sample { at_ns: clock::monotonic_ns(), system, generator });
    }
}

impl Sampler {
    /// Starts sampling, with a sample at once. `system` is the root of its process tree.
    pub fn start(system: Option<u32>) -> io::Result<Sampler> {
        let mut state = State { meter: system.map(TreeMeter::new), samples: Vec::new(), ended: false };
        state.sample();
        let shared = Arc::new(Shared { state: Mutex::new(state), ended: Condvar::new() });
        let thread = thread::Builder::new().name("sampler".to_owned()).stack_size(256 << 10).spawn({
            let shared = Arc::clone(&shared);
            move || sample_until_ended(&shared)
        })?;
        Ok(Sampler { shared, thread: Some(thread) })
    }

    /// Takes a sample now, in the calling thread.
    pub fn sample_now(&self) {
        self.shared.lock().sample();
    }

    /// Takes a last sample, ends, and gives all samples in order of time.
    pub fn finish(mut self) -> Samples {
        self.sample_now();
        self.end();
        Samples { samples: std::mem::take(&mut self.shared.lock().samples) }
    }

    fn end(&mut self) {
        self.shared.lock().ended = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to say; if it panicked, its samples are missing and the panic was printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn sample_until_ended(shared: &Shared) {
    let mut next = Instant::now() + INTERVAL;
    let mut state = shared.lock();
    while !state.ended {
        let now = Instant::now();
        if now >= next {
            state.sample();
            // On its beat; beats missed on a busy machine are left out.
            while next <= now {
                next += INTERVAL;
            }
        }
        let wait = next.saturating_duration_since(Instant::now());
        state = match shared.ended.wait_timeout(state, wait) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    samples: Vec<Sample>,
}

type Side = fn(&Sample) -> Option<Reading>;
const SYSTEM: Side = |sample| sample.system;
const GENERATOR: Side = |sample| sample.generator;

impl Samples {
    /// Samples of any origin, in order of time.
    pub fn new(samples: Vec<Sample>) -> Samples {
        Samples { samples }
    }

    /// All samples.
    pub fn all(&self) -> &[Sample] {
        &self.samples
    }

    /// Cost of both sides between two instants of `CLOCK_MONOTONIC`; `None` for a side that was not sampled on both
    /// sides of both.
    pub fn resources(&self, start_ns: u64, end_ns: u64) -> Resources {
        Resources {
            system: self.usage(SYSTEM, start_ns, end_ns),
            generator: self.usage(GENERATOR, start_ns, end_ns),
            ..Resources::default()
        }
    }

    fn usage(&self, side: Side, start_ns: u64, end_ns: u64) -> Option<Usage> {
        let cpu_ns = self.cpu_ns_at(side, end_ns)? - self.cpu_ns_at(side, start_ns)?;
        let cpu_seconds = cpu_ns / 1e9;
        let window_s = end_ns.checked_sub(start_ns).filter(|length| *length > 0)? as f64 / 1e9;
        // One sample either side of the window belongs to it: memory at its edges lies between two samples.
        let first = self.samples.partition_point(|sample| sample.at_ns <= start_ns).saturating_sub(1);
        let last = self.samples.partition_point(|sample| sample.at_ns < end_ns).min(self.samples.len() - 1);
        let peak_rss_bytes =
            self.samples[first..=last].iter().filter_map(side).map(|reading| reading.rss_bytes).max()?;
        Some(Usage { cpu_seconds, cores: cpu_seconds / window_s, peak_rss_bytes, ..Usage::default() })
    }

    /// CPU time used until an instant, on the line between the samples around it.
    fn cpu_ns_at(&self, side: Side, at_ns: u64) -> Option<f64> {
        let after = self.samples.partition_point(|sample| sample.at_ns < at_ns);
        let later = self.samples.get(after)?;
        let later_ns = side(later)?.cpu_ns as f64;
        if later.at_ns == at_ns {
            return Some(later_ns);
        }
        let earlier = self.samples.get(after.checked_sub(1)?)?;
        let earlier_ns = side(earlier)?.cpu_ns as f64;
        let share = (at_ns - earlier.at_ns) as f64 / (later.at_ns - earlier.at_ns) as f64;
        Some(earlier_ns + share * (later_ns - earlier_ns))
    }

    /// Cost over time, until `end_ns`; times count from `start_ns`, so those of the warm-up are negative. At most 600 rows.
    pub fn rows(&self, start_ns: u64, end_ns: u64) -> Vec<ResourceRow> {
        let samples = &self.samples[..self.samples.partition_point(|sample| sample.at_ns <= end_ns)];
        let step = samples.len().saturating_sub(1).div_ceil(MOST_ROWS).next_power_of_two();
        let ends = (step..samples.len()).step_by(step);
        ends.map(|end| row(&samples[end - step..=end], start_ns)).collect()
    }
}

/// The interval from the first of these samples to the last.
fn row(samples: &[Sample], start_ns: u64) -> ResourceRow {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let passed_ns = (last.at_ns - first.at_ns).max(1) as f64;
    let cores = |side: Side| Some((side(last)?.cpu_ns.saturating_sub(side(first)?.cpu_ns)) as f64 / passed_ns);
    let rss = |side: Side| samples[1..].iter().filter_map(side).map(|reading| reading.rss_bytes).max();
    ResourceRow {
        t_s: (last.at_ns as f64 - start_ns as f64) / 1e9,
        system_cores: cores(SYSTEM),
        system_rss_bytes: rss(SYSTEM),
        generator_cores: cores(GENERATOR),
        generator_rss_bytes: rss(GENERATOR),
        ..ResourceRow::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sample(at_ms: u64, cpu_ms: u64, rss_bytes: u64) -> Sample {
        Sample { at_ns: at_ms * MS, system: Some(Reading { cpu_ns: cpu_ms * MS, rss_bytes }), generator: None }
    }

    #[test]
    fn cpu_between_the_edges_is_measured_and_interpolated_only_between_samples() {
        let samples = Samples::new(vec![
            sample(0, 0, 9),
            sample(250, 50, 1),
            sample(500, 250, 4),
            sample(750, 250, 2),
            sample(1_000, 300, 9),
        ]);
        let resources = samples.resources(375 * MS, 750 * MS);
        let usage = resources.system.unwrap();
        assert!((usage.cpu_seconds - 0.1).abs() < 1e-9 && (usage.cores - 0.1 / 0.375).abs() < 1e-9, "{usage:?}");
        assert_eq!((usage.peak_rss_bytes, resources.generator), (4, None));
    }

    #[test]
    fn a_window_that_was_not_sampled_has_no_usage() {
        let samples = Samples::new(vec![sample(100, 0, 1), sample(200, 50, 1)]);
        for (start_ms, end_ms) in [(50, 150), (150, 250), (150, 150)] {
            assert_eq!(samples.resources(start_ms * MS, end_ms * MS).system, None);
        }
        assert_eq!(Samples::default().resources(0, 1), Resources::default());
        assert_eq!(Samples::default().rows(0, 1), vec![]);
    }

    #[test]
    fn rows_are_merged_until_a_chart_can_hold_them() {
        let samples = Samples::new((0..=2_000).map(|n| sample(n * 250, n * 25, n)).collect());
        let rows = samples.rows(10_000 * MS, u64::MAX);
        assert_eq!(rows.len(), 500);
        assert!(rows.iter().all(|row| (row.system_cores.unwrap() - 0.1).abs() < 1e-9 && row.generator_cores.is_none()));
        assert_eq!((rows[0].t_s, rows[0].system_rss_bytes), (-9.0, Some(4)));
    }

    #[test]
    fn this_process_is_sampled_on_request_and_on_the_beat() {
        let sampler = Sampler::start(None).unwrap();
        let begin_ns = clock::monotonic_ns();
        while clock::monotonic_ns() - begin_ns < 400 * MS {
            std::hint::black_box(begin_ns);
        }
        sampler.sample_now();
        let samples = sampler.finish();
        assert!(samples.all().len() >= 4, "start, beat, request, end: {}", samples.all().len());
        let last_ns = samples.all().last().unwrap().at_ns;
        let usage = samples.resources(begin_ns, last_ns).generator.unwrap();
        assert!(usage.cpu_seconds > 0.0 && usage.peak_rss_bytes > 100_000, "{usage:?}");
    }
}
