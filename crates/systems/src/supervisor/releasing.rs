//! Removal of what a broker used: its folders and control groups. The supervisor uses it, and pubmark if a supervisor
//! was killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time for one folder: a process that was just killed may still use it for a moment.
const FOLDER_WITHIN: Duration = Duration::from_secs(3);
/// Time between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Ids of the processes in these control groups. A group that cannot be read has no processes that we could kill.
pub fn members(cgroups: &[PathBuf]) -> Vec<u32> {
    let texts = cgroups.iter().filter_map(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
    let mut pids: Vec<u32> =
        texts.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Kills all processes in those control groups that support it in one step (version 2, Linux 5.14).
pub fn kill_members(cgroups: &[PathBuf]) {
    for file in cgroups.iter().map(|folder| folder.join("cgroup.kill")).filter(|file| file.exists()) {
        // If this fails, the processes are killed one by one.
        let _ = fs::write(file, "1");
    }
}

/// Kills processes that are not our children.
pub fn kill_all(pids: &[u32]) {
    signal_all(pids, libc::SIGKILL);
}

/// Sends a signal to processes that are not our children.
pub fn signal_all(pids: &[u32], signal: libc::c_int) {
    for pid in pids {
        // SAFETY: plain system call; the id was just read, and a process that ended since makes it fail.
        unsafe { libc::kill(*pid as libc::pid_t, signal) };
    }
}

/// Removes control groups and folders. What cannot be removed in time remains for the next start, which tries again.
pub fn remove(cgroups: &[PathBuf], directories: &[PathBuf]) {
    for folder in cgroups {
        persist(|| fs::remove_dir(folder));
    }
    for folder in directories {
        persist(|| remove_folder(folder));
    }
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder)
}

/// Retries until the removal succeeds or there is nothing to remove.
fn persist(mut remove: impl FnMut() -> io::Result<()>) {
    let deadline = Instant::now() + FOLDER_WITHIN;
    while let Err(error) = remove() {
        if error.kind() == io::ErrorKind::NotFound || Instant::now() >= deadline {
            return;
        }
        thread::sleep(POLL_INTERVAL);
    }
}
