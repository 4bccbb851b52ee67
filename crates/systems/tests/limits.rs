//! Limits of real programs, on machines where control groups can be created.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{options, script};
use pubmark_systems::cgroup::control::{CgroupLimits, Plan};
use pubmark_systems::cgroup::layout::Layout;
use pubmark_systems::{CgroupFolders, RunningSystem, StartOptions, SystemError, limits, start};

/// A script that listens, and then executes `what`.
fn listen_and(what: &str) -> String {
    format!(
        "exec python3 -c 'import socket,sys\ns=socket.create_server((\"127.0.0.1\",int(sys.argv[1])))\ns.accept()\n{what}' $1"
    )
}

/// Can limits be enforced here? Records a skip if not.
fn limits_can_be_held() -> bool {
    let wanted = CgroupLimits { cpu: Some(0.5), memory_bytes: Some(64 << 20), cores: vec![] };
    // Tests run at the same time, so each one uses its own group.
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let name = format!("pubmark-{}-probe-{}", std::process::id(), PROBES.fetch_add(1, Ordering::Relaxed));
    match Layout::read()
        .map_err(|error| error.to_string())
        .and_then(|layout| Plan::new(&layout, &name, &wanted).and_then(Plan::make).map_err(|error| error.to_string()))
    {
        Ok(made) => {
            made.folders().iter().for_each(|folder| fs::remove_dir(folder).unwrap());
            true
        }
        Err(reason) => {
            pubmark_testing::skip(reason);
            false
        }
    }
}

fn limited(written: &str, what: &str) -> Result<RunningSystem, SystemError> {
    let options = StartOptions { limits: Some(limits::parse(written).unwrap()), ..options("mqtt5") };
    start(&script(&listen_and(what), 30.0, 2.0), &options, &mut |_| Ok(()))
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// CPU time of a group, ns.
fn cpu_ns(place: &CgroupFolders) -> u64 {
    if let Some(folder) = &place.cpuacct {
        return number(&folder.join("cpuacct.usage"));
    }
    let stat = fs::read_to_string(place.unified.as_ref().unwrap().join("cpu.stat")).unwrap();
    stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap().parse::<u64>().unwrap() * 1_000
}

#[test]
fn a_busy_program_gets_no_more_than_its_share_of_a_core() {
    if !limits_can_be_held() {
        return;
    }
    let running = limited("cpu=0.2", "while True: pass").unwrap();
    let place = running.cost_sources()[0].cgroup.clone().unwrap();
    if let Some(cpu) = &place.cpu {
        assert_eq!((number(&cpu.join("cpu.cfs_quota_us")), number(&cpu.join("cpu.cfs_period_us"))), (2_000, 10_000));
    } else {
        assert_eq!(fs::read_to_string(place.unified.as_ref().unwrap().join("cpu.max")).unwrap().trim(), "2000 10000");
    }
    let (begun, before) = (Instant::now(), cpu_ns(&place));
    std::thread::sleep(Duration::from_secs(2));
    let share = (cpu_ns(&place) - before) as f64 / begun.elapsed().as_nanos() as f64;
    assert!(share > 0.0 && share <= 0.25, "{share} of a core");
    let info = running.info().limits.unwrap();
    assert_eq!((info.requested.as_str(), info.cpu, info.cpu_period_ms), ("cpu=0.2", Some(0.2), Some(10.0)));
    assert!(info.held_by.starts_with("cgroup v"), "{info:?}");
    drop(running);
    assert!(!place.cpu.or(place.unified).unwrap().exists());
}

#[test]
fn a_program_beyond_its_memory_limit_is_killed_and_that_is_reported() {
    if !limits_can_be_held() {
        return;
    }
    let mut running = limited("memory=64MB", "s.accept()\nx=b\"x\"*(300<<20)\ns.accept()").unwrap();
    assert_eq!(running.ended(), None);
    drop(std::net::TcpStream::connect(running.endpoint().address).unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    while running.ended().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(running.ended().as_deref(), Some("signal: 9 (SIGKILL), after the kernel OOM-killed a process"));
    assert_eq!(running.info().limits.unwrap().memory_bytes, Some(64_000_000));
}

#[test]
fn assigned_cores_are_respected() {
    let running = limited("cores=1", "while True: s.accept()").unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let first = pubmark_systems::affinity::own_cores()[0].to_string();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    assert_eq!(allowed, first);
    assert_eq!(running.info().limits.unwrap().cores, Some(1));
    drop(running);

    let last = *pubmark_systems::affinity::own_cores().last().unwrap();
    let pinned = StartOptions { pinned_cores: vec![last], ..options("mqtt5") };
    let running = start(&script(&listen_and("s.accept()"), 30.0, 2.0), &pinned, &mut |_| Ok(())).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    assert_eq!((allowed, running.info().pinned_cores), (last.to_string().as_str(), Some(last.to_string())));
    assert_eq!(running.info().limits, None);
}

#[test]
fn no_limits_leave_no_trace_in_the_record() {
    let running = limited("none", "while True: s.accept()").unwrap();
    assert_eq!((running.info().limits, running.info().pinned_cores), (None, None));
}
