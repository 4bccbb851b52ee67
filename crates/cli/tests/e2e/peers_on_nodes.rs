//! Systems without a broker on several machines: every writer and reader find each other before the first message,
//! every message arrives, and a machine that is disconnected is lost.

use std::time::{Duration, Instant};

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::experiment::{assert_accounted, assert_ended_well};
use crate::support::bed::Bed;
use crate::support::books::{assert_closed, assert_delivered_once, check, count};
use crate::support::cluster::{Cluster, ORPHANED, stop, worker_of};
use crate::support::place::{Call, Called, EVENTS};
use crate::support::processes::{is_there, wait_for};
use crate::support::schema;

const WORKLOAD: &str = "\
name: pairs
devices:
  - {name: meter, count: 6, every: 50ms, payload: 100B, topic: 'pairs/{index}', qos: 0}
subscribers:
  - {name: reader, count: 5, filters: ['pairs/#'], qos: 0}
";

/// Systems with their options, and the workload that they carry.
const SYSTEMS: [(&[&str], &str); 5] = [
    (&["dds"], "pairs.yaml"),
    (&["dds", "--client", "rustdds"], "pairs.yaml"),
    (&["zenoh-peers"], "pairs.yaml"),
    (&["zeromq-peers"], "pairs.yaml"),
    (&["coap-peers"], "request-reply"),
];
/// Nothing is sent before the window: losses of clients that have not found each other are in the accounting.
const TIMES: [&str; 6] = ["--duration", "1s", "--warmup", "0s", "--seed", "5"];

fn bed(machines: usize) -> Option<Bed> {
    let bed = Bed::new(machines)?;
    bed.cluster.place.write("pairs.yaml", WORKLOAD);
    Some(bed)
}

/// Runs each system on this number of machines, one after the other with the same nodes.
fn everything_arrives(machines: usize) {
    let Some(bed) = bed(machines) else { return };
    let nodes: Vec<Call> = (0..machines).map(|machine| bed.node(machine, &bed.listen, &[])).collect();
    let nodes_wanted = machines.to_string();
    for (system, workload) in SYSTEMS {
        let words = [&[workload, "--nodes", &nodes_wanted, "--listen", &bed.listen, "--system"], system, &TIMES];
        let called = bed.run(&words.concat()).wait();
        assert!(matches!(called.code(), 0 | 5), "{system:?}: {called:?}");
        let record = called.json();
        assert_closed(&record);
        schema::assert_agrees(&record);
        assert_delivered_once(&record);
        assert_met(&record, machines, workload);
    }
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
}

fn assert_met(record: &Value, machines: usize, workload: &str) {
    let pairs = &record["delivery"]["pairs"];
    assert_count!(pairs["silent"] == 0 && pairs["unreached"] == 0, "{pairs}");
    assert_eq!(check(record, "V24"), "valid");
    assert_eq!(check(record, "V21"), "valid");
    assert_count_eq!(count(record, "lost") + count(record, "unsent") + count(record, "foreign"), 0);
    if workload == "pairs.yaml" {
        assert_count_eq!((pairs["all"].as_u64(), count(record, "delivered")), (Some(30), 600));
        let rows = record["tables"]["by_pair"].as_array().unwrap();
        // Five readers and six devices are on all of two or of five machines.
        assert_count_eq!(rows.len(), machines * machines, "{rows:?}");
        assert_count!(rows.iter().all(|row| row["delivered"].as_u64() >= Some(20)), "{rows:?}");
        assert_figures_of_nodes(record, machines);
    }
}

/// Messages that each node received in the one second, and traffic of its cable.
fn assert_figures_of_nodes(record: &Value, machines: usize) {
    let nodes = record["tables"]["nodes"].as_array().unwrap();
    assert_count_eq!(nodes.len(), machines);
    let figure = |node: &Value, part: &str, name: &str| node[part][name].as_f64().unwrap_or_else(|| panic!("{node}"));
    let received: f64 = nodes.iter().map(|node| figure(node, "received", "mean_per_s")).sum();
    // Messages that were due at the end of the second arrived after it.
    assert_count!((500.0..=600.0).contains(&received), "{nodes:?}");
    for node in nodes {
        assert!(node["received"]["variance"].is_null() && node["received"]["seconds"] == 1, "{node}");
        assert!(figure(node, "machine_usage", "cores") > 0.0 && figure(node, "generator", "cores") > 0.0, "{node}");
        let carried = ["received_bytes", "sent_bytes"].map(|name| figure(node, "machine_usage", name));
        // 100 B of payload each, to and from readers of the other machines.
        assert!(carried.iter().all(|bytes| *bytes > 2_000.0), "{node}");
    }
}

#[test]
fn on_two_machines_every_pair_meets_and_everything_arrives() {
    everything_arrives(2);
}

#[test]
fn on_five_machines_every_pair_meets_and_everything_arrives() {
    everything_arrives(5);
}

