//! The clocks. No other code reads them.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::time::Duration;

use crate::run_clock::RunClock;

/// Longest wait for a time of [`monotonic_ns`] without reading it again. The kernel ends waits by the machine's clock, and the run's
/// clock is estimated anew while a run goes on: a wait of a minute that was computed once ends by the estimate of a minute ago.
pub const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The run's clock that this process follows; null while it uses the machine's.
static FOLLOWED: AtomicPtr<RunClock> = AtomicPtr::new(ptr::null_mut());

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clocks used here exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn followed() -> Option<&'static RunClock> {
    // SAFETY: null, or what `follow` stored: a `'static` reference.
    unsafe { FOLLOWED.load(Relaxed).as_ref() }
}

/// From now on, [`monotonic_ns`] in this process is the run's time of this clock, once that is set.
pub fn follow(clock: &'static RunClock) {
    FOLLOWED.store(ptr::from_ref(clock).cast_mut(), Relaxed);
}

/// The clock of every stamp, in nanoseconds: `CLOCK_MONOTONIC` on one host, the run's time in a worker of a node
/// ([`crate::run_clock`]).
pub fn monotonic_ns() -> u64 {
    match followed().and_then(RunClock::mapping) {
        Some(mapping) => mapping.run_ns(raw_ns()),
        None => read(libc::CLOCK_MONOTONIC),
    }
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: the machine's own clock, which no time service adjusts.
pub fn raw_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// `CLOCK_MONOTONIC` in nanoseconds, whatever clock this process follows: for the kernel, and for times of this machine only.
pub fn machine_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// [`machine_ns`] minus [`monotonic_ns`], ns: 0 in a process that follows no run's clock.
pub fn machine_ahead_ns() -> i64 {
    let mapping = followed().and_then(RunClock::mapping);
    mapping.map_or(0, |mapping| machine_ns().wrapping_sub(mapping.run_ns(raw_ns())) as i64)
}

/// By how much [`monotonic_ns`] may differ from that of another machine of the run, ns, as estimated now ([`RunClock::apart_ns`]);
/// `None` unless several machines share it.
pub fn apart_ns() -> Option<u64> {
    followed().filter(|clock| clock.mapping().is_some()).map(RunClock::apart_ns)
}

/// Converts a length of [`monotonic_ns`] to the machine's clock, which the kernel's sleeps use.
pub fn machine_length(length_ns: u64) -> Duration {
    let mapping = followed().and_then(RunClock::mapping);
    Duration::from_nanos(mapping.map_or(length_ns, |mapping| mapping.local_length_ns(length_ns)))
}

/// How long to wait next for a time of [`monotonic_ns`], on the machine's clock: at most [`LONGEST_WAIT`], so that the caller asks
/// again until it is zero, which means that the time has come.
pub fn wait_until(until_ns: u64) -> Duration {
    machine_length(until_ns.saturating_sub(monotonic_ns())).min(LONGEST_WAIT)
}

/// Makes sleeps of the calling thread end on time: the kernel may otherwise let ordinary threads sleep 50 µs longer, to wake up
/// several at once.
pub fn make_sleeps_exact() {
    // SAFETY: numbers only. It cannot fail for the calling thread, and only the exactness of sleeps depends on it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// `CLOCK_REALTIME` in nanoseconds: the kernel's receive stamps use it.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_computed_again_after_a_second_and_is_over_at_its_time() {
        let now_ns = monotonic_ns();
        assert_eq!(wait_until(now_ns + 3_600_000_000_000), LONGEST_WAIT);
        let wait = wait_until(now_ns + 900_000_000);
        assert!(wait > Duration::ZERO && wait <= Duration::from_millis(900), "{wait:?}");
        assert_eq!(wait_until(now_ns), Duration::ZERO);
    }
}
