//! A control group for one broker: creating, limiting and removing it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::affinity;
use crate::cgroup::CgroupFolders;
use crate::cgroup::layout::{Layout, Version};

/// Start of the name of every group created here; the process id of its creator follows.
pub const PREFIX: &str = "pubmark-";
/// Group into which our own processes are moved if version 2 requires it; it is removed together with its scope.
const OWN_LEAF: &str = "pubmark-self";
/// Period for CPU time, µs. The usual 100 ms would stop a broker for tens of milliseconds at a time.
const PERIOD_US: u64 = 10_000;
/// Smallest quota that the kernel accepts, µs (apart from sched_cfs_bandwidth_slice): for less CPU time, the period is
/// longer.
const LEAST_QUOTA_US: u64 = 1_000;

/// Limits for the processes of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CgroupLimits {
    /// CPU seconds per second: 0.5 is half a core.
    pub cpu: Option<f64>,
    /// Memory, bytes; no swap is allowed.
    pub memory_bytes: Option<u64>,
    /// Cores; all if empty. Without a controller for cores, affinity is used.
    pub cores: Vec<u32>,
}

/// Why a group cannot enforce the requested limits.
#[derive(Debug, thiserror::Error)]
#[error("{what}{}", cause(.source))]
pub struct ControlError {
    what: String,
    source: Option<io::Error>,
}

fn cause(source: &Option<io::Error>) -> String {
    source.as_ref().map(|source| format!(" ({source})")).unwrap_or_default()
}

impl ControlError {
    fn new(what: impl Into<String>) -> ControlError {
        ControlError { what: what.into(), source: None }
    }

    fn at(action: &str, path: &Path, source: io::Error) -> ControlError {
        ControlError { what: format!("failed to {action} `{}`", path.display()), source: Some(source) }
    }
}

/// Quota and period, µs, for a number of CPU seconds per second.
pub fn ration(cpu: f64) -> (u64, u64) {
    let quota = (cpu * PERIOD_US as f64).round() as u64;
    if quota >= LEAST_QUOTA_US {
        (quota, PERIOD_US)
    } else {
        (LEAST_QUOTA_US, (LEAST_QUOTA_US as f64 / cpu).round() as u64)
    }
}

/// A planned group: nothing has been created yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    place: CgroupFolders,
    wanted: CgroupLimits,
    version: Version,
    name: String,
}

/// A group that exists. The supervisor of its processes removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Folders of the group.
    pub place: CgroupFolders,
    /// Version that enforces the limits.
    pub version: Version,
}

impl Plan {
    /// Plans a group named `name`. An error if a controller that the limits need is not mounted.
    pub fn new(layout: &Layout, name: &str, wanted: &CgroupLimits) -> Result<Plan, ControlError> {
        let version = layout.version();
        let plan = |place| Plan { place, wanted: wanted.clone(), version, name: name.to_owned() };
        if version == Version::Two {
            let own = layout.unified.as_ref().map(|unified| unified.own.clone()).unwrap_or_default();
            let top = layout.unified.as_ref().is_some_and(|unified| unified.top == unified.own);
            let parent = parent_of(&own, top, name, &needs(wanted))?;
            return Ok(plan(CgroupFolders { unified: Some(parent.join(name)), ..CgroupFolders::default() }));
        }
        if let Some(controller) = needs(wanted).iter().find(|name| !layout.controllers.contains_key(*name)) {
            return Err(ControlError::new(format!("no control group with `{controller}` is mounted")));
        }
        let below = |controller: &str| layout.controllers.get(controller).map(|found| found.own.join(name));
        Ok(plan(CgroupFolders {
            unified: layout.unified.as_ref().map(|unified| unified.own.join(name)),
            cpu: below("cpu"),
            cpuacct: below("cpuacct"),
            memory: below("memory"),
            cpuset: if wanted.cores.is_empty() { None } else { below("cpuset") },
        }))
    }

    /// Folders that the group will have, without duplicates.
    pub fn folders(&self) -> Vec<PathBuf> {
        folders(&self.place)
    }

    /// Creates the group and sets its limits. Folders that the limits do not need and that cannot be created are left
    /// out of the result.
    pub fn make(mut self) -> Result<Cgroup, ControlError> {
        let made = self.make_folders().and_then(|()| self.limit());
        if let Err(error) = made {
            remove(&self.folders());
            return Err(error);
        }
        Ok(Cgroup { place: self.place, version: self.version })
    }

