//! Kernel data of this machine: its clocks, and the usage of processes.

/// Identifies the clock of this machine: boot id of the kernel, and time namespace. Machines and containers with the
/// same value read the same clock.
pub(crate) fn boot() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/time").map(|link| link.display().to_string()).unwrap_or_default();
    match boot.trim() {
        "" => String::new(),
        boot => format!("{boot} {namespace}"),
    }
}

/// Whether a time service steers this machine's clock, and the error that it estimates: adjtimex(2), which chrony, ntpd
/// and PTP tools keep up to date. It is for information only, because the run's clock does not depend on it.
pub(crate) fn discipline() -> String {
    // SAFETY: a timex of zeros is valid; it requests no change.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is valid for writing.
    let state = unsafe { libc::adjtimex(&mut timex) };
    if state < 0 {
        return format!("unknown: {}", std::io::Error::last_os_error());
    }
    if state == libc::TIME_ERROR || timex.status & libc::STA_UNSYNC != 0 {
        return "not synchronised".to_owned();
    }
    format!("synchronised, estimated error {} µs", timex.esterror)
}

/// Gives the calling thread a priority above all others, if it has the right to. The thread sends heartbeats, which
/// take microseconds twice a second: a machine whose cores are all busy must not appear to be lost. Child processes do
/// not inherit the priority.
pub(crate) fn stay_ahead() {
    // SAFETY: `sched_param` has only integer fields, for which zero is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = pubmark_engine::plan::REALTIME_PRIORITY + 1;
    // Without the right (CAP_SYS_NICE), the thread keeps its normal priority.
    // SAFETY: `parameters` is a valid sched_param; 0 names the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) };
}

/// CPU time of this process so far, ns.
pub(crate) fn own_cpu_ns() -> u64 {
    // SAFETY: a rusage of zeros is valid, and the call fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing; RUSAGE_SELF always exists.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// CPU time of a process so far, ns; `None` if it has ended (proc_pid_stat(5): fields 14 and 15).
pub(crate) fn cpu_ns_of(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    // SAFETY: the call has an integer argument and an integer result.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|ticks| *ticks > 0)?;
    Some(ticks * (1_000_000_000 / per_second))
}

/// Largest resident set of a process so far, bytes; `None` if it has ended (proc_pid_status(5)).
pub(crate) fn peak_rss_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_says_something_of_itself() {
        assert!(boot().len() > 36 && !discipline().is_empty());
        let own = std::process::id();
        assert!(peak_rss_of(own).unwrap() > 1 << 20);
        let until = own_cpu_ns() + 50_000_000;
        while own_cpu_ns() < until {}
        assert!(cpu_ns_of(own).unwrap() >= 30_000_000);
        assert_eq!((cpu_ns_of(u32::MAX), peak_rss_of(u32::MAX)), (None, None));
    }
}
