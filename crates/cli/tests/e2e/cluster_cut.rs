//! A network that is cut between a coordinator and its nodes, and machines that are busy with other programs.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubmark_testing::assert_count;

use crate::support::books::{assert_closed, count};
use crate::support::bridge::{ip, require_ip};
use crate::support::cluster::{Cluster, ORPHANED, stop, worker_of};
use crate::support::place::{EVENTS, PUBMARK};
use crate::support::processes::{is_there, wait_for};

/// Two network namespaces with a cable between them; both are removed when this is dropped.
struct Cable {
    names: [String; 2],
}

/// Addresses of its ends.
const ENDS: [&str; 2] = ["10.99.7.1", "10.99.7.2"];

impl Cable {
    /// `None`, with a message, if namespaces cannot be created.
    fn new() -> Option<Cable> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let names = ["a", "b"].map(|end| format!("pubmark-e2e-{}-{number}{end}", std::process::id()));
        let cable = Cable { names };
        let [one, other] = &cable.names;
        let veth = ["-n", one, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other];
        if !ip(&["netns", "add", one]) || !ip(&["netns", "add", other]) || !ip(&veth) {
            pubmark_testing::skip("`ip netns add` and veth pairs need root and iproute2");
            return None;
        }
        for (name, address) in cable.names.iter().zip(ENDS) {
            require_ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "cable"]);
            require_ip(&["-n", name, "link", "set", "cable", "up"]);
            require_ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        Some(cable)
    }

    /// The beginning of a command at this end.
    fn at(&self, end: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end], PUBMARK]);
        command
    }

    fn cut(&self) {
        require_ip(&["-n", &self.names[1], "link", "set", "cable", "down"]);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            // A namespace that was not created does not exist.
            ip(&["netns", "delete", name]);
        }
    }
}

#[test]
fn a_node_behind_a_cut_cable_is_lost_and_stops() {
    let Some(cable) = Cable::new() else { return };
    let cluster = Cluster::new();
    let port = cluster.listen.port();
    let listen = format!("{}:{port}", ENDS[0]);
    let clock_error = ["--clock-error", "90000000,40"];
    let words = ["node", "--join", &listen, "--name", "far", "--once"];
    let mut node = cluster.place.start_by(cable.at(1), &[&words[..], &clock_error].concat());
    let near = ["node", "--join", &listen, "--name", "near", "--once"];
    let near = cluster.place.start_by(cable.at(0), &near);
    let words = ["run", "spread.yaml", "--nodes", "2", "--listen", &listen, "--system-host", ENDS[0], "--json"];
    let words = [&words[..], &["--duration", "60s", "--warmup", "0s", "--quiet", "--events", EVENTS]].concat();
    let run = cluster.place.start_by(cable.at(0), &words);
    let worker = worker_of(&node);
    cluster.place.wait_until_measured(2.0);
    let began = Instant::now();
    cable.cut();
    let called = run.wait();
    let noticed = began.elapsed();
    wait_for("the end of a worker", ORPHANED, || !is_there(worker));
    wait_for("the end of its node", ORPHANED, || node.has_ended());
    assert!(node.wait().errors.contains("left: "));
    assert_eq!(near.wait().code(), 0);
    assert_eq!(called.code(), 5, "{called:?}");
    assert!(noticed < Duration::from_secs(4), "{noticed:?}");
    let record = called.json();
    let why = record["tables"]["nodes"][0]["lost"].as_str().unwrap();
    assert!(why.contains("silent") && record["tables"]["nodes"][1]["lost"].is_null(), "{}", record["tables"]["nodes"]);
    eprintln!("noticed after {noticed:?}");
    assert!(count(&record, "offered") > 100, "what the other measured: {}", record["delivery"]);
}

#[test]
fn a_clock_behind_a_cable_is_known() {
    let Some(cable) = Cable::new() else { return };
    let cluster = Cluster::new();
    let listen = format!("{}:{}", ENDS[0], cluster.listen.port());
    let words = ["node", "--join", &listen, "--name", "far", "--once", "--clock-error", "-700000000,-25"];
    let node = cluster.place.start_by(cable.at(1), &words);
    let words = ["run", "spread.yaml", "--nodes", "1", "--listen", &listen, "--system-host", ENDS[0], "--json"];
    let words = [&words[..], &["--duration", "4s", "--warmup", "1s", "--quiet"]].concat();
    let called = cluster.place.start_by(cable.at(0), &words).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    let clock = &record["tables"]["nodes"][0]["clock"];
    let [bound, error] = ["bound_us", "true_error_us"].map(|name| clock[name].as_f64().unwrap());
    assert!(error <= bound && bound < 5_000.0, "{clock}");
    eprintln!("over veth: bound ± {bound:.1} µs, true error {error:.1} µs: {clock}");
    assert_eq!(node.wait().code(), 0);
}

#[test]
fn a_coordinator_is_found_by_multicast() {
    let Some(cable) = Cable::new() else { return };
    let (cluster, other) = (Cluster::new(), Cluster::new());
    let far = ["node", "--join", "mdns", "--name", "far", "--once"];
    let far = cluster.place.start_by(cable.at(1), &far);
    // Its credentials are of another cluster: the announcement is not for it.
    let stranger = other.place.start_by(cable.at(1), &["node", "--join", "mdns", "--name", "stranger"]);
    let port = cluster.listen.port();
    let words = ["run", "spread.yaml", "--nodes", "1", "--announce", "--listen", &format!("0.0.0.0:{port}"), "--json"];
    let words = [&words[..], &["--system-host", ENDS[0], "--duration", "1s", "--warmup", "0s"]].concat();
    let called = cluster.place.start_by(cable.at(0), &words).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(called.errors.contains(&format!("`far` joined from {}", ENDS[1])), "{called:?}");
    assert_closed(&called.json());
    let far = far.wait();
    assert_eq!(far.code(), 0, "{far:?}");
    assert!(far.errors.contains(&format!("joined {}:{port}", ENDS[0])), "{far:?}");
    wait_for("what a stranger finds", Duration::from_secs(20), || stranger.has_said("none is announced"));
    let stranger = stop(stranger);
    assert!(!stranger.errors.contains("joined"), "{stranger:?}");
}

/// As many runs as PUBMARK_RUNS says, 100 by default; every core is busy meanwhile.
#[test]
#[ignore = "takes ten minutes"]
fn no_node_is_called_lost_in_many_runs_at_full_cpu() {
    let runs: u32 = std::env::var("PUBMARK_RUNS").map_or(100, |runs| runs.parse().unwrap());
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let busy = AtomicBool::new(true);
    let cores = std::thread::available_parallelism().unwrap().get();
    let options = ["--duration", "1s", "--warmup", "0s", "--drain", "3s", "--json", "--quiet"];
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while busy.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let lost: Vec<String> = (0..runs)
            .filter_map(|number| {
                let called = cluster.run(2, &options).wait();
                let is_a_record = matches!(called.code(), 0 | 5);
                let nodes = is_a_record.then(|| called.json()["tables"]["nodes"].clone());
                let is_well = nodes
                    .as_ref()
                    .is_some_and(|nodes| nodes.as_array().unwrap().iter().all(|node| node["lost"].is_null()));
                (!is_well).then(|| format!("run {number}: {nodes:?}: {called:?}"))
            })
            .collect();
        busy.store(false, Relaxed);
        eprintln!("{} of {runs} runs lost a node", lost.len());
        assert_count!(lost.is_empty(), "{lost:#?}");
    });
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
}
