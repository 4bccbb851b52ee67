//! Control groups of version 1, version 2 and both at once, used through their files.

pub mod control;
#[cfg(test)]
mod control_tests;
pub mod layout;
pub mod quota;
pub mod usage;

use std::path::PathBuf;

pub use control::Cgroup;

/// Folders of a control group. A folder is `None` if that controller is not mounted or we have no permission to use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupFolders {
    /// Version 2: one folder for all controllers. On a machine with both versions it has no controllers, but still
    /// counts CPU time (`cpu.stat`) and can kill all its processes (`cgroup.kill`).
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

/// Where the cost of one broker is read: the root of its process tree, and its control group if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostSource {
    /// Root of the process tree.
    pub pid: u32,
    /// The broker's control group.
    pub cgroup: Option<CgroupFolders>,
}
