//! Control groups, version 1, version 2 and both at once, by plain files.

pub mod control;
#[cfg(test)]
mod control_tests;
pub mod layout;
pub mod usage;

use std::path::PathBuf;

pub use control::Cgroup;

/// Where a control group lies. A folder is `None` where that controller is not mounted or not ours to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupFolders {
    /// Version 2: one folder for all controllers. On a machine with both versions it has no controllers, but still counts
    /// CPU time (`cpu.stat`) and ends a whole tree (`cgroup.kill`).
    pub unified: Option<PathBuf>,
    /// Version 1: `cpu`, with quota and throttling.
    pub cpu: Option<PathBuf>,
    /// Version 1: `cpuacct`, CPU time.
    pub cpuacct: Option<PathBuf>,
    /// Version 1: `memory`.
    pub memory: Option<PathBuf>,
    /// Version 1: `cpuset`.
    pub cpuset: Option<PathBuf>,
}

/// One broker's processes, for meters: the root of its tree, and its control group where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostSource {
    /// Root of the process tree.
    pub pid: u32,
    /// Its control group.
    pub cgroup: Option<CgroupFolders>,
}
