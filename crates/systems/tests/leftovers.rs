//! Nothing remains, whichever process is killed, and whenever.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{becomes_true, is_alive, options, script_with};
use pubmark_model::topology::{Topology, TopologyMode};
use pubmark_systems::cgroup::layout::Layout;
use pubmark_systems::{Definition, StartOptions, start};

/// Starts a background program in its own session, as daemons do, and a second one in the usual session; then listens.
const DAEMONS: &str = "(setsid sleep 1000 &)\nsleep 1000 &\nexec python3 -c 'import socket,sys\ns=socket.create_server((\"127.0.0.1\",int(sys.argv[1])))\nwhile True: s.accept()' $1";
/// Environment variable by which all processes that a test starts are found.
const MARK: &str = "PUBMARK_TEST_MARK";
/// Environment variable for the process that owns the systems and will be killed.
const OWNER: &str = "PUBMARK_TEST_OWNER";

/// Two brokers with daemons. If their owner will be killed, a clean-up command notes their end in the folder for
/// temporary files.
fn daemons() -> Definition {
    let clean_up = "    clean_up: [{program: sh, arguments: [-c, \"[ -z \\\"$PUBMARK_TEST_OWNER\\\" ] || echo {name} >> $TMPDIR/cleaned\"]}]\n";
    script_with(DAEMONS, 20.0, 2.0, clean_up)
}

fn two_of_them() -> StartOptions {
    StartOptions { topology: Topology { brokers: 2, mode: TopologyMode::Shard }, ..options("mqtt5") }
}

/// Ids of the processes with this value of the variable.
fn marked(mark: &str) -> Vec<u32> {
    pubmark_systems::tree::marked(MARK, mark).into_iter().filter(|pid| is_alive(*pid)).collect()
}

/// Control groups of pubmark whose names have one of these process ids.
fn groups_of(pids: &[u32]) -> Vec<PathBuf> {
    let layout = Layout::read().unwrap();
    let parents =
        layout.controllers.values().chain(&layout.unified).flat_map(|at| [Some(at.own.as_path()), at.own.parent()]);
    let entries = parents.flatten().filter_map(|parent| std::fs::read_dir(parent).ok()).flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        pids.iter().any(|pid| name.starts_with(&format!("pubmark-{pid}-")))
    });
    found
}

/// Folders that a system left in `folder`.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn nothing_remains_of_an_owner_killed_at_any_moment() {
    if std::env::var_os(OWNER).is_some() {
        // The process is killed somewhere in this loop.
        loop {
            let running = start(&daemons(), &two_of_them(), &mut |_| Ok(())).unwrap();
            std::fs::write(std::env::temp_dir().join("started"), "").unwrap();
            std::thread::sleep(Duration::from_millis(100));
            running.stop();
        }
    }
    let mut known_groups = 0;
    for kill in 0..10u64 {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("{}-{kill}", std::process::id());
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["nothing_remains_of_an_owner_killed_at_any_moment", "--exact"])
            .envs([(MARK, mark.as_str()), (OWNER, "1"), ("TMPDIR", folder.path().to_str().unwrap())])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The kills are spread over the time of a start and a stop; the last ones happen after a complete start.
        if kill >= 7 {
            assert!(becomes_true(|| folder.path().join("started").exists()), "the owner never started its system");
        }
        let until = Instant::now() + Duration::from_micros(kill * 61_803 % 500_000);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_micros(500));
        }
        let pids = marked(&mark);
        known_groups += groups_of(&pids).len();
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert!(becomes_true(|| marked(&mark).is_empty()), "kill {kill}: {:?} still run", marked(&mark));
        assert_eq!(groups_of(&pids), Vec::<PathBuf>::new(), "kill {kill}");
        assert_eq!(folders_in(folder.path()), Vec::<PathBuf>::new(), "kill {kill}");
        let cleaned = std::fs::read_to_string(folder.path().join("cleaned")).unwrap_or_default();
        assert!(kill < 7 || cleaned.contains("script-1\n") && cleaned.contains("script-2\n"), "kill {kill}: {cleaned}");
    }
    if known_groups == 0 {
        pubmark_testing::skip("control groups, as none can be made here");
    }
}

#[test]
fn nothing_remains_of_a_system_that_is_killed() {
    let mut running = start(&daemons(), &options("mqtt5"), &mut |_| Ok(())).unwrap();
    let tree = pubmark_systems::tree::members(running.pid());
    // The listener, the background program of its session, and the daemon in another session.
    assert!(tree.len() >= 3, "{tree:?}");
    let folder = std::fs::read_link(format!("/proc/{}/cwd", running.pid())).unwrap();
    assert!(folder.is_dir());
    kill(running.pid());
    assert!(wait_for_end(&mut running).starts_with("signal: 9"));
    assert!(tree.iter().all(|pid| !is_alive(*pid)), "{tree:?}");
    drop(running);
    assert!(!folder.exists());
}

#[test]
fn nothing_remains_when_the_supervisor_is_killed() {
    let mut running = start(&daemons(), &options("mqtt5"), &mut |_| Ok(())).unwrap();
    let tree = pubmark_systems::tree::members(running.pid());
    let supervisor = parent_of(running.pid());
    let folder = std::fs::read_link(format!("/proc/{}/cwd", running.pid())).unwrap();
    assert_eq!(std::fs::read_to_string(format!("/proc/{supervisor}/comm")).unwrap().trim(), "pubmark-superv");
    kill(supervisor);
    assert_eq!(wait_for_end(&mut running), "killed with the process that held it");
    assert!(becomes_true(|| tree.iter().all(|pid| !is_alive(*pid))), "{tree:?}");
    assert!(!folder.exists());
    assert_eq!(groups_of(&[supervisor]), Vec::<PathBuf>::new());
}

#[test]
fn a_supervisor_outlives_the_signals_of_a_terminal() {
    let mut running = start(&daemons(), &options("mqtt5"), &mut |_| Ok(())).unwrap();
    let supervisor = parent_of(running.pid());
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: plain system call on a process that is ours.
        unsafe { libc::kill(supervisor as libc::pid_t, signal) };
    }
    // The broker starts with the default action for signals: it ends when requested to.
    assert!(is_alive(supervisor) && running.ended().is_none());
    assert!(matches!(running.stop(), pubmark_systems::process::Stopped::Asked(_)));
    assert!(becomes_true(|| !is_alive(supervisor)));
}

#[test]
fn a_program_that_is_no_supervisor_is_not_waited_for() {
    let begun = Instant::now();
    let wrong = StartOptions { supervisor: Some("/bin/true".into()), ..options("mqtt5") };
    let error = start(&daemons(), &wrong, &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "`/bin/true` cannot supervise a system: it ended, or is not a supervisor");
    let missing = StartOptions { supervisor: Some("/no/such/supervisor".into()), ..options("mqtt5") };
    let error = start(&daemons(), &missing, &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "failed to run `/no/such/supervisor`");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

fn kill(pid: u32) {
    // SAFETY: plain system call on a process that is ours.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) }, 0);
}

fn wait_for_end(running: &mut pubmark_systems::RunningSystem) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match running.ended() {
            Some(end) => return end,
            None => assert!(Instant::now() < deadline, "its end was never seen"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}
