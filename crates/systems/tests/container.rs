//! Tests with a real container engine: mosquitto in a container, its limits, its end, and what remains.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;
mod contained;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{becomes_true, is_alive};
use contained::{accepts_mqtt, back_end, containers, engine};
use pubmark_systems::cgroup::usage::CgroupUsage;
use pubmark_systems::container::Engine;
use pubmark_systems::launch::{CommandLine, ContainerOrder};
use pubmark_systems::limits::ResourceLimits;
use pubmark_systems::ports;
use pubmark_systems::private_directory::PrivateDirectory;
use pubmark_systems::process::run_to_end;

/// A container that was started. When this is dropped, the container and its files are removed.
struct Started {
    engine: Engine,
    name: String,
    child: Child,
    line: CommandLine,
    directory: PrivateDirectory,
    log: tempfile::NamedTempFile,
}

impl Started {
    fn new(engine: &Engine, image: &str, arguments: &[&str], limits: Option<&ResourceLimits>) -> Started {
        let directory = PrivateDirectory::within(&std::env::temp_dir()).unwrap();
        std::fs::write(directory.path().join("mosquitto.conf"), "# as written by its owner alone\n").unwrap();
        Started::with(engine, image, directory, arguments, limits)
    }

    fn with(
        engine: &Engine,
        image: &str,
        directory: PrivateDirectory,
        arguments: &[&str],
        limits: Option<&ResourceLimits>,
    ) -> Started {
        let name = format!("pubmark-test-{}", directory.path().display().to_string().rsplit('-').next().unwrap());
        let back_end = back_end(image);
        let line = engine
            .command_line(&ContainerOrder {
                back_end: &back_end,
                image,
                mounts: vec![(directory.path().to_owned(), back_end.directory.clone())],
                arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
                environment: vec![("SECRET".to_owned(), "s3cret".to_owned())],
                limits,
                cores: limits.and_then(|limits| limits.cores).map_or(vec![], |_| vec![0]),
                name: name.clone(),
            })
            .unwrap();
        assert!(!line.arguments.iter().any(|argument| argument.contains("s3cret")), "{line:?}");
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(&line.program)
            .args(&line.arguments)
            .envs(line.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.reopen().unwrap())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        Started { engine: engine.clone(), name, child, line, directory, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Requests the container to end; returns the status of the command that ran it.
    fn request_end(&mut self) -> Option<i32> {
        // SAFETY: plain system call on a child that was not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        self.end()
    }

    fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the command did not end: {}", self.log());
    }

    fn clean_up(&self) {
        for words in &self.line.clean_up {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            let (status, output) = run_to_end(command, Duration::from_secs(20)).unwrap();
            // `unpause` fails if the container is not paused.
            assert!(status.success() || words.contains(&"unpause".to_owned()), "{output}");
        }
        self.engine.wait_for_monitor(&self.name);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.clean_up();
    }
}

/// What a network other than the host's would change: the rules of the packet filter without their counters and times,
/// and whether packets are forwarded.
fn packet_filter() -> (String, String) {
    let rules =
        Command::new("iptables-save").output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let lines = rules.unwrap_or_default();
    let kept = lines.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(" [").next().unwrap_or(line));
    (kept.collect::<Vec<_>>().join("\n"), std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap())
}

