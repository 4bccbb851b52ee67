//! How long the threads of processes were ready to run and had no CPU, and how often they got one: the second field
//! (ns) and the third field of `/proc/PID/task/TID/schedstat`. The kernel updates both whenever a thread gets a CPU.

use std::collections::HashMap;
use std::fs;

use super::switches::threads;

/// What threads waited for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQueueWait {
    /// Time that threads were ready to run and had no CPU, ns.
    pub wait_ns: u64,
    /// Times that threads got a CPU. A wait that has not ended at the time of the reading is not included.
    pub slices: u64,
}

impl RunQueueWait {
    fn add(&mut self, other: RunQueueWait) {
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.slices = self.slices.saturating_add(other.slices);
    }
}

/// Adds up the run-queue wait of all threads of some processes.
///
/// The kernel counts a wait when it ends. A thread that was ready at one reading, is ready at the next, and has not run
/// in between has waited all that time; this meter adds that time until the kernel counts it. The wait between the last
/// reading of a thread and its end is missed.
#[derive(Debug, Default)]
pub struct RunQueueMeter {
    threads: HashMap<(u32, u32), ThreadState>,
    round: u32,
    /// The waits of threads that have ended.
    ended: RunQueueWait,
}

#[derive(Clone, Copy, Debug)]
struct ThreadState {
    count: Schedstat,
    /// The counts at the first reading of the thread, which do not belong to this measurement.
    before: Schedstat,
    /// Time since which the thread has been ready to run and has not run, ns of `CLOCK_MONOTONIC`.
    waits_since_ns: Option<u64>,
    round: u32,
}

impl ThreadState {
    fn waited(&self, now_ns: u64) -> RunQueueWait {
        let still = self.waits_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        RunQueueWait {
            wait_ns: self.count.wait_ns.saturating_sub(self.before.wait_ns).saturating_add(still),
            slices: self.count.slices.saturating_sub(self.before.slices),
        }
    }
}

/// The three fields of a thread's `schedstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedstat {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) slices: u64,
}

impl RunQueueMeter {
    /// Reads all threads of these processes. Returns the wait since the first reading of each thread; `None` if no
    /// thread can be read.
    pub fn read(&mut self, pids: &[u32], now_ns: u64) -> Option<RunQueueWait> {
        self.round = self.round.wrapping_add(1);
        let first = self.threads.is_empty() && self.ended == RunQueueWait::default();
        let mut any = false;
        for (pid, thread) in pids.iter().flat_map(|pid| threads(*pid).into_iter().map(move |thread| (*pid, thread))) {
            let folder = format!("/proc/{pid}/task/{thread}");
            let Some(count) = schedstat(&folder) else { continue };
            any = true;
            let last = self.threads.get(&(pid, thread)).copied();
            // A smaller count belongs to another thread that got the same id.
            let last = last.filter(|last| last.count.run_ns <= count.run_ns && last.count.slices <= count.slices);
            let waits_since_ns = is_ready(&folder).then(|| {
                let since = last.filter(|last| last.count == count).and_then(|last| last.waits_since_ns);
                since.unwrap_or(now_ns)
            });
            // A thread that started after the first reading counts from its start.
            let before = last.map_or(if first { count } else { Schedstat::default() }, |last| last.before);
            let seen = ThreadState { count, before, waits_since_ns, round: self.round };
            if let (None, Some(other)) = (last, self.threads.insert((pid, thread), seen)) {
                self.ended.add(other.waited(0));
            }
        }
        let (round, ended) = (self.round, &mut self.ended);
        self.threads.retain(|_, seen| {
            let is_alive = seen.round == round;
            if !is_alive {
                ended.add(seen.waited(0));
            }
            is_alive
        });
        any.then(|| {
            let mut sum = self.ended;
            self.threads.values().for_each(|seen| sum.add(seen.waited(now_ns)));
            sum
        })
    }
}

/// Reads a thread's time on a CPU, time waited for one, and number of times that it got one.
pub(super) fn schedstat(folder: &str) -> Option<Schedstat> {
    parse(&fs::read_to_string(format!("{folder}/schedstat")).ok()?)
}

