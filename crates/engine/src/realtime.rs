//! SCHED_FIFO for the calling thread, and a limit on the CPU time that it may use on a small machine.

use std::time::Duration;

use crate::plan::REALTIME_PRIORITY;

/// Sets the calling thread to SCHED_FIFO.
///
/// # Errors
/// The thread does not have the right (CAP_SYS_NICE or an rtprio limit).
pub fn claim() -> std::io::Result<()> {
    set(libc::SCHED_FIFO, REALTIME_PRIORITY)
}

/// Sets the calling thread to a priority above all threads that measure. For threads that use only microseconds a
/// second, to send heartbeats or to observe the waits of other threads.
pub fn claim_higher_priority() -> std::io::Result<()> {
    set(libc::SCHED_FIFO, REALTIME_PRIORITY + 1)
}

/// Returns the calling thread to the ordinary scheduling policy.
fn give_up() -> std::io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

fn set(policy: i32, priority: i32) -> std::io::Result<()> {
    // SAFETY: the structure has only integers, for which zero is valid; musl has more fields than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: `parameters` is a valid sched_param; 0 means the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &parameters) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// All threads of this machine that request SCHED_FIFO for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeThreads {
    /// Their number. They share the budget.
    pub threads: usize,
    /// [`crate::plan::RunPlan::shares_cores`].
    pub shares_cores: bool,
}

/// On machines with more cores than this, one core remains for the system under test, whatever pubmark's threads do.
const FEW_CORES: usize = 4;
/// Fraction of one core that all real-time threads together may use on a machine with few cores, before they continue
/// at ordinary priority.
const SHARE: f64 = 0.5;
/// Period of a budget: the longest time for which the system under test may have to wait.
const PERIOD: Duration = Duration::from_millis(10);
/// Interval between two reads of the CPU time within a period.
const CHECK_INTERVAL: Duration = Duration::from_micros(500);

/// A thread under SCHED_FIFO, with its budget.
#[derive(Debug)]
pub struct Realtime {
    budget: Option<Budget>,
    clock: Periods,
}

impl Realtime {
    /// Sets the calling thread, one of `all`, to SCHED_FIFO; `None` without the right to.
    pub fn claim(all: RealtimeThreads) -> Option<Realtime> {
        claim().ok()?;
        Some(Realtime { budget: Budget::here(all), clock: Periods::default() })
    }

    /// The thread itself must call this often, with its CPU time. Returns whether the thread is under SCHED_FIFO from
    /// now on.
    pub fn check(&mut self, now_ns: u64, cpu_ns: impl FnOnce() -> u64) -> bool {
        let Some(budget) = self.budget else { return true };
        let wanted = self.clock.check(budget, now_ns, cpu_ns);
        // Both changes were permitted before. If one is no longer permitted, the thread stays in its present state and
        // is counted accordingly.
        let changed = match wanted {
            Some(true) => claim(),
            Some(false) => give_up(),
            None => Ok(()),
        };
        if let (Some(is_realtime), Ok(())) = (wanted, changed) {
            self.clock.set(is_realtime, now_ns);
        }
        !self.clock.is_ordinary
    }

    /// Total time in which the thread was not under SCHED_FIFO because its budget was used up, ns.
    pub fn ordinary_ns(&self, now_ns: u64) -> u64 {
        self.clock.ordinary_ns(now_ns)
    }
}

/// CPU time that a thread may use under SCHED_FIFO in each [`PERIOD`], ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget(u64);

impl Budget {
    /// The budget on this machine; `None` if cores remain for the system under test.
    fn here(all: RealtimeThreads) -> Option<Budget> {
        // SAFETY: the call accesses no memory of this process.
        let online = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1);
        // The number of the standard library contains the quota of the control group, which real-time threads do not have.
        let allowed = allowed_cores().unwrap_or(online);
        leaves_few_cores(online, allowed, all.shares_cores).then(|| Budget::of(all.threads))
    }

    fn of(threads: usize) -> Budget {
        Budget((SHARE * PERIOD.as_nanos() as f64) as u64 / threads.max(1) as u64)
    }
}

/// Whether threads that may run on `allowed` cores, on a machine with `online` cores, could take all those of the system. A system
/// that inherited the same cores (`taskset`, a CPU set) has no others, however many the machine has. Any other system has what the
/// threads do not use.
fn leaves_few_cores(online: usize, allowed: usize, shares_cores: bool) -> bool {
    let of_system = if shares_cores { allowed } else { online };
    of_system <= FEW_CORES && allowed >= of_system
}

