//! `CLOCK_MONOTONIC`, the clock of samples: the same that stamps messages.

/// Now, ns of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Time of any clock, ns; `None` if there is no such clock (any more).
pub(crate) fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; a clock that does not exist makes the call fail.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
