//! The control plane between real processes: its delays, the effect of a stalled node on others, and which nodes are
//! detected as lost.
//!
//! Nodes run in separate processes, many in each. Their workers are `cat`, which sends back what it receives, so the
//! tests measure the round trip. `PUBMARK_NODES=200` runs the tests at full size and prints the figures of
//! docs/explanation/many-machines.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test; figures are printed")]

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_cluster::credentials::{self, COORDINATOR_FOLDER, NODE_FOLDER};
use pubmark_cluster::node::{self, CoordinatorAddress, NodeKind, NodeSettings};
use pubmark_cluster::{Cluster, ClusterError, Credentials, NodesRequired, WorkerReport};
use pubmark_engine::progress::Progress;
use pubmark_engine::remote;
use pubmark_model::placement::Labels;

/// Environment variable of a process that runs nodes: folder, address, first number, number of nodes.
const ROLE: &str = "PUBMARK_TEST_NODES";
/// Default number of nodes.
const FEW: usize = 12;
/// Number of nodes per process.
const IN_ONE: usize = 25;
const VERSION: &str = "1.2.3";
const LIMIT: Duration = Duration::from_secs(30);

fn settings(folder: &Path, join: &str, name: String) -> NodeSettings {
    NodeSettings {
        join: CoordinatorAddress::At(join.to_owned()),
        credentials: Credentials::read(&folder.join(NODE_FOLDER), None).unwrap(),
        labels: Labels::from([("name".to_owned(), name.clone())]),
        no_links: None,
        no_kernel_netem: None,
        name,
        version: VERSION.to_owned(),
        host: "test".to_owned(),
        kernel: String::new(),
        cores: 1,
        memory_bytes: 0,
        awake: false,
        kind: NodeKind::Clients,
        address: None,
        machine: |_| None,
        counts: false,
        once: true,
        clock_error: None,
    }
}

/// A worker that sends back what it receives.
fn echo(control: OwnedFd, memory: OwnedFd) -> std::io::Result<Child> {
    // `cat` has no heartbeat: this process, which ends with the test, sets it instead.
    let progress = Arc::new(Progress::of_run(memory)?);
    remote::beat(&progress, 0)?;
    std::mem::forget(progress);
    let out = control.try_clone()?;
    Command::new("cat").stdin(Stdio::from(control)).stdout(Stdio::from(out)).spawn()
}

/// Not a test: processes that the tests start run nodes in it.
#[test]
fn role_of_nodes() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.split(' ');
    let mut next = || words.next().unwrap().to_owned();
    let (folder, join, first, count) = (next(), next(), next(), next());
    let first: usize = first.parse().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in first..first + count.parse::<usize>().unwrap() {
            let settings = settings(Path::new(&folder), &join, format!("node-{number}"));
            let stop = &stop;
            scope.spawn(move || node::attend(&settings, &echo, stop, &mut |_| {}).unwrap());
        }
    });
}

/// A coordinator and processes with nodes, which are killed when this is dropped.
struct Bed {
    cluster: Cluster,
    processes: Vec<Child>,
    _folder: tempfile::TempDir,
    joined_in: Duration,
}

impl Bed {
    fn new(nodes: usize, in_one: usize) -> Bed {
        let folder = tempfile::tempdir().unwrap();
        credentials::make(folder.path(), 1).unwrap();
        let own = Credentials::read(&folder.path().join(COORDINATOR_FOLDER), None).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let cluster = Cluster::listen(any, &own, VERSION).unwrap();
        let start = |first: usize| {
            let role =
                format!("{} {} {first} {}", folder.path().display(), cluster.address(), in_one.min(nodes - first));
            Command::new(std::env::current_exe().unwrap())
                .args(["role_of_nodes", "--exact"])
                .env(ROLE, role)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let began = Instant::now();
        let processes = (0..nodes).step_by(in_one).map(start).collect();
        cluster
            .gather(NodesRequired { nodes, ..NodesRequired::default() }, LIMIT, &AtomicBool::new(false), &mut |_| {})
            .unwrap();
        Bed { cluster, processes, _folder: folder, joined_in: began.elapsed() }
    }

    fn begin(&self, node: usize) -> UnixStream {
        self.try_to_begin(node).unwrap()
    }

    fn try_to_begin(&self, node: usize) -> Result<UnixStream, ClusterError> {
        let progress = Arc::new(Progress::new(1).unwrap());
        let stream = self.cluster.begin(node, &[0], &progress, &AtomicBool::new(false))?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Ok(stream)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

fn signal(process: u32, signal: libc::c_int) {
    // SAFETY: a plain system call that touches no memory.
    assert_eq!(unsafe { libc::kill(process as libc::pid_t, signal) }, 0);
}

/// Sends 64 bytes to all workers and waits until all have sent them back.
fn barrier(workers: &mut [UnixStream]) -> Duration {
    let began = Instant::now();
    workers.iter_mut().for_each(|worker| worker.write_all(&[7; 64]).unwrap());
    workers.iter_mut().for_each(|worker| worker.read_exact(&mut [0; 64]).unwrap());
    began.elapsed()
}

fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize]
}

fn echo_megabytes(worker: &mut UnixStream, megabytes: usize) -> Duration {
    let began = Instant::now();
    let mut writing = worker.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let piece = vec![3; 1 << 20];
            (0..megabytes).for_each(|_| writing.write_all(&piece).unwrap());
        });
        let mut left = vec![0; 1 << 20];
        (0..megabytes).for_each(|_| worker.read_exact(&mut left).unwrap());
    });
    began.elapsed()
}

