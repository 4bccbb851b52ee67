//! Leftovers: if pubmark or the system is killed at any moment, no process, control group, directory or port remains.
//! Bar: 100 kills.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::place::{Place, load, times};

/// Environment variable of every process that a run starts.
const MARK: &str = "PUBMARK_LEFTOVERS";
/// Longest time until everything is removed.
const GONE_WITHIN: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

/// Processes with the mark, with their command lines.
fn marked(mark: &str) -> Vec<(u32, String)> {
    let wanted = format!("{MARK}={mark}");
    let mut found = vec![];
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process that ends while it is inspected has ended, which is what the test requires.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&words).replace('\0', " ")));
        }
    }
    found
}

/// Control groups of pubmark below the mounted hierarchies.
fn control_groups() -> Vec<PathBuf> {
    fn search(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with("pubmark-") {
                found.push(path.clone());
            }
            if depth > 0 {
                search(&path, depth - 1, found);
            }
        }
    }
    let mut found = vec![];
    search(Path::new("/sys/fs/cgroup"), 5, &mut found);
    found
}

fn directories(place: &Place) -> Vec<PathBuf> {
    fs::read_dir(place.temporary()).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// The process of the system itself: the one that runs the program.
fn system_of(mark: &str) -> Option<u32> {
    marked(mark).into_iter().find(|(_, words)| words.contains("mosquitto.conf")).map(|(pid, _)| pid)
}

fn kill(pid: u32) {
    // SAFETY: plain system call; it fails if the process has ended, which is equally good.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
}

/// Port that the system's configuration names, once it is written.
fn port(place: &Place) -> Option<u16> {
    let file = directories(place).into_iter().map(|path| path.join("mosquitto.conf")).find(|path| path.is_file())?;
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("listener ")?.split(' ').next()?.parse().ok())
}

/// Waits for a moment of the run, and reads the port meanwhile; ends early with the run.
fn wait(place: &Place, run: &mut Child, moment: Duration) -> Option<u16> {
    let began = Instant::now();
    let mut found = None;
    while began.elapsed() < moment && run.try_wait().unwrap().is_none() {
        found = found.or_else(|| port(place));
        std::thread::sleep(Duration::from_millis(5).min(moment.saturating_sub(began.elapsed())));
    }
    found.or_else(|| port(place))
}

/// What remains after the time in which everything should be removed.
fn leftovers(place: &Place, mark: &str, before: &[PathBuf], port: Option<u16>) -> Vec<String> {
    let began = Instant::now();
    loop {
        let mut found: Vec<String> =
            marked(mark).into_iter().map(|(pid, words)| format!("process {pid}: {words}")).collect();
        let groups = control_groups().into_iter().filter(|group| !before.contains(group));
        // Control groups of concurrent tests do not count: only new ones without a living process do.
        found.extend(groups.filter(|group| is_empty(group)).map(|group| format!("control group {}", group.display())));
        found.extend(directories(place).into_iter().map(|path| format!("directory {}", path.display())));
        if let Some(port) = port.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_err()) {
            found.push(format!("port {port}"));
        }
        if found.is_empty() || began.elapsed() > GONE_WITHIN {
            return found;
        }
        std::thread::sleep(LOOK);
    }
}

fn is_empty(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| text.trim().is_empty())
}

#[test]
fn nothing_remains_after_any_process_is_killed() {
    let place = Place::new();
    let count = times(10, 100);
    let before = control_groups();
    for number in 0..count {
        let mark = format!("{}-{number}", std::process::id());
        let arguments = [
            "run",
            "hello",
            "--system",
            "mosquitto",
            "--duration",
            "2s",
            "--warmup",
            "100ms",
            "--drain",
            "1s",
            "--quiet",
        ];
        let mut command = place.command(&arguments);
        command.env(MARK, &mark).stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().unwrap();
        // Moments from before the start of the system until after the run, without a pattern that could miss a phase.
        let moment = Duration::from_micros(u64::from(number).wrapping_mul(7_919_317) % 2_600_000);
        let port = wait(&place, &mut run, moment);
        let victim = if number % 3 == 2 { system_of(&mark) } else { None };
        match victim {
            Some(system) => kill(system),
            None => kill(run.id()),
        }
        run.wait().unwrap();
        let found = leftovers(&place, &mark, &before, port);
        let who = if victim.is_some() { "the system" } else { "pubmark" };
        assert!(found.is_empty(), "kill {number} of {who} after {moment:?} left {found:?}");
    }
    eprintln!("leftovers: nothing remained after {count} kills, load {}", load());
}
