//! What this machine permits an engine to do.

use std::fs;

/// Facts that decide how containers are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Control groups of both versions are mounted, and version 2 has controllers.
    pub(super) hybrid_cgroups_with_controllers: bool,
    /// We are root, but have no right to raise limits (no CAP_SYS_RESOURCE), as inside another container.
    limits_are_fixed: bool,
    /// Soft and hard limit on descriptors.
    descriptors: (u64, u64),
    /// Soft and hard limit on processes.
    processes: (u64, u64),
    /// Largest number of process ids.
    process_ids: u64,
}

/// Bit of CAP_SYS_RESOURCE in a set of capabilities (capabilities(7), linux/capability.h).
const SYS_RESOURCE: u32 = 24;
/// Where systemd and others mount version 2 beside version 1.
const HYBRID_CONTROLLERS: &str = "/sys/fs/cgroup/unified/cgroup.controllers";

impl Host {
    /// Reads the facts of this machine.
    pub(super) fn read() -> Host {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Host {
            // The file does not exist unless both versions are mounted.
            hybrid_cgroups_with_controllers: !text(HYBRID_CONTROLLERS).trim().is_empty(),
            limits_are_fixed: may_not_raise(&text("/proc/self/status")),
            descriptors: limit(libc::RLIMIT_NOFILE),
            processes: limit(libc::RLIMIT_NPROC),
            process_ids: text("/proc/sys/kernel/pid_max").trim().parse().unwrap_or(32_768),
        }
    }

    /// An engine that runs as root gives containers limits of about a million descriptors and processes, and fails if
    /// it may not raise its own limits. These flags request our own limits instead. Podman lowers its own limit on
    /// processes to the number of process ids before it starts anything, so no more than that can be requested.
    pub(super) fn ulimit_flags(&self) -> Vec<String> {
        if !self.limits_are_fixed {
            return vec![];
        }
        let (soft, hard) = self.processes;
        let processes = (soft.min(self.process_ids), hard.min(self.process_ids));
        [("nofile", self.descriptors), ("nproc", processes)]
            .into_iter()
            .flat_map(|(name, (soft, hard))| ["--ulimit".to_owned(), format!("{name}={soft}:{hard}")])
            .collect()
    }
}

/// Does this status belong to a root that may not raise limits?
fn may_not_raise(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let effective_user = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1));
    let rights = field("CapEff:").and_then(|rights| u64::from_str_radix(rights, 16).ok());
    effective_user == Some("0") && rights.is_some_and(|rights| rights >> SYS_RESOURCE & 1 == 0)
}

/// Type of a resource's identifier, which differs between C libraries.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// Soft and hard limit. No limit is the kernel's largest number.
fn limit(resource: Resource) -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call fills; it fails only for resources that do not exist.
    unsafe { libc::getrlimit(resource, &mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_without_the_right_to_raise_limits_asks_for_its_own() {
        let status = |user: &str, rights: &str| format!("Name:\tx\nUid:\t1\t{user}\t0\t0\nCapEff:\t{rights}\n");
        assert!(may_not_raise(&status("0", "000001fffeffffff")));
        assert!(!may_not_raise(&status("0", "000001ffffffffff")));
        assert!(!may_not_raise(&status("1000", "0000000000000000")));
        let mut host = Host {
            hybrid_cgroups_with_controllers: false,
            limits_are_fixed: true,
            descriptors: (1_024, 20_000),
            processes: (96_365, 96_365),
            process_ids: 32_768,
        };
        assert_eq!(host.ulimit_flags(), ["--ulimit", "nofile=1024:20000", "--ulimit", "nproc=32768:32768"]);
        host.limits_are_fixed = false;
        assert!(host.ulimit_flags().is_empty());
    }
}
