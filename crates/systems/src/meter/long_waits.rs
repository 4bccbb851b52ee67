//! Long waits of threads for a CPU.
//!
//! The sum of run-queue waits does not show long waits. A thread that wakes up 2,000 times a second and waits 10 µs
//! each time, as on any idle virtual machine, waits 20 ms in a second. A thread that waited once for 15 ms has nearly
//! the same sum, but delayed 1 % of the messages of that second by up to 15 ms. So threads are sampled many times a
//! second. Of the wait between two samples, only the part above the ordinary wait is added: the number of times that
//! the thread got a CPU, times the ordinary wait for each.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::run_queue::{Schedstat, parse, schedstat};
use super::switches::threads;

/// Largest ordinary wait each time that a thread gets a CPU, ns. Such waits are not reported. The mean on an idle
/// virtual machine is 8 to 18 µs.
pub const ORDINARY_NS: u64 = 50_000;
/// The limit of an ordinary wait, computed from the thread's usual wait: a factor, and ns to add.
const ORDINARY: (f64, f64) = (1.5, 5_000.0);
/// Fewest waits whose mean is used to update the usual wait of a thread.
const FEWEST: u64 = 4;
/// Shortest excess over ordinary waits between two samples that counts, ns. A smaller excess is noise of the machine.
const LONG_NS: u64 = 500_000;
/// Shortest time between two samples: about a time slice of the scheduler.
const LEAST: Duration = Duration::from_millis(4);
/// Pause after a sample, as a multiple of the time that the sample took: sampling uses at most 0.25 % of a core, unless
/// a sample takes more than 0.25 ms. The pause is 25 times [`LEAST`] at most.
const TIMES: u32 = 400;
/// Most threads that are sampled: each needs an open descriptor. Of more threads, those that ran and waited longest are.
const MOST_THREADS: usize = 256;

/// Samples the threads of some processes repeatedly, in a separate thread, until it is dropped.
#[derive(Debug)]
pub struct LongWaits {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    threads: Threads,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LongWaits {
    /// Starts the sampling thread. No threads are sampled until the first call of [`LongWaits::read`].
    pub fn start() -> std::io::Result<LongWaits> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("long waits".to_owned()).stack_size(128 << 10).spawn({
            let shared = Arc::clone(&shared);
            move || {
                raise_priority();
                wait_until_ended(&shared)
            }
        })?;
        Ok(LongWaits { shared, thread: Some(thread) })
    }

    /// Takes a sample, and from now on samples all threads that these processes have now. Returns the long waits since
    /// the start, ns; `None` if no thread can be sampled.
    pub fn read(&self, pids: &[u32]) -> Option<u64> {
        // Not under the lock, for which the sampling thread waits: a system may have thousands of threads.
        let chosen = busiest(pids);
        let mut state = self.shared.lock();
        state.threads.find(chosen);
        state.threads.sample();
        (!state.threads.known.is_empty()).then_some(state.threads.long_ns)
    }
}

impl Drop for LongWaits {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread returns no result.
            let _ = thread.join();
        }
    }
}

/// Gives the calling thread a priority above all others, including pubmark's real-time threads (priority 10), if it has
/// the right to. A thread that gets no CPU samples rarely, and a long wait is then hidden among the short ones of a
/// longer interval. [`TIMES`] limits its use of CPU time.
fn raise_priority() {
    // SAFETY: `sched_param` has only integer fields, for which zero is valid; musl has more of them than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 11;
    // Without the right (CAP_SYS_NICE), the thread keeps its normal priority.
    // SAFETY: `parameters` is a valid sched_param; 0 names the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
}

