//! Usage of a control group, and the effect of its limits, read from its files.

use std::fs;
use std::path::Path;

use super::CgroupFolders;

/// In version 1, "no limit" of memory is a number above this one, bytes: the largest multiple of a page below 2^63.
pub(super) const UNLIMITED: u64 = 1 << 62;

/// Counters of a control group; a field is `None` if its controller is missing or the kernel is too old to count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupUsage {
    /// CPU time of all processes that ever ran in the group, ns.
    pub cpu_ns: Option<u64>,
    /// Memory charged to the group now, bytes.
    pub memory_bytes: Option<u64>,
    /// Largest memory ever charged to the group, bytes (version 2: Linux 5.19 and later).
    pub memory_peak_bytes: Option<u64>,
    /// Counters of the limits; `None` without limits.
    pub limits: Option<LimitCounters>,
}

/// Effect of limits until now, as counters; a field is `None` if that resource is not limited or not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounters {
    /// Periods in which CPU time was limited.
    pub periods: Option<u64>,
    /// Periods in which the group was throttled.
    pub throttled_periods: Option<u64>,
    /// Time that the group was throttled, ns; each core is counted.
    pub throttled_ns: Option<u64>,
    /// Times that memory reached its limit.
    pub memory_limit_hits: Option<u64>,
    /// Number of OOM-killed processes.
    pub out_of_memory_kills: Option<u64>,
}

impl CgroupUsage {
    /// Reads the counters now; all fields are `None` after the group was removed.
    pub fn read(place: &CgroupFolders) -> CgroupUsage {
        let v1_memory = place.memory.as_deref();
        let v2 = place.unified.as_deref();
        CgroupUsage {
            cpu_ns: cpu_ns(place),
            memory_bytes: number(v1_memory, "memory.usage_in_bytes").or_else(|| number(v2, "memory.current")),
            memory_peak_bytes: number(v1_memory, "memory.max_usage_in_bytes").or_else(|| number(v2, "memory.peak")),
            limits: LimitCounters::read(place),
        }
    }
}

impl LimitCounters {
    fn read(place: &CgroupFolders) -> Option<LimitCounters> {
        let (cpu, memory) = (cpu_is_limited(place), memory_is_limited(place));
        if !cpu && !memory {
            return None;
        }
        let mut counters = LimitCounters::default();
        if cpu {
            counters.read_cpu(place);
        }
        if memory {
            counters.read_memory(place);
        }
        Some(counters)
    }

    fn read_cpu(&mut self, place: &CgroupFolders) {
        let Some(text) = text(place.cpu.as_deref().or(place.unified.as_deref()), "cpu.stat") else { return };
        self.periods = field(&text, "nr_periods");
        self.throttled_periods = field(&text, "nr_throttled");
        self.throttled_ns = field(&text, "throttled_time")
            .or_else(|| field(&text, "throttled_usec").map(|us| us.saturating_mul(1_000)));
    }

    fn read_memory(&mut self, place: &CgroupFolders) {
        if let Some(folder) = place.memory.as_deref() {
            self.memory_limit_hits = number(Some(folder), "memory.failcnt");
            self.out_of_memory_kills =
                text(Some(folder), "memory.oom_control").and_then(|text| field(&text, "oom_kill"));
        } else if let Some(text) = text(place.unified.as_deref(), "memory.events") {
            self.memory_limit_hits = field(&text, "max");
            self.out_of_memory_kills = field(&text, "oom_kill");
        }
    }
}

/// Ids of the processes in the group now; `None` if they cannot be read or there are none.
pub fn members(place: &CgroupFolders) -> Option<Vec<u32>> {
    let folders = [&place.cpuacct, &place.cpu, &place.unified, &place.memory];
    let text = folders.into_iter().find_map(|folder| text(folder.as_deref(), "cgroup.procs"))?;
    let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    Some(pids).filter(|pids| !pids.is_empty())
}

/// Version 1 counts ns. Version 2 counts µs, even without any controller.
fn cpu_ns(place: &CgroupFolders) -> Option<u64> {
    number(place.cpuacct.as_deref(), "cpuacct.usage").or_else(|| {
        let text = text(place.unified.as_deref(), "cpu.stat")?;
        field(&text, "usage_usec").map(|us| us.saturating_mul(1_000))
    })
}

fn cpu_is_limited(place: &CgroupFolders) -> bool {
    // -1 and `max` mean no limit.
    number(place.cpu.as_deref(), "cpu.cfs_quota_us").is_some()
        || text(place.unified.as_deref(), "cpu.max").is_some_and(|text| !text.starts_with("max"))
}