#[test]
fn mosquitto_in_a_container_responds_and_leaves_nothing() {
    let Some((engine, image)) = engine() else { return };
    let before = packet_filter();
    let port = ports::free(1).unwrap()[0];
    let directory = PrivateDirectory::within(&std::env::temp_dir()).unwrap();
    let configuration = directory.path().join("mosquitto.conf");
    let text = format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n");
    std::fs::write(&configuration, text).unwrap();
    // A start writes the file with this mode, and the container runs as another user.
    Command::new("chmod").arg("600").arg(&configuration).status().unwrap();
    let mut started =
        Started::with(engine, image, directory, &["/usr/sbin/mosquitto", "-c", "/pubmark/mosquitto.conf"], None);
    assert!(becomes_true(|| accepts_mqtt(port).unwrap_or(false)), "{}", started.log());

    let place =
        engine.cost_source(&started.name, Duration::from_secs(10)).unwrap().expect("its process is on this machine");
    let program = std::fs::read_to_string(format!("/proc/{}/comm", place.pid)).unwrap();
    assert_eq!(program, "mosquitto\n");
    let usage = CgroupUsage::read(place.cgroup.as_ref().expect("its group is found"));
    assert!(usage.cpu_ns.is_some_and(|ns| ns > 0) && usage.memory_bytes.is_some_and(|bytes| bytes > 0), "{usage:?}");
    assert_eq!(usage.limits, None);
    assert_eq!(engine.ended(&started.name).unwrap(), None);

    assert_eq!(started.request_end(), Some(0));
    assert!(started.log().contains("terminating"), "{}", started.log());
    assert!(engine.ended(&started.name).unwrap().is_some_and(|end| end.status == 0 && !end.out_of_memory));
    let (name, folder) = (started.name.clone(), started.directory.path().to_owned());
    drop(started);
    assert!(!containers(engine).contains(&name));
    assert!(becomes_true(|| !is_alive(place.pid)) && !folder.exists());
    let group = place.cgroup.unwrap();
    let folders: Vec<PathBuf> = [group.unified, group.cpu, group.memory].into_iter().flatten().collect();
    assert!(!folders.is_empty() && becomes_true(|| folders.iter().all(|folder| !folder.exists())), "{folders:?}");
    assert_eq!(packet_filter(), before);
}

#[test]
fn limits_hold_and_show_in_the_counters() {
    let Some((engine, image)) = engine() else { return };
    let limits = ResourceLimits {
        requested: "cpu=0.2,memory=64MB,cores=1".to_owned(),
        cpu: Some(0.2),
        memory_bytes: Some(64_000_000),
        cores: Some(1),
    };
    if !engine.limits_left_out.is_empty() {
        pubmark_testing::skip(format_args!(
            "{} leaves out limits on {:?} here",
            engine.title(),
            engine.limits_left_out
        ));
        return;
    }
    let started = Started::new(engine, image, &["/bin/sh", "-c", "while :; do :; done"], Some(&limits));
    let place = engine.cost_source(&started.name, Duration::from_secs(20)).unwrap().expect("it runs");
    let group = place.cgroup.unwrap();
    let (begun, before) = (Instant::now(), CgroupUsage::read(&group));
    std::thread::sleep(Duration::from_secs(2));
    let (after, passed) = (CgroupUsage::read(&group), begun.elapsed());
    let cores = (after.cpu_ns.unwrap() - before.cpu_ns.unwrap()) as f64 / passed.as_nanos() as f64;
    assert!((0.01..0.25).contains(&cores), "{cores} cores under cpu=0.2");
    let counters = after.limits.unwrap();
    assert!(counters.throttled_periods.is_some_and(|periods| periods > 10), "{counters:?}");
    let read = |folder: &Option<PathBuf>, file: &str| {
        folder
            .as_ref()
            .and_then(|folder| std::fs::read_to_string(folder.join(file)).ok())
            .map(|text| text.trim().to_owned())
    };
    let ration = read(&group.cpu, "cpu.cfs_quota_us").or_else(|| read(&group.unified, "cpu.max")).unwrap();
    assert!(["2000", "2000 10000"].contains(&ration.as_str()), "{ration}");
    let cores = read(&group.cpuset, "cpuset.cpus").or_else(|| read(&group.unified, "cpuset.cpus")).unwrap();
    assert_eq!(cores, "0");
    let memory = read(&group.memory, "memory.limit_in_bytes").or_else(|| read(&group.unified, "memory.max")).unwrap();
    // The kernel rounds the limit down to pages.
    assert_eq!(memory.parse::<u64>().unwrap() / 4_096, 64_000_000 / 4_096);
}

