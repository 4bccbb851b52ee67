//! Processes of this machine: lists of them, and signals to them.

use std::path::Path;
use std::time::{Duration, Instant};

/// Sends a signal to one of our processes.
pub fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: a plain system call that touches no memory.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0, "process {pid} takes no signal {signal}");
}

/// Processes that have a word beginning with `folder` in their command line: systems that a call started, whose
/// configuration is in its folder for temporary files.
pub fn with_files_in(folder: &Path) -> Vec<u32> {
    let wanted = folder.as_os_str().as_encoded_bytes();
    let uses_folder = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word.starts_with(wanted))
    };
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(uses_folder).collect()
}

/// Processes whose environment names a folder: a call that uses it for its temporary files, and all processes that the
/// call started.
pub fn with_environment_of(folder: &Path) -> Vec<u32> {
    let wanted = folder.as_os_str().as_encoded_bytes();
    let knows_folder = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        is_there(*pid) && environment.windows(wanted.len()).any(|piece| piece == wanted)
    };
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(knows_folder).collect()
}

/// Running child processes of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| state_and_parent(*pid).is_some_and(|(state, of)| of == parent && state != 'Z'))
        .collect()
}

/// A process, its children, and their descendants.
pub fn family_of(parent: u32) -> Vec<u32> {
    let mut found = vec![parent];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children_of(*pid));
        next += 1;
    }
    found
}

/// Whether the process exists and is not a zombie.
pub fn is_there(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != 'Z')
}

/// State and parent, from proc_pid_stat(5).
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process has a handler for a signal.
pub fn catches(pid: u32, signal: libc::c_int) -> bool {
    is_in_mask(pid, "SigCgt:", signal)
}

/// Whether a process ignores a signal.
pub fn ignores(pid: u32, signal: libc::c_int) -> bool {
    is_in_mask(pid, "SigIgn:", signal)
}

/// Whether a signal is in a mask of proc_pid_status(5).
fn is_in_mask(pid: u32, mask: &str, signal: libc::c_int) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix(mask)).map_or("0", str::trim);
    u64::from_str_radix(digits, 16).unwrap() & (1 << (signal - 1)) != 0
}

/// CPU time of a process, in ticks of 10 ms: fields 14 and 15 of proc_pid_stat(5).
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    [11, 12].map(|field| fields[field].parse::<u64>().unwrap()).iter().sum()
}

/// Open descriptors of a process; 0 if it has ended.
pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Waits until a condition holds; fails if that takes longer than `limit`.
pub fn wait_for(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "{what} did not come within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
