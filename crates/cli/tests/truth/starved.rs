//! Whether pubmark or the system was too slow: ten runs with a generator that is starved on purpose, ten with a slow
//! broker; all twenty are attributed correctly. And only a reader that is stopped for 20 ms.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::liar::{Liar, Truth};
use crate::machine;

const RUNS: usize = 10;

/// Whether a reason of the verdict says that the generator was too slow.
fn blames_generator(record: &Value) -> bool {
    let reasons = record["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().any(|reason| reason["text"].as_str().unwrap().starts_with("generator-limited"))
}

fn signal(process: i32, signal: i32) {
    // SAFETY: a signal to a process or thread of a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

/// Stops and continues a process until it has ended: `stopped` of every `period` it does not run, as in a cgroup with a quota.
fn starve(child: &mut Child, period: Duration, stopped: Duration) {
    while child.try_wait().unwrap().is_none() {
        signal(child.id() as i32, libc::SIGSTOP);
        thread::sleep(stopped);
        signal(child.id() as i32, libc::SIGCONT);
        thread::sleep(period - stopped);
    }
}

/// Judges as many runs as are wanted, and only those during which the machine was ours: what the hypervisor takes makes the
/// system slow as well as the generator. The counts have to agree in each, and what `always` demands holds of each, too.
fn judge(run: impl Fn() -> Truth, always: impl Fn(&Value), demands: impl Fn(&Value, usize)) {
    let mut judged = 0;
    for _ in 0..RUNS * machine::TRIES {
        let truth = run();
        truth.demand_agreement();
        always(&truth.record);
        match machine::taken_away(&truth.record) {
            None => {
                demands(&truth.record, judged);
                judged += 1;
            }
            Some(why) => println!("not judged: {why}"),
        }
        if judged == RUNS {
            return;
        }
    }
    assert!(judged > 0, "no run had the machine for itself, so nothing was judged");
    pubmark_testing::skip(format_args!(
        "{judged} of {RUNS} runs had the machine for themselves, the hypervisor the others"
    ));
}

#[test]
fn a_starved_generator_is_called_generator_limited() {
    let run = || {
        let liar = Liar::start_alone("", &[]);
        let arguments =
            ["fan-in", "--set", "publishers=20", "--set", "rate=50/s", "--duration", "2s", "--warmup", "0s"];
        let mut child = liar.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        starve(&mut child, Duration::from_millis(50), Duration::from_millis(25));
        liar.truth(&child.wait_with_output().unwrap())
    };
    let never_valid = |record: &Value| assert_ne!(record["verdict"]["status"], "valid", "{}", record["verdict"]);
    judge(run, never_valid, |record, run| {
        assert!(blames_generator(record), "run {run}: {}", record["verdict"]);
        assert_eq!(record["verdict"]["status"], "invalid", "run {run}");
    });
}

#[test]
fn a_slow_broker_at_qos_2_is_not_blamed_on_the_generator() {
    // 2 ms a message at 700 msg/s offered: the broker carries two thirds of it, back-pressure holds the rest, and the drain
    // is long enough for all of it (what is under way when a run gives up, no journal can know). All is there within a
    // second, so none is late: a message that arrives on that limit is late for one clock reading and not for the other.
    let load = ["fan-in", "--set", "publishers=20", "--set", "rate=35/s", "--qos", "2"];
    let times = ["--duration", "2s", "--warmup", "0s", "--drain", "60s"];
    judge(
        || Liar::start_alone("slow 2ms", &[]).run(&[&load[..], &times[..]].concat()),
        |record| {
            // A busy machine makes the broker even slower.
            let waited_us = record["latency"]["backpressure"]["max_us"].as_f64().unwrap();
            assert!(waited_us > 200_000.0, "back-pressure of {waited_us} µs at most");
        },
        |record, run| assert!(!blames_generator(record), "run {run}: {}", record["verdict"]),
    );
}

/// The thread of a process with this name.
fn thread_named(process: u32, name: &str) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let named = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let task = tasks.flatten().map(|entry| entry.path()).find(named)?;
    task.file_name()?.to_str()?.parse().ok()
}

/// Holds one thread for a time by ptrace, which stops it alone.
fn hold(thread: i32, length: Duration) {
    // SAFETY: ptrace of a thread of our own child; the pointers are unused by these requests.
    unsafe {
        let none = std::ptr::null_mut::<libc::c_void>();
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, thread, none, none), 0, "{}", std::io::Error::last_os_error());
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, thread, none, none), 0);
        let mut status = 0;
        libc::waitpid(thread, &mut status, libc::__WALL);
        thread::sleep(length);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, thread, none, none), 0);
    }
}

fn reader_held(liar: Liar, arguments: &[&str]) {
    // So many that one comes within each ms or two: what shows is how long the first waits that comes after the reader is held.
    let load = ["fan-in", "--set", "publishers=40", "--set", "rate=50/s", "--duration", "3s", "--warmup", "0s"];
    let mut child =
        liar.command(&[&load, arguments].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let reader = loop {
        assert!(began.elapsed() < Duration::from_secs(10), "the reading thread did not appear");
        match thread_named(child.id(), "subscriber-0") {
            Some(thread) if began.elapsed() > Duration::from_millis(1_500) => break thread,
            _ => thread::sleep(Duration::from_millis(5)),
        }
    };
    hold(reader, Duration::from_millis(20));
    assert!(child.try_wait().unwrap().is_none(), "the run was over before its reader was held");
    let truth = liar.truth(&child.wait_with_output().unwrap());
    truth.demand_agreement();
    let lateness_ms = truth.record["latency"]["receive_lateness"]["max_us"].as_f64().unwrap() / 1e3;
    assert!(lateness_ms >= 15.0, "receive lateness of {lateness_ms} ms at most");
    // The message that waited longest for the reader is late by its upper bound alone.
    let [lower_ms, upper_ms] =
        ["lower", "upper"].map(|bound| truth.record["latency"]["total"][bound]["max_us"].as_f64().unwrap() / 1e3);
    assert!(upper_ms >= 15.0 && lower_ms < upper_ms - 5.0, "the largest latency is {lower_ms} to {upper_ms} ms");
}

#[test]
fn a_reader_held_for_20_ms_shows_it_on_tcp() {
    reader_held(Liar::start_alone("", &[]), &[]);
}

#[test]
fn a_reader_held_for_20_ms_shows_it_on_tls() {
    let (liar, [option, trusted]) = Liar::start_encrypted_alone("");
    reader_held(liar, &[&option, &trusted]);
}
