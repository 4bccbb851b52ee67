//! What a system and pubmark itself cost, sampled during a run.
//!
//! A thread takes a sample every [`INTERVAL`]; [`Sampler::sample_now`] adds a sample at an edge of the measured window.
//! So the usage between the edges is measured, and only figures between two samples are interpolated. CPU time, memory,
//! threads and control groups are in every sample. Descriptors, context switches, run-queue waits, bytes of sockets and
//! the proportional set cost more to read: they are in a sample once a second at most, less often the longer they take
//! ([`Ration`]), and in the samples at the edges.
//!
//! [`Ration`]: crate::meter::Ration

mod meters;
mod samples;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::cgroup::CostSource;
use crate::clock;
use crate::meter::{RunQueueMeter, Workers};

use meters::SideMeters;
pub use samples::{LiveUsage, Sample, Samples, UsageNow};

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// Time between the two readings of run-queue waits: on an idle machine a thread that is ready runs within a
/// millisecond.
pub const WAIT_LOOK: Duration = Duration::from_millis(100);

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
    meters: SideMeters,
    samples: Vec<Sample>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A sample that panicked midway has pushed nothing, so the state is consistent.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn sample(&mut self, occasion: Occasion) {
        let sample = self.meters.take(occasion);
        self.samples.push(sample);
    }
}

/// Why a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// The interval has passed.
    Beat,
    /// An edge of the window, or the start or end of the sampler: figures that cost more are read, too.
    Edge,
}

impl Sampler {
    /// Starts sampling, and takes a sample at once. `places` are the system's brokers, empty if the system is not on
    /// this machine. Traffic of this process to and from `client_ports` counts as pubmark's own. What `workers` use
    /// counts as pubmark's own, too. Call this once the system is ready, because its listening ports are looked up now,
    /// and before clients connect, because the first sample gives the idle memory. Sockets of other network namespaces
    /// cannot be read: if clients are behind links, `sees_clients` is false, and their traffic is unknown.
    pub fn start(
        places: &[CostSource],
        client_ports: &[u16],
        workers: Workers,
        sees_clients: bool,
    ) -> io::Result<Sampler> {
        let meters = SideMeters::new(places, client_ports, workers, sees_clients);
        let mut state = State { meters, samples: Vec::new(), ended: false };
        state.sample(Occasion::Edge);
        let shared = Arc::new(Shared { state: Mutex::new(state), ended: Condvar::new() });
        let thread = thread::Builder::new().name("sampler".to_owned()).stack_size(256 << 10).spawn({
            let shared = Arc::clone(&shared);
            move || sample_until_ended(&shared)
        })?;
        Ok(Sampler { shared, thread: Some(thread) })
    }

    /// Takes a sample now, in the calling thread.
    pub fn sample_now(&self) {
        self.shared.lock().sample(Occasion::Edge);
    }

    /// What is used now, from the samples taken so far. Takes no sample.
    pub fn usage_now(&self) -> LiveUsage {
        LiveUsage::of(&self.shared.lock().samples)
    }

    /// Do threads of the system wait for a CPU, rather than run or sleep? Reads their waits twice, [`WAIT_LOOK`] apart.
    /// False if the waits cannot be read.
    pub fn system_waits(&self) -> bool {
        let pids = self.shared.lock().meters.system_pids();
        let mut meter = RunQueueMeter::default();
        let mut look = || meter.read(&pids, clock::monotonic_ns());
        let before = look();
        thread::sleep(WAIT_LOOK);
        let waited_ns = look().zip(before).map_or(0, |(after, before)| after.wait_ns.saturating_sub(before.wait_ns));
        waited_ns * 2 >= WAIT_LOOK.as_nanos() as u64
    }

    /// Takes a last sample, stops, and returns all samples in order of time.
    pub fn finish(mut self) -> Samples {
        self.sample_now();
        self.end();
        let mut state = self.shared.lock();
        let (brokers, groups) = (state.meters.brokers(), state.meters.groups());
        Samples::new(std::mem::take(&mut state.samples), brokers).of_groups(groups)
    }

    fn end(&mut self) {
        self.shared.lock().ended = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread returns no result. If it panicked, its samples are missing and the panic was printed.
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
            state.sample(Occasion::Beat);
            // The next sample is on a multiple of the interval. Samples missed on a busy machine are left out.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_sampled_on_request_and_on_the_beat() {
        let sampler = Sampler::start(&[], &[], Workers::default(), true).unwrap();
        let begin_ns = clock::monotonic_ns();
        while clock::monotonic_ns() - begin_ns < 400_000_000 {
            std::hint::black_box(begin_ns);
        }
        sampler.sample_now();
        let samples = sampler.finish();
        assert!(samples.all().len() >= 4, "start, beat, request, end: {}", samples.all().len());
        let last_ns = samples.all().last().unwrap().at_ns;
        let resources = samples.resources(begin_ns, last_ns);
        let usage = resources.generator.unwrap();
        assert!(usage.cpu_seconds > 0.0 && usage.peak_rss_bytes > 100_000, "{usage:?}");
        assert!(usage.peak_pss_bytes > Some(100_000) && usage.idle_rss_bytes > Some(100_000), "{usage:?}");
        assert!(usage.threads >= Some(2) && usage.descriptors >= Some(3), "{usage:?}");
        assert!(usage.voluntary_switches.is_some() && usage.received_bytes.is_some(), "{usage:?}");
        // No system was sampled.
        assert_eq!((usage.cgroup_peak_bytes, resources.system, resources.limits), (None, None, None));
    }
}
