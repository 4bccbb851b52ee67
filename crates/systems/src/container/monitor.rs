//! Podman's monitor of a container (`conmon`). It ends by itself a moment after its container was removed, and the
//! removal does not wait for it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::engine::{Engine, EngineKind};
use super::place::POLL_INTERVAL;
use crate::supervisor::releasing;

/// Longest wait for the monitor's end. Before it ends, it runs a clean-up command of the engine, which takes a second
/// on a busy machine.
const REMOVAL_LIMIT: Duration = Duration::from_secs(10);

impl Engine {
    /// Waits until a removed container has no monitor any more. A monitor that still runs after 10 s is killed.
    pub fn wait_for_monitor(&self, name: &str) {
        // With Docker, the daemon monitors the containers itself.
        if self.kind == EngineKind::Podman {
            wait_or_kill(name, REMOVAL_LIMIT);
        }
    }
}

fn wait_or_kill(name: &str, limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        let left = monitors(name);
        if left.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            releasing::kill_all(&left);
            return;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Ids of the monitors of the container of that name: `conmon … -n NAME …`. A zombie has an empty command line.
fn monitors(name: &str) -> Vec<u32> {
    let watches = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words[0].ends_with(b"conmon") && words.windows(2).any(|pair| pair == [b"-n", name.as_bytes()])
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(watches).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// The name of a container, and a shell with the arguments of its monitor that waits for the end of its input.
    fn monitor(test: &str) -> (String, Child) {
        let name = format!("pubmark-test-{}-{test}", std::process::id());
        let mut command = Command::new("sh");
        command.arg0("/usr/bin/conmon").args(["-c", "read end", "-n", &name]).stdin(Stdio::piped());
        let monitor = command.spawn().unwrap();
        let began = Instant::now();
        while monitors(&name) != [monitor.id()] {
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", monitors(&name));
        }
        (name, monitor)
    }

    #[test]
    fn a_monitor_is_known_by_the_name_of_its_container() {
        let (name, mut monitor) = monitor("known");
        assert_eq!(monitors("pubmark-test"), Vec::<u32>::new(), "the beginning of a name is another's");
        drop(monitor.stdin.take());
        monitor.wait().unwrap();
        assert_eq!(monitors(&name), Vec::<u32>::new());
    }

    #[test]
    fn a_monitor_that_does_not_end_in_time_is_killed() {
        let (name, mut monitor) = monitor("killed");
        wait_or_kill(&name, Duration::from_millis(20));
        assert_eq!(monitor.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_monitor_that_ends_in_time_is_waited_for() {
        let (name, mut monitor) = monitor("waited");
        let input = monitor.stdin.take();
        let waiting = thread::spawn(move || {
            wait_or_kill(&name, REMOVAL_LIMIT);
            Instant::now()
        });
        // Long enough to return, if it did not wait.
        thread::sleep(Duration::from_millis(100));
        let ends_at = Instant::now();
        drop(input);
        assert!(waiting.join().unwrap() > ends_at, "the monitor had not ended");
        assert_eq!(monitor.wait().unwrap().signal(), None);
    }
}