/// Number of cores on which the calling thread may run, by its affinity.
fn allowed_cores() -> Option<usize> {
    // SAFETY: an all-zero set is valid, the call fills it, and its size is given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let found = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) == 0;
        found.then(|| libc::CPU_COUNT(&set) as usize)
    }
}

/// State of a thread's present period.
#[derive(Debug, Default)]
struct Periods {
    began_ns: u64,
    cpu_at_start_ns: u64,
    next_check_ns: u64,
    is_ordinary: bool,
    ordinary_since_ns: u64,
    ordinary_ns: u64,
}

impl Periods {
    /// Whether the thread must become real-time (`true`) or ordinary (`false`); `None` if it does not change.
    fn check(&mut self, budget: Budget, now_ns: u64, cpu_ns: impl FnOnce() -> u64) -> Option<bool> {
        if now_ns < self.next_check_ns {
            return None;
        }
        let cpu_ns = cpu_ns();
        if now_ns - self.began_ns >= PERIOD.as_nanos() as u64 {
            (self.began_ns, self.cpu_at_start_ns) = (now_ns, cpu_ns);
            // The thread cannot have used up its budget earlier.
            self.next_check_ns = now_ns + budget.0;
            return self.is_ordinary.then_some(true);
        }
        if cpu_ns - self.cpu_at_start_ns < budget.0 {
            self.next_check_ns = now_ns + CHECK_INTERVAL.as_nanos() as u64;
            return None;
        }
        self.next_check_ns = self.began_ns + PERIOD.as_nanos() as u64;
        (!self.is_ordinary).then_some(false)
    }

    /// The thread became real-time, or ordinary.
    fn set(&mut self, is_realtime: bool, now_ns: u64) {
        self.ordinary_ns = self.ordinary_ns(now_ns);
        (self.is_ordinary, self.ordinary_since_ns) = (!is_realtime, now_ns);
    }

    fn ordinary_ns(&self, now_ns: u64) -> u64 {
        let present = if self.is_ordinary { now_ns.saturating_sub(self.ordinary_since_ns) } else { 0 };
        self.ordinary_ns + present
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_system_with_the_same_few_cores_is_left_a_part_of_them() {
        assert!(leaves_few_cores(4, 4, false) && leaves_few_cores(4, 4, true));
        assert!(!leaves_few_cores(64, 64, false) && !leaves_few_cores(64, 64, true), "most cores are free");
        assert!(!leaves_few_cores(4, 1, false), "pinned by `--pin`: the system has the other three");
        assert!(leaves_few_cores(4, 1, true), "`taskset -c 0`: the system has the same core");
        assert!(leaves_few_cores(64, 4, true) && !leaves_few_cores(64, 8, true));
    }

    #[test]
    fn a_thread_that_used_its_budget_is_ordinary_until_the_next_period() {
        let budget = Budget::of(2);
        assert_eq!(budget, Budget(2 * MS + MS / 2));
        let mut periods = Periods::default();
        let start = 100 * MS;
        assert_eq!(periods.check(budget, start, || 7 * MS), None, "the first period begins");
        assert_eq!(periods.check(budget, start + MS, || panic!("it cannot have used it up")), None);
        assert_eq!(periods.check(budget, start + 3 * MS, || 9 * MS), None, "2 ms of 2.5");
        assert_eq!(periods.check(budget, start + 4 * MS, || 10 * MS), Some(false));
        assert_eq!(periods.ordinary_ns(start + 6 * MS), 0, "it is counted when it has happened");
        periods.set(false, start + 4 * MS);
        assert_eq!(periods.ordinary_ns(start + 6 * MS), 2 * MS);
        assert_eq!(periods.check(budget, start + 9 * MS, || panic!("it waits for the next period")), None);
        assert_eq!(periods.check(budget, start + 11 * MS, || 15 * MS), Some(true));
        periods.set(true, start + 11 * MS);
        assert_eq!(periods.ordinary_ns(start + 20 * MS), 7 * MS);
        assert_eq!(periods.check(budget, start + 14 * MS, || 17 * MS), None, "a budget of its own");
    }

    #[test]
    fn a_thread_that_slept_begins_a_period_when_it_wakes() {
        let budget = Budget::of(1);
        let mut periods = Periods::default();
        periods.check(budget, 100 * MS, || 0);
        assert_eq!(periods.check(budget, 500 * MS, || 6 * MS), None);
        assert_eq!(periods.check(budget, 505 * MS, || 10 * MS), None, "4 ms of 5");
        assert_eq!(periods.check(budget, 506 * MS, || 11 * MS), Some(false));
    }
}
