//! Resource usage of this process so far.

/// CPU time of all threads, seconds (user and system).
pub fn cpu_s() -> f64 {
    cpu_of(libc::RUSAGE_SELF)
}

/// CPU time of all children that have been waited for, seconds.
pub fn children_cpu_s() -> f64 {
    cpu_of(libc::RUSAGE_CHILDREN)
}

fn cpu_of(whom: libc::c_int) -> f64 {
    // SAFETY: rusage is plain data, for which all zeros is a value; getrusage fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whom, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Resident set, bytes; `field` is `VmRSS` (now) or `VmHWM` (highest).
pub fn resident_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
