//! Groups in ordinary folders that imitate control groups, and in the real control groups of this machine.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::control::{CgroupLimits, Plan, ration};
use super::layout::{Hierarchy, Layout};

fn hierarchy(own: &Path, top: &Path) -> Hierarchy {
    Hierarchy { own: own.to_owned(), top: top.to_owned() }
}

/// A hierarchy of version 2 as systemd delegates it: `slice/scope`, where the scope is our own group.
fn version_2(folder: &Path, of_slice: &str, of_scope: &str) -> Layout {
    let scope = folder.join("slice/scope");
    fs::create_dir_all(&scope).unwrap();
    for (group, controllers) in [(folder.join("slice"), of_slice), (scope.clone(), of_scope)] {
        fs::write(group.join("cgroup.controllers"), controllers).unwrap();
        fs::write(group.join("cgroup.subtree_control"), "").unwrap();
    }
    Layout { unified: Some(hierarchy(&scope, folder)), controllers: BTreeMap::new() }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn time_is_rationed_in_periods_of_10_ms_unless_the_quota_gets_too_small() {
    assert_eq!(ration(0.5), (5_000, 10_000));
    assert_eq!(ration(1.5), (15_000, 10_000));
    assert_eq!(ration(0.1), (1_000, 10_000));
    assert_eq!(ration(0.02), (1_000, 50_000));
    assert_eq!(ration(0.01), (1_000, 100_000));
}

#[test]
fn version_2_gets_its_limits_in_a_sibling_of_our_group() {
    let folder = tempfile::tempdir().unwrap();
    let layout = version_2(folder.path(), "cpuset cpu memory pids", "cpu memory");
    let wanted = CgroupLimits { cpu: Some(0.5), memory_bytes: Some(64_000_000), cores: vec![] };
    let plan = Plan::new(&layout, "pubmark-1-a", &wanted).unwrap();
    let group = folder.path().join("slice/pubmark-1-a");
    assert_eq!(plan.folders(), std::slice::from_ref(&group));
    assert!(!group.exists(), "nothing is made before it is held");
    let made = plan.make().unwrap();
    assert_eq!(made.place.unified.as_deref(), Some(group.as_path()));
    assert_eq!(read(&folder.path().join("slice/cgroup.subtree_control")), "+cpu +memory");
    assert_eq!(
        (read(&group.join("cpu.max")), read(&group.join("memory.max"))),
        ("5000 10000".into(), "64000000".into())
    );
}

#[test]
fn version_2_without_a_controller_in_the_parent_uses_our_group_or_fails() {
    let folder = tempfile::tempdir().unwrap();
    let layout = version_2(folder.path(), "memory", "cpu memory");
    let wanted = CgroupLimits { cpu: Some(0.5), ..CgroupLimits::default() };
    let plan = Plan::new(&layout, "pubmark-1-b", &wanted).unwrap();
    assert_eq!(plan.folders(), [folder.path().join("slice/scope/pubmark-1-b")]);

    let none = tempfile::tempdir().unwrap();
    let layout = version_2(none.path(), "", "");
    let error = Plan::new(&layout, "pubmark-1-c", &wanted).unwrap_err().to_string();
    assert!(error.starts_with("control group `") && error.ends_with("` has no `cpu`"), "{error}");
    // Without limits, the group is used for counting.
    let made = Plan::new(&layout, "pubmark-1-c", &CgroupLimits::default()).unwrap().make().unwrap();
    assert!(made.place.unified.unwrap().is_dir());
}

#[test]
fn version_1_writes_each_controller_and_leaves_out_unused_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut controllers = BTreeMap::new();
    for name in ["cpu", "memory", "cpuset"] {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        controllers.insert(name, hierarchy(&place, &place));
    }
    fs::write(folder.path().join("cpuset/cpuset.mems"), "0-1\n").unwrap();
    // The folder does not exist: counting CPU time is left out, and nothing fails.
    controllers.insert("cpuacct", hierarchy(&folder.path().join("missing"), folder.path()));
    let layout = Layout { unified: None, controllers };
    let wanted = CgroupLimits { cpu: Some(0.2), memory_bytes: Some(64_000_000), cores: vec![0, 2] };
    let made = Plan::new(&layout, "pubmark-1-d", &wanted).unwrap().make().unwrap();
    let file = |name: &str| read(&folder.path().join(name));
    assert_eq!(file("cpu/pubmark-1-d/cpu.cfs_period_us"), "10000");
    assert_eq!(file("cpu/pubmark-1-d/cpu.cfs_quota_us"), "2000");
    assert_eq!(file("memory/pubmark-1-d/memory.limit_in_bytes"), "64000000");
    assert_eq!(
        (file("cpuset/pubmark-1-d/cpuset.mems"), file("cpuset/pubmark-1-d/cpuset.cpus")),
        ("0-1".into(), "0,2".into())
    );
    assert_eq!((made.place.cpuacct.clone(), made.folders().len()), (None, 3));

    let error = Plan::new(&Layout::default(), "pubmark-1-e", &wanted).unwrap_err().to_string();
    assert_eq!(error, "no control group with `cpu` is mounted");
}

#[test]
fn a_real_group_is_made_limited_and_removed() {
    let layout = Layout::read().unwrap();
    let name = format!("pubmark-{}-test", std::process::id());
    let wanted = CgroupLimits { cpu: Some(0.2), memory_bytes: Some(64 << 20), cores: vec![0] };
    let made = match Plan::new(&layout, &name, &wanted).and_then(Plan::make) {
        Ok(made) => made,
        Err(error) => return pubmark_testing::skip(format_args!("no control group can be made here: {error}")),
    };
    assert!(!made.folders().is_empty() && made.folders().iter().all(|folder| folder.is_dir()));
    if let Some(cpu) = &made.place.cpu {
        assert_eq!(read(&cpu.join("cpu.cfs_quota_us")).trim(), "2000");
    }
    if let Some(memory) = &made.place.memory {
        assert_eq!(read(&memory.join("memory.limit_in_bytes")).trim(), (64 << 20).to_string());
    }
    assert_eq!(made.out_of_memory_kills().unwrap_or(0), 0);
    for folder in made.folders() {
        fs::remove_dir(&folder).unwrap();
    }
}