/// DDS discovery succeeds seconds after the clients have started.
#[test]
fn a_run_waits_until_clients_have_found_each_other() {
    let Some(bed) = bed(2) else { return };
    if !(0..2).all(|machine| bed.bridge.holds_datagrams(machine, true)) {
        return pubmark_testing::skip("`ip rule` cannot hold datagrams on this kernel");
    }
    let nodes = [0, 1].map(|machine| bed.node(machine, &bed.listen, &["--once"]));
    let run = ["pairs.yaml", "--nodes", "2", "--listen", &bed.listen, "--system", "dds"];
    let run = bed.run(&[&run[..], &TIMES].concat());
    for node in &nodes {
        worker_of(node);
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!((0..2).all(|machine| bed.bridge.holds_datagrams(machine, false)));
    let called = run.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_met(&record, 2, "pairs.yaml");
    // The schedule began when clients had found each other, however long they took to start.
    let probed = &record["delivery"]["pairs"]["probed"];
    assert_count!(probed["expected"] == 30 && probed["reached"] == 30, "{probed}");
    nodes.into_iter().for_each(|node| assert_eq!(node.wait().code(), 0));
}

#[test]
fn a_machine_that_is_cut_off_is_lost() {
    for (system, workload) in [
        ("zeromq-peers", "pairs.yaml"),
        ("dds", "pairs.yaml"),
        ("zenoh-peers", "pairs.yaml"),
        // Its only responder is on the first machine, which stays.
        ("coap-peers", "request-reply"),
    ] {
        let Some(bed) = bed(2) else { return };
        let near = bed.node(0, &bed.listen, &["--once"]);
        let mut far = bed.node(1, &bed.listen, &["--once"]);
        let run = [workload, "--nodes", "2", "--listen", &bed.listen, "--system", system];
        let run = bed.run(&[&run[..], &["--duration", "60s", "--warmup", "0s", "--events", EVENTS]].concat());
        let worker = worker_of(&far);
        bed.cluster.place.wait_until_measured(2.0);
        let began = Instant::now();
        bed.bridge.cut(1);
        let called = run.wait();
        // Zenoh's library takes up to 10 s to close a session whose peer is gone, and the sessions close one after the other.
        let limit = Duration::from_secs(if system == "zenoh-peers" { 40 } else { 10 });
        assert!(began.elapsed() < limit, "{system}: {:?}", began.elapsed());
        assert_eq!(called.code(), 5, "{system}: {called:?}");
        wait_for("the end of a worker", ORPHANED, || !is_there(worker));
        wait_for("the end of its node", ORPHANED, || far.has_ended());
        assert_eq!(near.wait().code(), 0);
        let record = called.json();
        schema::assert_agrees(&record);
        let nodes = &record["tables"]["nodes"];
        assert!(nodes[0]["lost"].is_null() && nodes[1]["lost"].is_string(), "{system}: {nodes}");
        assert_eq!(check(&record, "V21"), "invalid", "{system}");
        assert!(count(&record, "delivered") > 50, "{system}: what the other measured: {}", record["delivery"]);
    }
}

/// The output without line breaks.
fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_node_with_an_unreachable_address_is_refused_with_a_hint() {
    let Some(bed) = bed(2) else { return };
    let port = bed.cluster.listen.port();
    let far = bed.node(1, &bed.listen, &[]);
    let run = ["pairs.yaml", "--nodes", "2", "--listen", &format!("0.0.0.0:{port}"), "--system", "zeromq-peers"];
    let run = [&run[..], &TIMES].concat();
    let near = format!("127.0.0.1:{port}");
    for (address, is_refused) in [(&[][..], true), (&["--address", "10.99.8.1"], false)] {
        let near = bed.node(0, &near, &[&["--once"], address].concat());
        let called = bed.run(&run).wait();
        match is_refused {
            true => {
                let text = words(&called);
                assert_eq!(called.code(), 2, "{called:?}");
                assert!(text.contains("clients on `edge-1` would use 127.0.0.1, which clients on `edge-2`"), "{text}");
                assert!(text.contains("pubmark node --address IP"), "{text}");
            }
            false => assert_count_eq!(count(&called.json(), "delivered"), 600, "{called:?}"),
        }
        assert_eq!(near.wait().code(), 0);
    }
    stop(far);
    for (address, why) in [
        ("192.0.2.1", "192.0.2.1 is not an address of this machine"),
        ("0.0.0.0", "0.0.0.0 stands for every address of a machine"),
        ("224.0.0.1", "224.0.0.1 is the address of a multicast group"),
    ] {
        let called = bed.cluster.place.call(&["node", "--join", &near, "--address", address]);
        assert!(called.code() == 2 && words(&called).contains(why), "{called:?}");
    }
}

#[test]
fn systems_without_a_broker_are_compared_on_nodes_that_join_once() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    place.write("pairs.yaml", WORKLOAD);
    place.write(
        "grid.yaml",
        "name: grid\nworkload: ./pairs.yaml\nduration: 1s\nwarmup: 0s\ndrain: 3s\nrepeat: 1\nquiet_machine: {within: 0s}\naxes:\n  \
         system: [dds, zenoh-peers, zeromq-peers]\n",
    );
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let called = place.call(&["experiment", "grid.yaml", "--nodes", "2", "--listen", &listen, "--json", "--quiet"]);
    assert_ended_well(&called);
    let record = called.json();
    for id in ["dds", "zenoh-peers", "zeromq-peers"] {
        assert_accounted(&record, id, 1);
    }
    for node in nodes {
        let called = stop(node);
        assert_count_eq!(called.errors.matches("joined 127.0.0.1").count(), 1, "{called:?}");
    }
}
