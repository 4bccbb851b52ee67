//! Loops that prevent CPU idle states, until nothing of them remains.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{becomes_true, is_alive};
use pubmark_systems::awake::{Awake, Means};
use pubmark_systems::environment::{self, CpuTimes};
use pubmark_systems::tree;

/// Starts the loops; records a skip if they cannot be started.
fn hold() -> Option<Awake> {
    match Awake::by_loops(Some(Path::new(env!("CARGO_BIN_EXE_pubmark-supervisor")))) {
        Ok(held) => Some(held),
        Err(error) => {
            pubmark_testing::skip(error);
            None
        }
    }
}

/// The supervisor of the loops, and the process that runs them.
fn processes() -> (u32, u32) {
    let found = tree::below(std::process::id());
    assert_eq!(found.len(), 2, "{found:?}");
    (found[0], found[1])
}

/// Folders of the group in which the loops run.
fn groups(supervisor: u32) -> Vec<PathBuf> {
    let name = format!("pubmark-{supervisor}-loops");
    let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"].map(|top| Path::new(top).join(&name));
    tops.into_iter().filter(|folder| folder.exists()).collect()
}

/// Idle time of the machine as the kernel counts it, in clock ticks (proc(5)).
fn idle_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let words: Vec<u64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
    words[3] + words[4]
}

/// One test, because the loops are those of the whole process.
#[test]
fn loops_take_idle_time_alone_and_leave_nothing() {
    let Some(held) = hold() else { return };
    assert_eq!(held.means(), Means::Loops);
    let (supervisor, process) = processes();
    let folders = groups(supervisor);
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert_eq!(std::fs::read_to_string(folders[0].join("cpu.idle")).unwrap().trim(), "1");
    assert_eq!(std::fs::read_to_string(folders[0].join("cgroup.procs")).unwrap().trim(), process.to_string());

    // Threads that want every core displace the loops: a loop gets a core only where none of these runs.
    let cores = std::thread::available_parallelism().unwrap().get();
    let taken = || {
        // SAFETY: both arguments are valid; the process runs.
        unsafe {
            let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
            assert_eq!(libc::clock_getcpuclockid(process as libc::pid_t, &mut clock), 0);
            assert_eq!(libc::clock_gettime(clock, &mut time), 0);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        }
    };
    assert!(becomes_true(|| taken() > Duration::from_millis(20)), "the loops do not run");
    let (begun, before) = (Instant::now(), taken());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| while begun.elapsed() < Duration::from_millis(500) {});
        }
    });
    let share = (taken() - before).as_secs_f64() / begun.elapsed().as_secs_f64() / cores as f64;
    // Where both threads are on one core for a moment, the loop has the other one. With equal rights it would be a half.
    assert!(share < 0.25, "loops took {share} of the cores from threads that wanted them");

    // Their time is idle time, and what counts them is unknown. A tick of the kernel's is 10 ms.
    let added = || CpuTimes::read().unwrap().idle - idle_ticks();
    let (ticks, before) = (added(), taken());
    std::thread::sleep(Duration::from_millis(500));
    let (ticks, loops) = (added() - ticks, (taken() - before).as_millis() as u64 / 10);
    assert!(ticks.abs_diff(loops) <= 5, "{ticks} ticks were added to idle time, the loops took {loops}");
    assert_eq!((environment::load(), environment::cpu_pressure_us()), (None, None));

    drop(held);
    assert!(!is_alive(supervisor) && !is_alive(process) && !folders[0].exists());
    assert_eq!(environment::load(), None, "the average of the last minute has them still");

    // What is said to be possible is.
    let program = Path::new(env!("CARGO_BIN_EXE_pubmark-supervisor"));
    let (allowed, held) = (Awake::is_allowed(), Awake::hold(Some(program)));
    assert_eq!(allowed.ok(), held.ok().map(|held| held.means()));
}