fn own_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn own_rss_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn many_nodes_join_and_answer_together() {
    let nodes = std::env::var("PUBMARK_NODES").map_or(FEW, |count| count.parse().unwrap());
    let bed = Bed::new(nodes, IN_ONE);
    println!("{nodes} nodes joined in {:?}", bed.joined_in);
    let is_labelled = |node: &pubmark_cluster::NodeInfo| node.labels.get("name") == Some(&node.name);
    assert!(bed.cluster.nodes().iter().all(is_labelled), "{:?}", bed.cluster.nodes());
    let began = Instant::now();
    let mut workers: Vec<UnixStream> = (0..nodes).map(|node| bed.begin(node)).collect();
    println!("their workers began in {:?}", began.elapsed());
    barrier(&mut workers);
    let before = own_cpu();
    let mut times: Vec<Duration> = (0..100).map(|_| barrier(&mut workers)).collect();
    let cpu = (own_cpu() - before) / 100;
    println!("barrier p50 {:?} p99 {:?}, {cpu:?} of CPU", quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    assert!(quantile(&mut times, 0.5) < Duration::from_millis(200));
    bed.cluster.mark(0);
    let before = own_cpu();
    let idle = Duration::from_secs(3);
    thread::sleep(idle);
    bed.cluster.mark(1);
    let cpu = (own_cpu() - before).as_secs_f64() / idle.as_secs_f64();
    let bytes: u64 = bed.cluster.traffic().iter().map(|traffic| traffic.unwrap().between_marks).sum();
    let each = bytes as f64 / nodes as f64 / idle.as_secs_f64();
    println!("idle: {each:.0} B/s a node, {cpu:.3} of a core, {} MB resident", own_rss_megabytes());
    assert!(each > 10.0 && each < 5_000.0, "{each}");
    assert!((0..nodes).all(|node| bed.cluster.lost(node).is_none()));
    drop(workers);
    let reports = bed.cluster.reports();
    let of_node = |workers: &Vec<WorkerReport>| WorkerReport::of_node(workers).unwrap();
    assert!(reports.iter().all(|workers| of_node(workers).clock.unwrap().is_the_same));
}

#[test]
fn workers_of_a_launch_that_failed_are_not_in_the_reports_of_the_next() {
    let bed = Bed::new(2, 2);
    // The launch fails on the second node, and nobody collects the first one's results.
    drop(bed.begin(0));
    bed.cluster.forget_workers();
    let workers = [bed.begin(0), bed.begin(1)];
    drop(workers);
    let reports = bed.cluster.reports();
    assert_eq!(reports.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1], "{reports:?}");
    assert!(reports.iter().all(|workers| WorkerReport::of_node(workers).is_some()), "{reports:?}");
}

#[test]
fn a_run_that_ends_early_has_no_traffic_of_the_run_before() {
    let bed = Bed::new(1, 1);
    let while_measuring = || bed.cluster.traffic()[0].unwrap().between_marks;
    bed.cluster.mark(0);
    barrier(&mut [bed.begin(0)]);
    bed.cluster.mark(1);
    assert!(while_measuring() > 0);
    bed.cluster.forget_workers();
    assert_eq!(while_measuring(), 0, "the next run has not begun to measure");
    // That run is stopped before the end of its window.
    bed.cluster.mark(0);
    assert_eq!(while_measuring(), 0);
}

#[test]
fn a_worker_gets_its_input_while_others_of_its_node_begin_and_end() {
    let bed = Bed::new(1, 1);
    let mut worker = [bed.begin(0)];
    let done = AtomicBool::new(false);
    // A worker that ends is followed by a burst of time requests, which the next one to begin waits for: in it, input of the
    // first worker arrives, and the end of the one before may.
    let begun = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                barrier(&mut worker);
            }
        });
        let begun: Result<Vec<()>, ClusterError> = (0..20).map(|_| bed.try_to_begin(0).map(drop)).collect();
        done.store(true, Relaxed);
        begun
    });
    begun.unwrap();
    barrier(&mut worker);
}

