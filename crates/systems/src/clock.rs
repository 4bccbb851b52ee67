//! `CLOCK_MONOTONIC`, the clock of samples; the time stamps of messages use the same clock.

/// Now, ns of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// The clock of a process's CPU time; `None` if the process has ended.
pub(crate) fn of_process(pid: u32) -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: `clock` is valid for writing; a process that does not exist makes the call fail.
    (unsafe { libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &mut clock) } == 0).then_some(clock)
}

/// Time of any clock, ns; `None` if the clock does not exist (any more).
pub(crate) fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; a clock that does not exist makes the call fail.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