#[test]
fn a_program_that_wants_more_memory_than_its_limit_is_killed() {
    let Some((engine, image)) = engine() else { return };
    let limits =
        ResourceLimits { requested: "memory=16MB".to_owned(), cpu: None, memory_bytes: Some(16_000_000), cores: None };
    if engine.limits_left_out.contains(&"memory") {
        pubmark_testing::skip(format_args!("{} leaves out limits on memory here", engine.title()));
        return;
    }
    let grow = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done";
    let mut started = Started::new(engine, image, &["/bin/sh", "-c", grow], Some(&limits));
    // 128 + SIGKILL.
    assert_eq!(started.end(), Some(137), "{}", started.log());
    assert_eq!(engine.ended(&started.name).unwrap().map(|end| end.status), Some(137));
}

#[test]
fn a_container_that_ignores_sigterm_is_removed_at_once() {
    let Some((engine, image)) = engine() else { return };
    let mut started = Started::new(engine, image, &["/bin/sh", "-c", "trap '' TERM; while :; do :; done"], None);
    let place = engine.cost_source(&started.name, Duration::from_secs(20)).unwrap().expect("it runs");
    // If only the command is killed, the container continues to run: the clean-up command removes it.
    started.child.kill().unwrap();
    started.child.wait().unwrap();
    assert!(is_alive(place.pid));
    let begun = Instant::now();
    started.clean_up();
    assert!(!is_alive(place.pid) && begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn an_image_that_is_not_here_is_named_with_the_command_that_fetches_it() {
    let Some((engine, image)) = engine() else { return };
    let log = tempfile::NamedTempFile::new().unwrap();
    engine.prepare("contained", image, log.path(), None).unwrap();
    let missing = "localhost/pubmark-no-such-image:1";
    assert!(!engine.has_image(missing).unwrap());
    let error = engine.prepare("contained", missing, log.path(), None).unwrap_err().to_string();
    let start = format!(
        "image `{missing}` is not here and could not be fetched: `{} pull {missing}` fetches it; it printed:\n",
        engine.program.display()
    );
    assert!(error.starts_with(&start), "{error}");
}

/// Runs this test in a separate process, which starts a container and is killed together with its supervisor.
#[test]
fn leftovers_of_a_killed_owner_are_removed_by_the_next_start() {
    let Some((engine, image)) = engine() else { return };
    if let Ok(note) = std::env::var("PUBMARK_TEST_NOTE") {
        let started = Started::new(engine, image, &["/bin/sh", "-c", "while :; do :; done"], None);
        let place = engine.cost_source(&started.name, Duration::from_secs(20)).unwrap().expect("it runs");
        std::fs::write(format!("{note}-early"), format!("{} {}", started.name, place.pid)).unwrap();
        std::fs::rename(format!("{note}-early"), note).unwrap();
        // The process is killed here.
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("name");
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["leftovers_of_a_killed_owner_are_removed_by_the_next_start", "--exact"])
        .env("PUBMARK_TEST_NOTE", &note)
        // Files that the process cannot remove are removed with this folder.
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let written = (0..6).any(|_| becomes_true(|| note.exists()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(written, "the owner never started its container");
    let (name, pid) = read_note(&note);
    assert!(is_alive(pid), "this test would see nothing: the container ended with its owner");
    let removed = engine.remove_abandoned().unwrap();
    // The start of another test may have removed it first.
    assert!(removed.contains(&name) || !containers(engine).contains(&name), "{removed:?}");
    assert!(becomes_true(|| !is_alive(pid)));
}

fn read_note(note: &Path) -> (String, u32) {
    let text = std::fs::read_to_string(note).unwrap();
    let (name, pid) = text.split_once(' ').unwrap();
    (name.to_owned(), pid.parse().unwrap())
}