fn wait_until_ended(shared: &Shared) {
    let mut state = shared.lock();
    while !state.ended {
        let began = Instant::now();
        state.threads.sample();
        let pause = (began.elapsed() * TIMES).clamp(LEAST, LEAST * 25);
        state = match shared.ended.wait_timeout(state, pause) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

#[derive(Debug, Default)]
struct Threads {
    known: HashMap<(u32, u32), Thread>,
    long_ns: u64,
}

#[derive(Debug)]
struct Thread {
    /// The thread's `schedstat`. It stays the file of this thread even if another thread gets the same id.
    file: File,
    last: Schedstat,
    usual: Usual,
}

impl Threads {
    /// Replaces the set of sampled threads, each with its process.
    fn find(&mut self, now: Vec<(u32, u32)>) {
        // The file of a thread that ended cannot be read any more.
        self.known.retain(|name, thread| now.contains(name) && read(&thread.file).is_some());
        for name @ (pid, thread) in now {
            if self.known.contains_key(&name) {
                continue;
            }
            let file = File::open(format!("/proc/{pid}/task/{thread}/schedstat"));
            if let Some((file, last)) = file.ok().and_then(|file| read(&file).map(|last| (file, last))) {
                self.known.insert(name, Thread { file, last, usual: Usual::default() });
            }
        }
    }

    fn sample(&mut self) {
        for thread in self.known.values_mut() {
            let Some(now) = read(&thread.file) else { continue };
            self.long_ns = self.long_ns.saturating_add(thread.usual.long_ns(&thread.last, &now));
            thread.last = now;
        }
    }
}

/// The threads of these processes, each with its process; of many, those that ran and waited longest.
fn busiest(pids: &[u32]) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> =
        pids.iter().flat_map(|pid| threads(*pid).into_iter().map(|thread| (*pid, thread))).collect();
    if found.len() > MOST_THREADS {
        // Threads that neither run nor wait have no long waits.
        found.sort_by_cached_key(|(pid, thread)| {
            Reverse(schedstat(&format!("/proc/{pid}/task/{thread}")).map(|now| now.run_ns + now.wait_ns))
        });
        found.truncate(MOST_THREADS);
    }
    found
}

fn read(file: &File) -> Option<Schedstat> {
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    parse(std::str::from_utf8(&text[..length]).ok()?)
}

/// Mean wait of a thread that nothing delays, ns. It follows smaller means quickly and larger ones slowly.
#[derive(Clone, Copy, Debug)]
struct Usual(f64);

impl Default for Usual {
    fn default() -> Usual {
        Usual(ORDINARY_NS as f64)
    }
}

impl Usual {
    /// The wait above ordinary waits between two samples, ns; 0 if it is below [`LONG_NS`].
    fn long_ns(&mut self, before: &Schedstat, now: &Schedstat) -> u64 {
        let waited_ns = now.wait_ns.saturating_sub(before.wait_ns);
        let slices = now.slices.saturating_sub(before.slices);
        let ordinary_ns = (self.0 * ORDINARY.0 + ORDINARY.1).min(ORDINARY_NS as f64) as u64;
        if slices >= FEWEST {
            let mean_ns = waited_ns as f64 / slices as f64;
            self.0 += (mean_ns - self.0) / if mean_ns < self.0 { 8.0 } else { 64.0 };
        }
        let above_ns = waited_ns.saturating_sub(slices.saturating_mul(ordinary_ns));
        if above_ns < LONG_NS { 0 } else { above_ns }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn stat(wait_us: u64, slices: u64) -> Schedstat {
        Schedstat { run_ns: 0, wait_ns: wait_us * 1_000, slices }
    }

    #[test]
    fn usual_waits_do_not_count_and_a_long_one_is_reported() {
        let before = stat(1_000, 10);
        let long_ns = |before: &Schedstat, now: &Schedstat| Usual::default().long_ns(before, now);
        assert_eq!(long_ns(&before, &stat(1_000 + 23 * 18, 33)), 0, "23 wake-ups of 18 µs");
        assert_eq!(long_ns(&before, &stat(1_500, 11)), 0, "below half a millisecond");
        assert_eq!(long_ns(&before, &stat(1_000 + 15_000, 11)), 14_950_000);
        assert_eq!(long_ns(&before, &stat(1_000 + 15_000 + 23 * 18, 34)), 14_214_000);
        assert_eq!(long_ns(&before, &stat(0, 0)), 0, "a count that falls");
        let most = Schedstat { run_ns: u64::MAX, wait_ns: u64::MAX, slices: u64::MAX };
        assert_eq!(long_ns(&stat(0, 0), &most), 0);
    }

    #[test]
    fn a_long_wait_is_detected_among_short_ones_once_their_usual_length_is_known() {
        let mut usual = Usual::default();
        let mut now = stat(0, 0);
        let mut sample = |waited_us: u64, slices: u64| {
            let before = now;
            now = Schedstat { wait_ns: now.wait_ns + waited_us * 1_000, slices: now.slices + slices, ..now };
            usual.long_ns(&before, &now)
        };
        // 92 waits of 12 µs in 4 ms.
        for _ in 0..100 {
            assert_eq!(sample(92 * 12, 92), 0);
        }
        assert!(
            (900_000..1_100_000).contains(&sample(92 * 12 + 2_000, 92)),
            "2 ms less what 92 waits may be above 12 µs"
        );
        // A machine that becomes a third slower causes no long waits.
        assert_eq!(sample(92 * 16, 92), 0);
    }

    #[test]
    fn a_thread_beside_others_on_its_processor_waits_long_and_one_that_sleeps_does_not() {
        let busy = || -> Child {
            let words = ["-c", "0", "sh", "-c", "while :; do :; done"];
            Command::new("taskset").args(words).stdin(Stdio::null()).spawn().unwrap()
        };
        let mut children = [busy(), busy(), busy()];
        let mut sleeper = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (of_busy, of_sleeper) = (LongWaits::start().unwrap(), LongWaits::start().unwrap());
        let victim = [children[0].id()];
        let before = (of_busy.read(&victim).unwrap(), of_sleeper.read(&[sleeper.id()]).unwrap());
        thread::sleep(Duration::from_millis(1_200));
        let after = (of_busy.read(&victim).unwrap(), of_sleeper.read(&[sleeper.id()]).unwrap());
        for child in children.iter_mut().chain([&mut sleeper]) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // The process has a third of the CPU, or less if something else runs on it too.
        assert!(after.0 - before.0 > 400_000_000, "{before:?} {after:?}");
        assert!(after.1 - before.1 < 100_000_000, "{before:?} {after:?}");
        assert_eq!(of_busy.read(&victim), None, "ended");
    }
}