    fn make_folders(&mut self) -> Result<(), ControlError> {
        let needed = needs(&self.wanted);
        if self.version == Version::Two {
            return self.make_unified(&needed);
        }
        let place = &mut self.place;
        let all: [(&str, &mut Option<PathBuf>); 5] = [
            ("unified", &mut place.unified),
            ("cpu", &mut place.cpu),
            ("cpuacct", &mut place.cpuacct),
            ("memory", &mut place.memory),
            ("cpuset", &mut place.cpuset),
        ];
        for (name, folder) in all {
            let Some(path) = folder.clone() else { continue };
            match fs::create_dir(&path) {
                Ok(()) => {}
                // Controllers that share a hierarchy share the folder.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if needed.contains(&name) => return Err(ControlError::at("create", &path, error)),
                Err(_) => *folder = None,
            }
        }
        Ok(())
    }

    fn make_unified(&mut self, needed: &[&str]) -> Result<(), ControlError> {
        let Some(folder) = self.place.unified.clone() else { return Ok(()) };
        let parent = folder.parent().unwrap_or(&folder);
        enable(parent, needed)?;
        match fs::create_dir(&folder) {
            Err(error) if needed.is_empty() && error.kind() != io::ErrorKind::AlreadyExists => {
                self.place.unified = None;
                Ok(())
            }
            Err(error) => Err(ControlError::at("create", &folder, error)),
            Ok(()) => Ok(()),
        }
    }

    fn limit(&self) -> Result<(), ControlError> {
        if self.version == Version::Two { self.limit_unified() } else { self.limit_controllers() }
    }

    fn limit_unified(&self) -> Result<(), ControlError> {
        let Some(folder) = &self.place.unified else { return Ok(()) };
        if let Some(cpu) = self.wanted.cpu {
            let (quota, period) = ration(cpu);
            set(folder, "cpu.max", &format!("{quota} {period}"))?;
        }
        if let Some(bytes) = self.wanted.memory_bytes {
            set(folder, "memory.max", &bytes.to_string())?;
            set_if_there(folder, "memory.swap.max", "0")?;
        }
        if !self.wanted.cores.is_empty() {
            set_if_there(folder, "cpuset.cpus", &affinity::shown(&self.wanted.cores))?;
        }
        Ok(())
    }

    fn limit_controllers(&self) -> Result<(), ControlError> {
        if let (Some(cpu), Some(folder)) = (self.wanted.cpu, &self.place.cpu) {
            let (quota, period) = ration(cpu);
            set(folder, "cpu.cfs_period_us", &period.to_string())?;
            set(folder, "cpu.cfs_quota_us", &quota.to_string())?;
        }
        if let (Some(bytes), Some(folder)) = (self.wanted.memory_bytes, &self.place.memory) {
            set(folder, "memory.limit_in_bytes", &bytes.to_string())?;
            // Memory and swap together. The file does not exist if the kernel does not count swap.
            set_if_there(folder, "memory.memsw.limit_in_bytes", &bytes.to_string())?;
        }
        if let Some(folder) = &self.place.cpuset {
            // Without memory nodes, no process can join (cpuset(7)).
            let nodes = folder.parent().and_then(|parent| fs::read_to_string(parent.join("cpuset.mems")).ok());
            set(folder, "cpuset.mems", nodes.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or("0"))?;
            set(folder, "cpuset.cpus", &affinity::shown(&self.wanted.cores))?;
        }
        Ok(())
    }
}

impl Cgroup {
    /// Folders of the group, without duplicates.
    pub fn folders(&self) -> Vec<PathBuf> {
        folders(&self.place)
    }

    /// Number of its processes that the kernel OOM-killed; `None` if the kernel does not count them.
    pub fn out_of_memory_kills(&self) -> Option<u64> {
        let events = self.place.unified.as_ref().map(|folder| folder.join("memory.events"));
        let control = self.place.memory.as_ref().map(|folder| folder.join("memory.oom_control"));
        let texts = [control, events].into_iter().flatten().filter_map(|path| fs::read_to_string(path).ok());
        texts.into_iter().find_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("oom_kill ").and_then(|count| count.trim().parse().ok()))
        })
    }
}

/// Controllers without which the limits cannot be enforced. Cores can be enforced by affinity.
fn needs(wanted: &CgroupLimits) -> Vec<&'static str> {
    let cpu = wanted.cpu.map(|_| "cpu");
    let memory = wanted.memory_bytes.map(|_| "memory");
    cpu.into_iter().chain(memory).collect()
}

