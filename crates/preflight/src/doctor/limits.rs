//! Checks of the resources of this machine: descriptors, ports, memory, CPU time.

use pubmark_systems::cgroup::quota;

use super::{Finding, read};

/// Connections that the largest built-in workload needs (smart-city-10x), with a reserve.
const ROOMY_DESCRIPTORS: u64 = 8_192;
/// With fewer descriptors not even small workloads run.
const FEWEST_DESCRIPTORS: u64 = 256;
/// Memory that is enough for runs of all built-in workloads, bytes.
const ROOMY_MEMORY: u64 = 1 << 30;

/// Each connection needs a descriptor; the soft limit is raised to the hard limit at the start of a run.
pub fn descriptors() -> Finding {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Finding::limited("the limit cannot be read", "`ulimit -Hn` in the shell shows it");
    }
    let hard = limit.rlim_max;
    let text = if hard == libc::RLIM_INFINITY {
        "no limit on open files".to_owned()
    } else {
        format!("{hard} open files at most, one for each connection")
    };
    match hard {
        ROOMY_DESCRIPTORS.. => Finding::good(text),
        FEWEST_DESCRIPTORS.. => Finding::limited(text, "`ulimit -Hn 65536` as root, or LimitNOFILE= of the service"),
        _ => Finding::bad(text, "`ulimit -Hn 65536` as root, or LimitNOFILE= of the service"),
    }
}

/// Each connection from one source address to one destination address and port needs a local port.
pub fn ports() -> Finding {
    let path = "/proc/sys/net/ipv4/ip_local_port_range";
    let range: Option<Vec<u32>> =
        read(path).map(|text| text.split_whitespace().filter_map(|port| port.parse().ok()).collect());
    let Some([first, last]) = range.as_deref() else {
        return Finding::limited(format!("`{path}` cannot be read"), "run on Linux with /proc mounted");
    };
    let count = (last + 1).saturating_sub(*first);
    let text = format!(
        "{count} local ports ({first} to {last}): as many connections to one endpoint from one address; `--source-addresses` adds more"
    );
    if count >= 16_384 {
        Finding::good(text)
    } else {
        Finding::limited(text, "`sysctl -w net.ipv4.ip_local_port_range='32768 60999'` as root")
    }
}

/// Memory that is available without swapping, and that the control groups of this process allow.
pub fn memory() -> Finding {
    let available = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    let Some(kib) = available else {
        return Finding::limited("`/proc/meminfo` cannot be read", "run on Linux with /proc mounted");
    };
    memory_of(kib.saturating_mul(1024), quota::own_memory_bytes())
}

fn memory_of(available: u64, limit: Option<u64>) -> Finding {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1 << 30) as f64);
    let smaller = "choose a smaller workload (`--dry-run` shows its needs)";
    let (bytes, text, hint) = match limit.filter(|limit| *limit < available) {
        Some(limit) => (
            limit,
            format!("{} at most, by the limit of the control group", gib(limit)),
            format!("raise the limit (`memory.max`; of a container, `--memory`), or {smaller}"),
        ),
        None => (available, format!("{} available", gib(available)), format!("close other programs, or {smaller}")),
    };
    if bytes >= ROOMY_MEMORY { Finding::good(text) } else { Finding::limited(text, hint) }
}

/// Other processes that use the CPU delay the load generator: on a busy machine runs become suspect or invalid.
pub fn load() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let Some(load) = load else {
        return Finding::limited("`/proc/loadavg` cannot be read", "run on Linux with /proc mounted");
    };
    let text = format!("load {load:.2} over the last minute on {cores} cores");
    if load <= 0.5 * cores as f64 {
        Finding::good(text)
    } else {
        Finding::limited(text, "wait until the machine is idle; `top` shows what runs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_control_group_allows_if_that_is_less() {
        let limited = memory_of(8 << 30, Some(512 << 20));
        assert_eq!(limited.text, "0.5 GiB at most, by the limit of the control group");
        assert!(limited.fix.is_some_and(|fix| fix.starts_with("raise the limit")));
        let good = memory_of(8 << 30, Some(64 << 30));
        assert_eq!((good.text.as_str(), good.fix), ("8.0 GiB available", None));
    }
}