#[test]
fn a_node_that_stalls_does_not_delay_the_others() {
    let bed = Bed::new(5, 1);
    let mut workers: Vec<UnixStream> = (0..5).map(|node| bed.begin(node)).collect();
    let began = Instant::now();
    thread::scope(|scope| {
        workers.iter_mut().for_each(|worker| {
            scope.spawn(move || echo_megabytes(worker, 20));
        });
    });
    println!("5 × 20 MB there and back at once in {:?}", began.elapsed());
    let mut stalled = workers.pop().unwrap();
    barrier(&mut workers);
    let mut quiet: Vec<Duration> = (0..200).map(|_| barrier(&mut workers)).collect();
    // The worker of one node reads nothing, so all buffers before it fill up.
    let stuck = children_of(bed.processes[4].id())[0];
    signal(stuck, libc::SIGSTOP);
    stalled.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    while stalled.write_all(&[1; 1 << 16]).is_ok() {}
    let mut beside: Vec<Duration> = (0..200).map(|_| barrier(&mut workers)).collect();
    let [quiet, beside] = [&mut quiet, &mut beside].map(|times| quantile(times, 0.5));
    println!("barrier of four p50 {quiet:?}, beside a stalled one {beside:?}");
    assert!(beside < quiet * 3 + Duration::from_millis(5), "{beside:?} after {quiet:?}");
    // The worker is stuck, but its node is not lost: it still sends heartbeats.
    thread::sleep(Duration::from_millis(2_500));
    assert!((0..5).all(|node| bed.cluster.lost(node).is_none()), "{:?}", bed.cluster.lost(4));
    signal(stuck, libc::SIGCONT);
}

fn children_of(parent: u32) -> Vec<u32> {
    let children = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    tasks
        .flat_map(|task| children(task.unwrap()).split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_node_is_noticed_soon_however_it_goes() {
    let bed = Bed::new(2, 1);
    let workers: Vec<UnixStream> = (0..2).map(|node| bed.begin(node)).collect();
    for (node, by, limit_s) in [(0, libc::SIGKILL, 0.5), (1, libc::SIGSTOP, 3.0)] {
        let began = Instant::now();
        signal(bed.processes[node].id(), by);
        // The driver reads the end of its stream.
        assert_eq!((&workers[node]).read(&mut [0; 1]).unwrap(), 0);
        let took = began.elapsed();
        println!("signal {by}: noticed after {took:?}: {}", bed.cluster.lost(node).unwrap());
        assert!(took.as_secs_f64() < limit_s, "{took:?}");
    }
}

#[test]
fn no_node_counts_as_lost_while_all_cores_are_busy() {
    let seconds = std::env::var("PUBMARK_BUSY_S").map_or(6, |seconds| seconds.parse().unwrap());
    let bed = Bed::new(5, 1);
    let _workers: Vec<UnixStream> = (0..5).map(|node| bed.begin(node)).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 * thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        thread::sleep(Duration::from_secs(seconds));
        done.store(true, Relaxed);
    });
    for node in 0..5 {
        assert_eq!(bed.cluster.lost(node), None);
    }
}

#[test]
fn another_version_is_refused_and_both_sides_say_why() {
    let folder = tempfile::tempdir().unwrap();
    credentials::make(folder.path(), 1).unwrap();
    let own = Credentials::read(&folder.path().join(COORDINATOR_FOLDER), None).unwrap();
    let cluster = Cluster::listen("127.0.0.1:0".parse().unwrap(), &own, "9.9.9").unwrap();
    let join = cluster.address().to_string();
    let mut settings = settings(folder.path(), &join, "old".to_owned());
    let stop = AtomicBool::new(false);
    let attend = |settings: &NodeSettings| node::attend(settings, &echo, &stop, &mut |_| {}).unwrap_err();
    let version = attend(&settings).to_string();
    assert!(version.contains("pubmark 1.2.3") && version.contains("pubmark 9.9.9"), "{version}");
    settings.version = "9.9.9".to_owned();
    settings.name = "x".repeat(65);
    let name = attend(&settings).to_string();
    assert!(name.contains("a name has 1 to 64 letters"), "{name}");
    settings.name = "edge".to_owned();
    settings.labels = Labels::from([("site".to_owned(), "a b".to_owned())]);
    let labels = attend(&settings).to_string();
    assert!(labels.contains("`site=a b` is no label"), "{labels}");
    let missing = cluster
        .gather(NodesRequired { nodes: 1, ..NodesRequired::default() }, Duration::ZERO, &stop, &mut |_| {})
        .unwrap_err();
    let ClusterError::Missing { refused, .. } = missing else { panic!("{missing}") };
    let said: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert!(said[0].contains("`old` at 127.0.0.1") && said[0].contains("pubmark 1.2.3"), "{said:?}");
    assert_eq!(said.len(), 3);
}
