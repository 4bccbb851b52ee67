//! The process of a run is killed at a random moment: the run has failed, and the next one starts.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::server::{LONG, SHORT, Server, folder, wait_for};

/// Number of random moments.
const MOMENTS: usize = 3;
/// No process of a run continues for longer without its parent.
const ORPHANED: Duration = Duration::from_secs(5);

/// State and parent of a process, of proc_pid_stat(5).
fn state_and_parent(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn is_there(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != "Z")
}

/// Descendants of these processes.
fn family_of(parents: &[u32]) -> Vec<u32> {
    let all: Vec<u32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| is_there(*pid) && state_and_parent(*pid).is_some_and(|(_, parent)| parents.contains(&parent)))
        .collect();
    if all.is_empty() { all } else { [family_of(&all), all].concat() }
}

#[test]
fn a_run_whose_process_is_killed_has_failed_and_the_next_one_is_run() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    for _ in 0..MOMENTS {
        let [killed, next] = [server.submit(LONG), server.submit(SHORT)];
        let process = wait_for("a process", || {
            let running = server.entry(&killed)["state"] == "running";
            running.then(|| family_of(&[server.pid()]).pop()).flatten()
        });
        let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
        let moment = Duration::from_micros(u64::from(nanoseconds) % 2_500_000);
        std::thread::sleep(moment);
        let family = family_of(&[process]);
        // SAFETY: a plain system call about a process that the server has not waited for.
        assert_eq!(unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) }, 0);
        let entry = server.wait(&killed, &["failed"]);
        assert!(entry["exit_code"].is_null(), "after {moment:?}: {entry}");
        let began = Instant::now();
        while family.iter().any(|pid| is_there(*pid)) {
            assert!(began.elapsed() < ORPHANED, "after {moment:?}: {family:?} go on");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.wait(&next, &["complete"]);
    }
    server.stop();
}
