//! The CPU time and the memory that control groups leave to this process.

use std::fs;
use std::path::Path;

use super::layout::{Hierarchy, Layout};
use super::usage::UNLIMITED;

/// CPU time per second that the control groups of this process allow, s, which is a number of cores: the lowest quota of
/// its group and of those above it, as far as they are visible. `None` without a quota. Real-time threads are not subject
/// to it (Documentation/scheduler/sched-bwc.rst).
pub fn own_cores() -> Option<f64> {
    cores(&Layout::read().ok()?)
}

fn cores(layout: &Layout) -> Option<f64> {
    let one = layout.controllers.get("cpu").into_iter().flat_map(|hierarchy| groups(hierarchy).filter_map(version_1));
    let two = layout.unified.iter().flat_map(|hierarchy| groups(hierarchy).filter_map(version_2));
    one.chain(two).reduce(f64::min)
}

/// Memory that the control groups of this process allow, bytes: the lowest limit of its group and of those above it, as far as they
/// are visible. `None` without a limit. Other processes of these groups use the same memory.
pub fn own_memory_bytes() -> Option<u64> {
    memory_bytes(&Layout::read().ok()?)
}

fn memory_bytes(layout: &Layout) -> Option<u64> {
    // The limit `max` of version 2 means that there is none, and is no number.
    let number = |folder: &Path, file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let limits = |hierarchy: &Hierarchy, file: &str| -> Vec<u64> {
        groups(hierarchy).filter_map(|folder| number(folder, file)).filter(|bytes| *bytes < UNLIMITED).collect()
    };
    let one = layout.controllers.get("memory").map(|hierarchy| limits(hierarchy, "memory.limit_in_bytes"));
    let two = layout.unified.as_ref().map(|hierarchy| limits(hierarchy, "memory.max"));
    one.into_iter().chain(two).flatten().min()
}

/// A group and those above it, up to the highest that is visible.
fn groups(hierarchy: &Hierarchy) -> impl Iterator<Item = &Path> {
    hierarchy.own.ancestors().take_while(move |folder| folder.starts_with(&hierarchy.top))
}

/// `-1` means that there is no quota, and is no number here.
fn version_1(folder: &Path) -> Option<f64> {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    share(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

/// Quota and period; the quota `max` means that there is none, and is no number.
fn version_2(folder: &Path) -> Option<f64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    share(fields.next()??, fields.next()??)
}

fn share(quota_us: u64, period_us: u64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A hierarchy whose top has the group `job`, and that the group `worker`, in which this process is.
    fn hierarchy(top: &Path, files: &[(&str, &str)]) -> Hierarchy {
        let own = top.join("job/worker");
        fs::create_dir_all(&own).unwrap();
        files.iter().for_each(|(file, text)| fs::write(top.join(file), text).unwrap());
        Hierarchy { own, top: top.to_owned() }
    }

    #[test]
    fn the_lowest_memory_limit_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (root.path().join("one"), root.path().join("two"));
        let unified = |files: &[(&str, &str)]| {
            memory_bytes(&Layout { unified: Some(hierarchy(&two, files)), ..Layout::default() })
        };
        assert_eq!(unified(&[("memory.max", "max\n"), ("job/worker/memory.max", "max\n")]), None);
        assert_eq!(unified(&[("job/memory.max", "536870912\n")]), Some(512 << 20));
        assert_eq!(unified(&[("job/worker/memory.max", "1073741824\n")]), Some(512 << 20));
        let files = [("job/memory.limit_in_bytes", "268435456\n")];
        let none = [("job/worker/memory.limit_in_bytes", "9223372036854771712\n")];
        let memory = |files: &[(&str, &str)]| {
            memory_bytes(&Layout { controllers: [("memory", hierarchy(&one, files))].into(), ..Layout::default() })
        };
        assert_eq!((memory(&none), memory(&files)), (None, Some(256 << 20)));
    }

    #[test]
    fn the_lowest_quota_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (root.path().join("one"), root.path().join("two"));
        let unified =
            |files: &[(&str, &str)]| cores(&Layout { unified: Some(hierarchy(&two, files)), ..Layout::default() });
        assert_eq!(unified(&[("cpu.max", "max 100000\n"), ("job/worker/cpu.max", "max 100000\n")]), None);
        assert_eq!(unified(&[("job/cpu.max", "150000 100000\n")]), Some(1.5));
        assert_eq!(unified(&[("job/worker/cpu.max", "400000 100000\n")]), Some(1.5));
        fs::write(root.path().join("cpu.max"), "1 100000\n").unwrap();
        assert_eq!(unified(&[]), Some(1.5), "what lies above the mount is no group");
        assert_eq!(unified(&[("job/cpu.max", "soon\n")]), Some(4.0), "what cannot be read is no quota");
        let files = [("job/cpu.cfs_quota_us", "50000\n"), ("job/cpu.cfs_period_us", "100000\n")];
        let none = [("job/worker/cpu.cfs_quota_us", "-1\n"), ("job/worker/cpu.cfs_period_us", "100000\n")];
        let cpu = hierarchy(&one, &[files, none].concat());
        let layout = Layout { controllers: [("cpu", cpu)].into(), ..Layout::default() };
        assert_eq!((cores(&layout), cores(&Layout::default())), (Some(0.5), None));
    }
}
