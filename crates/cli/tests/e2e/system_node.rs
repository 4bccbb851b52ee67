//! Systems that a node starts: the coordinator's machine needs no system, and the resource usage of a system is
//! measured where it runs.

use std::time::{Duration, Instant};

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::experiment::{assert_accounted, assert_ended_well};
use crate::support::bed::Bed;
use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::bridge::Bridge;
use crate::support::cluster::{Cluster, stop};
use crate::support::mosquitto;
use crate::support::place::{Call, Called};
use crate::support::processes::{children_of, family_of, signal, wait_for};

/// A load that a broker carries even on a busy machine.
const WORKLOAD: &str = "\
name: steady
devices:
  - {name: meter, count: 10, every: 100ms, payload: 100B, topic: 'steady/{index}', qos: 1}
subscribers:
  - {name: reader, count: 2, filters: ['steady/#'], qos: 1}
";
const TIMES: [&str; 4] = ["--duration", "3s", "--warmup", "1s"];
const LIMIT: Duration = Duration::from_secs(60);

fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Four machines: the coordinator, two nodes with clients, one that starts systems.
struct Four {
    bed: Bed,
    nodes: Vec<Call>,
    host: Call,
}

impl Four {
    fn new() -> Option<Four> {
        if !mosquitto::is_installed() {
            return None;
        }
        let bed = Bed::new(4)?;
        bed.cluster.place.write("steady.yaml", WORKLOAD);
        let nodes = [1, 2].map(|machine| bed.node(machine, &bed.listen, &[]));
        let host = bed.node(3, &bed.listen, &["--start-systems"]);
        Some(Four { bed, nodes: nodes.into(), host })
    }

    fn start(&self, options: &[&str]) -> Call {
        let run = ["steady.yaml", "--nodes", "2", "--listen", &self.bed.listen, "--system", "mosquitto"];
        self.bed.run(&[&run[..], &["--system-node", "edge-4"], options].concat())
    }

    /// Starts a run of 4 s, and waits until it measures.
    fn measuring(&self) -> Call {
        self.reaching(r#""phase":"measure","elapsed_s":1"#, &["--duration", "4s", "--warmup", "0s"])
    }

    /// Starts a run, and waits until its events contain this.
    fn reaching(&self, event: &str, options: &[&str]) -> Call {
        let run = self.start(&[options, &["--events", "events"]].concat());
        let events = self.bed.cluster.place.path().join("events");
        wait_for(event, LIMIT, || std::fs::read_to_string(&events).is_ok_and(|text| text.contains(event)));
        run
    }

    fn end(self) {
        for node in self.nodes.into_iter().chain([self.host]) {
            assert_eq!(stop(node).code(), 0);
        }
    }
}

/// The broker that a node started, if it runs.
fn mosquitto_of(host: &Call) -> Option<u32> {
    let is_broker =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "mosquitto\n");
    family_of(host.pid()).into_iter().find(is_broker)
}

#[test]
fn a_node_starts_the_system_and_measures_what_it_takes() {
    let Some(four) = Four::new() else { return };
    let called = four.start(&TIMES).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count!(count(&record, "delivered") > 0 && count(&record, "lost") == 0);
    let system = &record["system"];
    assert_eq!((&system["node"], &system["back_end"]), (&"edge-4".into(), &"process".into()));
    assert!(system["endpoint"].as_str().unwrap().contains(&Bridge::address(3)), "{system}");
    assert!(
        system["version"].is_string() && system["configuration"].is_string() && system["ended"].is_null(),
        "{system}"
    );
    let cost = &record["cost"];
    assert!(cost["system"]["cpu_seconds"].as_f64() > Some(0.0) && cost["system"]["threads"].is_u64(), "{cost}");
    assert!(cost["system"]["run_queue_wait_share"].is_f64() && cost["host"]["url"].is_string(), "{cost}");
    let rows = record["tables"]["resource_series"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["system_cores"].is_f64()), "{rows:?}");
    assert_count_eq!(record["tables"]["nodes"].as_array().unwrap().len(), 2, "it sends and receives nothing");
    wait_for("the end of the system", LIMIT, || mosquitto_of(&four.host).is_none());
    four.end();
}