pub(super) fn parse(text: &str) -> Option<Schedstat> {
    let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
    Some(Schedstat { run_ns: numbers.next()?, wait_ns: numbers.next()?, slices: numbers.next()? })
}

/// Is the thread running, or ready to run?
fn is_ready(folder: &str) -> bool {
    let text = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    text.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('R'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::clock;

    /// A process that computes without end, on the first CPU that this process may use.
    fn busy(nice: &str) -> Child {
        let script = "while :; do :; done";
        let command = ["-n", nice, "taskset", "-c", "0", "sh", "-c", script];
        Command::new("nice").args(command).stdin(Stdio::null()).spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_thread_that_others_keep_from_running_waits_and_one_that_sleeps_does_not() {
        let spawned = Instant::now();
        let (victim, hogs) = (busy("19"), [busy("0"), busy("0"), busy("0")]);
        let mut sleeper = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(300));
        let (mut of_victim, mut of_sleeper) = (RunQueueMeter::default(), RunQueueMeter::default());
        let began = Instant::now();
        let mut last_ns = 0;
        let waited_ns = loop {
            let waited_ns = of_victim.read(&[victim.id()], clock::monotonic_ns()).unwrap().wait_ns;
            assert!(waited_ns >= last_ns, "it falls from {last_ns} to {waited_ns}");
            last_ns = waited_ns;
            assert!(of_sleeper.read(&[sleeper.id()], clock::monotonic_ns()).unwrap().wait_ns < 100_000_000);
            if began.elapsed() > Duration::from_millis(1_500) {
                break waited_ns as u128;
            }
            thread::sleep(Duration::from_millis(100));
        };
        let lived_ns = spawned.elapsed().as_nanos();
        hogs.into_iter().for_each(end);
        end(victim);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        // Against three processes with 68 times its weight, the process gets 0.5 % of the CPU.
        assert!((900_000_000..=lived_ns).contains(&waited_ns), "waited {waited_ns} ns of {lived_ns} ns");
    }

    #[test]
    fn context_switches_count_from_the_first_reading_on() {
        let mut echo = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (echo.stdin.take().unwrap(), echo.stdout.take().unwrap());
        let mut record = |times: u32| {
            for _ in 0..times {
                input.write_all(b"x").unwrap();
                output.read_exact(&mut [0]).unwrap();
            }
        };
        record(50);
        let mut meter = RunQueueMeter::default();
        assert_eq!(meter.read(&[echo.id()], clock::monotonic_ns()).unwrap().slices, 0, "not what was before");
        record(50);
        let slices = meter.read(&[echo.id()], clock::monotonic_ns()).unwrap().slices;
        assert!((49..=200).contains(&slices), "{slices}");
        drop(input);
        echo.wait().unwrap();
    }

    #[test]
    fn a_line_that_no_kernel_writes_is_no_count() {
        assert_eq!(parse("7 8 9\n"), Some(Schedstat { run_ns: 7, wait_ns: 8, slices: 9 }));
        assert_eq!(parse("7 8 9 10 and more"), Some(Schedstat { run_ns: 7, wait_ns: 8, slices: 9 }));
        for hostile in ["", "7 8", "7 -8 9", "7 8 x", "18446744073709551616 0 0", "\0 \0 \0", "0x7 8 9", "7,8,9"] {
            assert_eq!(parse(hostile), None, "{hostile:?}");
        }
        let most = parse("18446744073709551615 18446744073709551615 18446744073709551615").unwrap();
        let seen = ThreadState { count: most, before: Schedstat::default(), waits_since_ns: Some(0), round: 0 };
        assert_eq!(seen.waited(u64::MAX).wait_ns, u64::MAX, "no overflow");
    }

    #[test]
    fn a_wait_that_cannot_be_read_is_unknown() {
        assert_eq!(RunQueueMeter::default().read(&[u32::MAX >> 1], 0), None);
    }
}