fn memory_is_limited(place: &CgroupFolders) -> bool {
    number(place.memory.as_deref(), "memory.limit_in_bytes").is_some_and(|bytes| bytes < UNLIMITED)
        || number(place.unified.as_deref(), "memory.max").is_some()
}

fn text(folder: Option<&Path>, file: &str) -> Option<String> {
    fs::read_to_string(folder?.join(file)).ok()
}

/// The number in a file that has only this number.
fn number(folder: Option<&Path>, file: &str) -> Option<u64> {
    text(folder, file)?.trim().parse().ok()
}

/// The number after a name, in a text with one pair per line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn folder(root: &Path, name: &str, files: &[(&str, &str)]) -> Option<PathBuf> {
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
        Some(folder)
    }

    #[test]
    fn version_1_is_read_from_its_controllers() {
        let root = tempfile::tempdir().unwrap();
        let place = CgroupFolders {
            cpu: folder(
                root.path(),
                "cpu",
                &[
                    ("cpu.cfs_quota_us", "2000\n"),
                    ("cpu.stat", "nr_periods 410\nnr_throttled 41\nthrottled_time 812345678\nnr_bursts 0\n"),
                ],
            ),
            cpuacct: folder(root.path(), "cpuacct", &[("cpuacct.usage", "85715123\n"), ("cgroup.procs", "12\n7\n")]),
            memory: folder(
                root.path(),
                "memory",
                &[
                    ("memory.usage_in_bytes", "1420000\n"),
                    ("memory.max_usage_in_bytes", "67108864\n"),
                    ("memory.limit_in_bytes", "67108864\n"),
                    ("memory.failcnt", "64\n"),
                    ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
                ],
            ),
            ..CgroupFolders::default()
        };
        let usage = CgroupUsage::read(&place);
        assert_eq!(
            (usage.cpu_ns, usage.memory_bytes, usage.memory_peak_bytes),
            (Some(85_715_123), Some(1_420_000), Some(67_108_864))
        );
        let limits = LimitCounters {
            periods: Some(410),
            throttled_periods: Some(41),
            throttled_ns: Some(812_345_678),
            memory_limit_hits: Some(64),
            out_of_memory_kills: Some(1),
        };
        assert_eq!(usage.limits, Some(limits));
        assert_eq!(members(&place), Some(vec![12, 7]));
    }

    #[test]
    fn version_2_is_read_from_one_folder() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("cpu.stat", "usage_usec 85716\nuser_usec 1\nnr_periods 9\nnr_throttled 3\nthrottled_usec 12\n"),
            ("cpu.max", "2000 10000\n"),
            ("memory.current", "5000\n"),
            ("memory.peak", "6000\n"),
            ("memory.max", "max\n"),
            ("memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\noom_group_kill 0\n"),
        ];
        let place = CgroupFolders { unified: folder(root.path(), "unified", &files), ..CgroupFolders::default() };
        let usage = CgroupUsage::read(&place);
        assert_eq!(
            (usage.cpu_ns, usage.memory_bytes, usage.memory_peak_bytes),
            (Some(85_716_000), Some(5_000), Some(6_000))
        );
        // Memory has no limit, so its counters are unknown.
        let limits = LimitCounters {
            periods: Some(9),
            throttled_periods: Some(3),
            throttled_ns: Some(12_000),
            ..LimitCounters::default()
        };
        assert_eq!(usage.limits, Some(limits));
        fs::write(root.path().join("unified/memory.max"), "67108864\n").unwrap();
        let limits = CgroupUsage::read(&place).limits.unwrap();
        assert_eq!((limits.memory_limit_hits, limits.out_of_memory_kills), (Some(4), Some(1)));
    }

    #[test]
    fn missing_counters_are_unknown() {
        assert_eq!(CgroupUsage::read(&CgroupFolders::default()), CgroupUsage::default());
        let gone = CgroupFolders { cpuacct: Some(PathBuf::from("/nonexistent")), ..CgroupFolders::default() };
        assert_eq!((CgroupUsage::read(&gone), members(&gone)), (CgroupUsage::default(), None));
        // No limit: -1 in version 1.
        let root = tempfile::tempdir().unwrap();
        let files = [("cpu.cfs_quota_us", "-1\n"), ("cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")];
        let place = CgroupFolders { cpu: folder(root.path(), "cpu", &files), ..CgroupFolders::default() };
        assert_eq!(CgroupUsage::read(&place).limits, None);
    }
}