fn folders(place: &CgroupFolders) -> Vec<PathBuf> {
    let all = [&place.unified, &place.cpu, &place.cpuacct, &place.memory, &place.cpuset];
    let mut found: Vec<PathBuf> = all.into_iter().flatten().cloned().collect();
    found.sort();
    found.dedup();
    found
}

/// Version 2: the parent for the new group. It is the parent of our own group, because a group with processes cannot
/// have limited groups below it ("no internal processes", cgroups(7)). If we may not create groups there, it is our own
/// group, whose processes move to a leaf.
fn parent_of(own: &Path, top: bool, name: &str, needed: &[&str]) -> Result<PathBuf, ControlError> {
    let beside = if top { None } else { own.parent() };
    let mut refusal = None;
    for parent in beside.into_iter().chain([own]) {
        match can_hold(parent, name, needed) {
            Ok(()) => return Ok(parent.to_owned()),
            Err(error) => refusal = Some(error),
        }
    }
    // Without limits, the group is optional.
    if needed.is_empty() { Ok(own.to_owned()) } else { Err(refusal.unwrap_or_else(|| ControlError::new("no group"))) }
}

/// Creates a group as a trial: whether a folder can be created there is only known by creating it.
fn can_hold(parent: &Path, name: &str, needed: &[&str]) -> Result<(), ControlError> {
    let there = words(&parent.join("cgroup.controllers"));
    if let Some(missing) = needed.iter().find(|name| !there.iter().any(|found| found == *name)) {
        return Err(ControlError::new(format!("control group `{}` has no `{missing}`", parent.display())));
    }
    if !needed.is_empty() {
        let file = parent.join("cgroup.subtree_control");
        fs::OpenOptions::new().write(true).open(&file).map_err(|error| ControlError::at("open", &file, error))?;
    }
    let folder = parent.join(name);
    fs::create_dir(&folder).map_err(|error| ControlError::at("create", &folder, error))?;
    remove(&[folder]);
    Ok(())
}

/// Enables controllers for the groups below `parent`.
fn enable(parent: &Path, needed: &[&str]) -> Result<(), ControlError> {
    let file = parent.join("cgroup.subtree_control");
    let there = words(&file);
    let missing: Vec<String> =
        needed.iter().filter(|name| !there.iter().any(|found| found == *name)).map(|name| format!("+{name}")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let order = missing.join(" ");
    match fs::write(&file, &order) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            move_to_leaf(parent)?;
            fs::write(&file, &order).map_err(|error| ControlError::at("write", &file, error))
        }
        Err(error) => Err(ControlError::at("write", &file, error)),
    }
}

/// Moves the processes of a group to a new leaf, so that the group may have limited groups below it.
fn move_to_leaf(group: &Path) -> Result<(), ControlError> {
    let leaf = group.join(OWN_LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(ControlError::at("create", &leaf, error));
        }
        _ => {}
    }
    for pid in words(&group.join("cgroup.procs")) {
        // A process that has ended meanwhile cannot be moved, and need not be. Another one is moved when the call is
        // repeated.
        let _ = fs::write(leaf.join("cgroup.procs"), pid);
    }
    Ok(())
}

/// Words of a small file; empty if it cannot be read.
fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn set(folder: &Path, file: &str, value: &str) -> Result<(), ControlError> {
    let path = folder.join(file);
    fs::write(&path, value).map_err(|error| ControlError::at(&format!("write {value} to"), &path, error))
}

fn set_if_there(folder: &Path, file: &str, value: &str) -> Result<(), ControlError> {
    if folder.join(file).exists() { set(folder, file, value) } else { Ok(()) }
}

fn remove(folders: &[PathBuf]) {
    for folder in folders {
        // The folder does not exist, or still has processes: nothing can be done here.
        let _ = fs::remove_dir(folder);
    }
}

/// Removes groups of ended pubmark processes, if nothing runs in them any more.
pub fn remove_abandoned(layout: &Layout) {
    let all = layout.controllers.values().chain(&layout.unified);
    let parents = all.flat_map(|found| [Some(found.own.as_path()), found.own.parent()]).flatten();
    for entry in parents.filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).and_then(|pid| pid.parse().ok());
        if owner.is_some_and(|pid: u32| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Fails if a process still runs in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
