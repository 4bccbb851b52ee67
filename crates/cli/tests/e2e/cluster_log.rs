//! The message log of runs on machines that join: it recounts to the record, and names nodes whose rows are missing.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pubmark_conformance::liar;
use pubmark_testing::assert_count;
use serde_json::Value;

use crate::message_log::{assert_clients_agree, assert_counts_agree, rows};
use crate::support::bed::Bed;
use crate::support::books::{assert_closed, count};
use crate::support::bridge::Bridge;
use crate::support::cluster::{Cluster, can_hide_files, stop};
use crate::support::place::PUBMARK;
use crate::support::schema;

const WORKLOAD: &str = "\
name: logged
devices:
  - {name: sensor, count: 20, every: 20ms, payload: 60B, topic: 'logged/{index}', qos: 0}
  - {name: leaving, count: 5, every: 50ms, payload: 60B, topic: 'logged/leaving/{index}', churn: {disconnect: 20% every 200ms, reconnect: 50% every 200ms}}
subscribers:
  - {name: all, count: 2, filters: ['logged/#'], qos: 0}
";

/// A broker on the first machine that drops messages, and delivers some twice; killed when dropped.
struct Liar(Child);

const PORT: u16 = 1_883;

impl Liar {
    fn start(bed: &Bed) -> Liar {
        let folder = bed.cluster.place.path();
        let script =
            "drop message=100\ndrop message=101\ndrop message=300\nduplicate message=200\nduplicate message=400\n";
        bed.cluster.place.write("script", script);
        let program = liar::program(Path::new(PUBMARK));
        let mut command = bed.bridge.program_at(0, program.to_str().unwrap());
        command.args(["--listen", &format!("{}:{PORT}", Bridge::address(0)), "--journal"]).arg(folder.join("journal"));
        command.arg("--script").arg(folder.join("script")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening"), "{line}");
        Liar(child)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Rows that were delivered, by how much their latency's upper bound exceeds the difference of their times, ns.
fn widths(rows: &[Value]) -> BTreeMap<i64, u64> {
    let mut widths = BTreeMap::new();
    for row in rows.iter().filter(|row| row["outcome"] == "delivered") {
        let of = |name: &str| row[name].as_i64().unwrap_or_else(|| panic!("no {name} in {row}"));
        assert!((0..=of("latency_upper_ns")).contains(&of("latency_lower_ns")), "{row}");
        assert!(of("ready_ns") >= of("due_ns"), "{row}");
        *widths.entry(of("latency_upper_ns") - (of("received_ns") - of("due_ns"))).or_default() += 1;
    }
    widths
}

#[test]
fn the_log_of_two_machines_recounts_to_the_record() {
    let Some(bed) = Bed::new(2) else { return };
    let place = &bed.cluster.place;
    place.write("logged.yaml", WORKLOAD);
    let _liar = Liar::start(&bed);
    // One clock is wrong by an hour: rows are on the clock of the run.
    let nodes = [(0, &[][..]), (1, &["--clock-error", "3600000000000,60"])]
        .map(|(machine, options)| bed.node(machine, &bed.listen, options));
    let endpoint = format!("mqtt://{}:{PORT}", Bridge::address(0));
    let run = ["logged.yaml", "--nodes", "2", "--listen", &bed.listen, "--endpoint", &endpoint, "--seed", "3"];
    let called = bed.run(&[&run[..], &["--message-log=ndjson", "--duration", "3s", "--warmup", "0s"]].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    schema::assert_agrees(&record);
    assert_count!(count(&record, "lost") > 0 && count(&record, "duplicated") > 0, "{}", record["delivery"]);
    let info = &record["message_log"];
    assert_eq!((&info["missing"], info.get("reason")), (&0.into(), None), "{info}");
    let folder = place.runs().remove(0).0;
    let rows = rows(&folder);
    assert_counts_agree(&rows, &record);
    assert_clients_agree(&folder, &record, (25, 2));
    let of_nodes: HashSet<u64> = rows.iter().map(|row| row["node"].as_u64().unwrap()).collect();
    assert_eq!(of_nodes, HashSet::from([1, 2]));
    // The bounds contain the error of the clocks of two machines, and nothing within one machine.
    let pairs = record["tables"]["by_pair"].as_array().unwrap();
    let mut expected: BTreeMap<i64, u64> = BTreeMap::new();
    for pair in pairs {
        let error_ns = (pair["clock_bound_us"].as_f64().unwrap() * 1e3).ceil() as i64;
        *expected.entry(error_ns).or_default() += pair["delivered"].as_u64().unwrap();
    }
    assert_eq!(expected.len(), 2, "one clock, and two: {pairs:?}");
    assert_count!(widths(&rows) == expected, "{:?}: {pairs:?}", widths(&rows));
    for node in record["tables"]["nodes"].as_array().unwrap() {
        let measuring = node["control"]["while_measuring"].as_u64().unwrap();
        assert!((1..20_000).contains(&measuring), "rows are sent after the window: {node}");
    }
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
    let left: Vec<_> = std::fs::read_dir(place.temporary()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| !path.to_string_lossy().contains(".pubmark-messages")), "{left:?}");
}

#[test]
fn a_node_that_is_killed_leaves_a_partial_log_that_names_it() {
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &["--once"]));
    let options = ["--message-log=ndjson", "--duration", "60s", "--warmup", "0s", "--json", "--quiet"];
    let run = cluster.run_with_events(2, &options);
    cluster.place.wait_until_measured(2.0);
    let [first, second] = nodes;
    second.signal(libc::SIGKILL);
    let called = run.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    let record = called.json();
    let why = record["message_log"]["reason"].as_str().unwrap();
    assert!(why.starts_with("rows of `edge-2` are missing: ") && !why.contains("edge-1"), "{why}");
    assert!(record["verdict"]["warnings"].to_string().contains("W21"), "{}", record["verdict"]);
    // The rows of the other node are there.
    let rows = rows(&cluster.place.runs().remove(0).0);
    let handed: HashSet<(u64, u64)> =
        rows.iter().filter_map(|row| Some((row["publisher"].as_u64()?, row["sequence"].as_u64()?))).collect();
    assert!(handed.len() > 100, "{} messages", handed.len());
    // What arrived from the lost node's publishers was sent, although no one knows how much they sent.
    assert!(rows.iter().all(|row| row["outcome"] != "foreign"));
    assert_eq!(first.wait().code(), 0);
}

#[test]
fn a_node_whose_disk_is_full_is_named_and_its_figures_are_whole() {
    if !can_hide_files() {
        return;
    }
    let cluster = Cluster::new();
    let small = "mount -t tmpfs -o size=64k none \"$TMPDIR\" && exec \"$@\"";
    let mut at = Command::new("unshare");
    at.args(["--mount", "sh", "-c", small, "sh", PUBMARK]);
    let join = cluster.listen.to_string();
    let full = cluster.place.start_by(at, &["node", "--join", &join, "--name", "edge-2", "--once"]);
    let whole = cluster.node("edge-1", &["--once"]);
    let options = ["--message-log=ndjson", "--duration", "4s", "--warmup", "0s", "--json", "--quiet"];
    let called = cluster.run(2, &options).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    let info = &record["message_log"];
    assert!(info["missing"].as_u64() > Some(0), "{info}");
    let why = info["reason"].as_str().unwrap();
    assert!(why.starts_with("rows of `edge-2` are missing: No space left") && !why.contains("edge-1"), "{why}");
    assert!(record["tables"]["nodes"].as_array().unwrap().iter().all(|node| node["lost"].is_null()));
    [full, whole].into_iter().for_each(|node| assert_eq!(node.wait().code(), 0));
}

#[test]
fn a_metric_of_the_users_own_reads_the_log_of_all_nodes() {
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &["--once"]));
    cluster.place.write(
        "count.py",
        "import json, sys\nrows = [json.loads(line) for line in sys.stdin]\n\
         found = {row['node'] for row in rows if row['outcome'] == 'delivered'}\n\
         print(json.dumps({'nodes': {'value': len(found)}}))\n",
    );
    let options = ["--metric", "nodes=python3 count.py", "--duration", "2s", "--warmup", "0s", "--json", "--quiet"];
    let called = cluster.run(2, &options).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let own = &called.json()["custom"][0];
    assert_eq!((&own["upper"], own.get("failure")), (&2.0.into(), None), "{own}");
    nodes.into_iter().for_each(|node| assert_eq!(node.wait().code(), 0));
}
