//! The machine of a run, and how much of its CPU time others used.

use std::fs;

use pubmark_record::record::Environment;

use crate::cgroup::quota;
use crate::{awake, descriptors};

/// Length of a clock tick, ns. The kernel uses USER_HZ = 100 for its users on all architectures that pubmark runs on.
const TICK_NS: u64 = 10_000_000;

/// Properties of this machine now. `load_after` and `steal` are known only after a run.
pub fn read() -> Environment {
    Environment {
        os: os_name().unwrap_or_else(|| "Linux".to_owned()),
        kernel: word("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpu: cpu_name().unwrap_or_default(),
        cores: cores(),
        cpu_quota_cores: quota::own_cores(),
        processors: CpuTimes::read().map(|times| times.processors),
        memory_bytes: memory_bytes().unwrap_or(0),
        load_before: load(),
        load_after: None,
        steal: None,
        busy_cores: None,
        governor: word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtualization: virtualization(),
        descriptor_limit: descriptors::limit().map_or(0, |limit| limit.soft),
        congestion_control: word("/proc/sys/net/ipv4/tcp_congestion_control"),
        clock: match word("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
            Some(source) => format!("CLOCK_MONOTONIC ({source})"),
            None => "CLOCK_MONOTONIC".to_owned(),
        },
    }
}

/// Host name of this machine; `localhost` if it has none.
pub fn host_name() -> String {
    word("/proc/sys/kernel/hostname").unwrap_or_else(|| "localhost".to_owned())
}

/// Identifies this machine until it starts again: the boot id of its kernel; empty if it has none.
pub fn boot_id() -> String {
    word("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Identifies the network namespace of this process; empty if the kernel does not say.
pub fn network() -> String {
    fs::read_link("/proc/self/ns/net").map(|link| link.display().to_string()).unwrap_or_default()
}

/// Load average over the last minute; `None` if the loops of `--awake` are counted in it.
pub fn load() -> Option<f64> {
    if awake::are_in_load_average() {
        return None;
    }
    word("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

/// CPU time of the whole machine since its start, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// CPU time in all modes, including idle.
    pub total: u64,
    /// Time in which this machine had work, but the hypervisor ran other guests.
    pub stolen: u64,
    /// Time without work, and that of the loops of `--awake`, which take no other.
    pub idle: u64,
    /// Number of CPUs that these times cover.
    pub processors: u32,
}

impl CpuTimes {
    /// Reads the times now; `None` if `/proc/stat` cannot be read.
    pub fn read() -> Option<CpuTimes> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; guest times after them are part of user (proc(5)).
        let times: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let of_one =
            |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        Some(CpuTimes {
            total: times.iter().sum(),
            stolen: *times.get(7)?,
            idle: times.get(3)? + times.get(4)? + awake::cpu_ns() / TICK_NS,
            processors: text.lines().filter(of_one).count() as u32,
        })
    }

    /// Cores that were busy since `earlier`; `None` if no tick has passed.
    pub fn busy_cores_since(&self, earlier: &CpuTimes) -> Option<f64> {
        let passed = self.total.checked_sub(earlier.total).filter(|passed| *passed > 0)?;
        let free = self.idle.saturating_sub(earlier.idle) + self.stolen.saturating_sub(earlier.stolen);
        Some(passed.saturating_sub(free) as f64 / passed as f64 * f64::from(self.processors))
    }

    /// Share of the time since `earlier` that was stolen, 0 to 1; `None` if no tick has passed.
    pub fn steal_since(&self, earlier: &CpuTimes) -> Option<f64> {
        let passed = self.total.checked_sub(earlier.total).filter(|passed| *passed > 0)?;
        Some(self.stolen.saturating_sub(earlier.stolen) as f64 / passed as f64)
    }
}

/// Time since the machine's start in which some thread was ready to run and had no CPU, µs (pressure stall
/// information); `None` if the kernel does not support it, or counts the loops of `--awake`, which always wait.
pub fn cpu_pressure_us() -> Option<u64> {
    if awake::cpu_ns() > 0 {
        return None;
    }
    some_total_us(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, in any order of fields.
fn some_total_us(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

/// The first line of a small file, if it exists and is not empty.
fn word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

fn os_name() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn cpu_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Number of cores that this process may use, by its affinity.
fn cores() -> u32 {
    // SAFETY: an all-zero set is valid, the call fills it, and its size is given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) == 0 {
            return libc::CPU_COUNT(&set) as u32;
        }
    }
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Memory of this machine, bytes.
pub fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Memory that this process may use, bytes: that of this machine, or less if its control groups limit it.
pub fn usable_memory_bytes() -> Option<u64> {
    memory_bytes().into_iter().chain(quota::own_memory_bytes()).min()
}

/// The environment of this process, as far as files show it: a container, a virtual machine and its hypervisor, or
/// both.
fn virtualization() -> Option<String> {
    let guest = fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines()
            .find(|line| line.starts_with("flags"))
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    });
    let machine = guest.then(|| {
        let maker = word("/sys/class/dmi/id/sys_vendor").or_else(|| word("/sys/hypervisor/type"));
        maker.map_or("virtual machine".to_owned(), |maker| format!("virtual machine ({maker})"))
    });
    let container = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| fs::exists(path).unwrap_or(false));
    match (container, machine) {
        (true, Some(machine)) => Some(format!("container in a {machine}")),
        (true, None) => Some("container".to_owned()),
        (false, machine) => machine,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let found = read();
        assert!(found.cores >= 1 && found.memory_bytes > 1 << 20 && found.descriptor_limit > 0, "{found:?}");
        assert!(found.kernel.contains('.') && !found.os.is_empty() && found.load_before.is_some(), "{found:?}");
    }

    #[test]
    fn pressure_is_the_total_of_some_and_of_nothing_else() {
        let text =
            "some avg10=1.02 avg60=0.50 avg300=0.10 total=314533697\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(some_total_us(text), Some(314_533_697));
        assert_eq!(some_total_us("full avg10=0.00 total=7\nsome total=8 avg10=1"), Some(8));
        for hostile in [
            "",
            "some",
            "some ",
            "full total=7",
            "some total=",
            "some total=-1",
            "some total=18446744073709551616",
            "something total=1",
        ] {
            assert_eq!(some_total_us(hostile), None, "{hostile:?}");
        }
    }

    #[test]
    fn steal_is_a_share_of_the_time_passed() {
        let earlier = CpuTimes { total: 1_000, stolen: 10, idle: 500, processors: 4 };
        let later = CpuTimes { total: 1_200, stolen: 60, idle: 600, ..earlier };
        assert_eq!((later.steal_since(&earlier), later.busy_cores_since(&earlier)), (Some(0.25), Some(1.0)));
        assert_eq!((earlier.steal_since(&earlier), earlier.busy_cores_since(&earlier)), (None, None));
        let now = CpuTimes::read().unwrap();
        assert!(now.total > now.idle && now.processors >= 1, "{now:?}");
    }
}