#[test]
fn clients_trust_the_certificate_that_a_node_made_for_its_system() {
    let Some(four) = Four::new() else { return };
    let called = four.start(&[&TIMES[..], &["--tls"]].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count!(count(&record, "delivered") > 0 && count(&record, "lost") == 0);
    assert_eq!((&record["settings"]["tls"], &record["system"]["node"]), (&true.into(), &"edge-4".into()));
    let endpoint = record["system"]["endpoint"].as_str().unwrap();
    assert!(endpoint.starts_with("mqtts://") && endpoint.contains(&Bridge::address(3)), "{endpoint}");
    four.end();
}

#[test]
fn a_fault_breaks_the_system_where_it_runs() {
    let Some(four) = Four::new() else { return };
    let fault = ["--fault", "kill:at=1s,for=1s", "--duration", "5s", "--warmup", "1s"];
    let called = four.start(&fault).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    let row = &record["conditions"]["faults"]["faults"][0];
    let at = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    // The fault ends when the program is started again, which a busy machine delays.
    assert!((1.0..1.3).contains(&at("done_at_s")) && (2.0..4.0).contains(&at("ended_at_s")), "{row}");
    assert!(row["failure"].is_null() && row["connections"]["broken"] != 0, "{row}");
    assert!(record["system"]["ended"].is_null(), "the fault ended it: {}", record["system"]);
    four.end();
}

#[test]
fn a_system_that_dies_on_its_node_is_named() {
    let Some(four) = Four::new() else { return };
    let run = four.measuring();
    signal(mosquitto_of(&four.host).expect("a broker"), libc::SIGKILL);
    let called = run.wait();
    assert_eq!(called.code(), 6, "{called:?}");
    let record = four.bed.cluster.place.only_record();
    let ended = &record["system"]["ended"];
    assert_eq!(ended["signal"], libc::SIGKILL, "{ended}");
    assert!((0.5..3.5).contains(&ended["at_s"].as_f64().unwrap()), "{ended}");
    four.end();
}

#[test]
fn a_system_that_dies_on_its_node_while_clients_connect_is_noticed_at_once() {
    let Some(four) = Four::new() else { return };
    // Twenty seconds for ten devices.
    let run = four.reaching(r#""phase":"connect","elapsed_s":1"#, &["--connects", "0.5/s"]);
    let killed = Instant::now();
    signal(mosquitto_of(&four.host).expect("a broker"), libc::SIGKILL);
    let called = run.wait();
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}: {called:?}", killed.elapsed());
    assert!(words(&called).contains("`mosquitto` ended during the run: signal: 9"), "{called:?}");
    four.end();
}

#[test]
fn a_node_that_is_killed_takes_its_system_with_it() {
    let Some(four) = Four::new() else { return };
    let run = four.measuring();
    let broker = mosquitto_of(&four.host).expect("a broker");
    family_of(four.host.pid()).into_iter().filter(|pid| *pid != broker).for_each(|pid| signal(pid, libc::SIGKILL));
    let called = run.wait();
    assert_eq!(called.code(), 6, "{called:?}");
    let record = four.bed.cluster.place.only_record();
    assert!(record["system"]["ended"]["how"].as_str().unwrap().contains("`edge-4` was lost"), "{}", record["system"]);
    wait_for("the end of the system", LIMIT, || !std::path::Path::new(&format!("/proc/{broker}")).exists());
    four.host.wait();
    for node in four.nodes {
        assert_eq!(stop(node).code(), 0);
    }
}

#[test]
fn systems_are_compared_on_the_nodes_that_start_them() {
    if !mosquitto::is_installed() {
        return;
    }
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    place.write(
        "two.yaml",
        "name: two\nworkload: hello\nduration: 1s\nwarmup: 0s\ndrain: 2s\nrepeat: 2\nquiet_machine: {within: 0s}\naxes:\n  \
         system: [{system: mosquitto, node: one}, {system: mosquitto, label: other, node: two}]\n",
    );
    let hosts = ["one", "two"].map(|name| cluster.node(name, &["--start-systems"]));
    let node = cluster.node("edge-1", &[]);
    let experiment = ["experiment", "two.yaml", "--nodes", "1", "--listen", &listen, "--json", "--quiet"];
    let called = place.call(&experiment);
    assert_ended_well(&called);
    let record = called.json();
    for (cell, on) in [("mosquitto", "one"), ("other", "two")] {
        assert_accounted(&record, cell, 2);
        let folders = place.path().join("runs/latest").read_dir().unwrap().map(|entry| entry.unwrap().path());
        let its = folders.filter(|path| path.file_name().unwrap().to_str().unwrap().contains(cell));
        for folder in its.filter(|path| path.join("record.json").exists()) {
            let run: Value =
                serde_json::from_str(&std::fs::read_to_string(folder.join("record.json")).unwrap()).unwrap();
            assert_eq!(run["system"]["node"], on);
            assert!(run["cost"]["system"]["cpu_seconds"].as_f64() > Some(0.0), "{}", run["cost"]);
        }
    }
    for call in hosts.into_iter().chain([node]) {
        assert_eq!(stop(call).code(), 0);
    }
}

/// The steady workload with credentials from an existing file.
fn cluster_workload_with_a_file() -> String {
    WORKLOAD.replace("payload: 100B", "payload: 100B, credentials: {file: log-ins.csv}")
}

#[test]
fn a_system_that_a_node_cannot_start_is_named() {
    let cluster = Cluster::new();
    let place = &cluster.place;
    let definition = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/mosquitto.yaml");
    let rows: String = (0..10).map(|number| format!("steady-{number},ann,secret\n")).collect();
    place.write("log-ins.csv", format!("client_id,user,password\n{rows}"));
    place.write("files.yaml", cluster_workload_with_a_file());
    let files = place.call(&["run", "files.yaml", "--system-node", "far", "--dry-run"]);
    assert!(files.code() == 2 && words(&files).contains("names a file or a variable"), "{files:?}");
    for (options, said) in [
        (&["--image", "x"][..], "`--image` is for a system that this machine starts, not `far`"),
        (&["--system", "zenoh-peers", "--qos", "0"], "there is no broker that `far` could start"),
        (&["--system", definition], "`far` starts built-in systems, not the definition"),
        (&["--system", "mosquitto", "--link", "lte"], "links of this machine lead to a system of this machine"),
        (&["--endpoint", "mqtt://host"], "`--system-node` is for a system that pubmark starts"),
        (&["--system-host", "10.0.0.1"], "`--system-host` and `--system-node` exclude each other"),
    ] {
        let called = place.call(&[&["run", "spread.yaml", "--system-node", "far", "--dry-run"], options].concat());
        assert_eq!(called.code(), 2, "{options:?}: {called:?}");
        assert!(words(&called).contains(said), "{options:?}: {called:?}");
    }
    // A node with another name: it waits for its turn.
    let near = cluster.node("near", &["--start-systems"]);
    let listen = cluster.listen.to_string();
    let run = ["run", "spread.yaml", "--system-node", "far", "--listen", &listen, "--join-limit", "3s", "--quiet"];
    let called = place.call(&[&run[..], &TIMES].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(words(&called).contains("0 of 1 nodes that start systems joined"), "{called:?}");
    assert!(words(&called).contains("--start-systems --name far`"), "{called:?}");
    let called = stop(near);
    assert!(words(&called).contains("the run starts its system on `far`"), "{called:?}");
    // A program that does not exist.
    let near = cluster.node("near", &["--start-systems", "--once"]);
    let run = ["run", "spread.yaml", "--system-node", "near", "--listen", &listen, "--system", "verne", "--quiet"];
    let called = place.call(&[&run[..], &TIMES].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(children_of(near.pid()).is_empty());
    stop(near);
}
