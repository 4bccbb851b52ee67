//! Groups whose clients run in separate processes: the run has the same results as without, and the cost of each group.

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use super::links::can_be_made;
use crate::support::bed::Bed;
use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::bridge::Bridge;
use crate::support::cluster::stop;
use crate::support::place::Place;
use crate::support::schema;

/// A group with a high rate and one with a low rate, which share no connection, and two that share theirs.
const WORKLOAD: &str = "\
name: apart
devices:
  - {name: busy, count: 40, every: 20ms, payload: 100B, topic: 'apart/busy/{index}', qos: 1}
  - {name: quiet, count: 2, every: 500ms, payload: 100B, topic: 'apart/quiet/{index}', qos: 0, isolate: process}
  - {name: gateway, count: 2, every: 500ms, payload: 100B, topic: 'apart/gateway/{index}', client: house}
subscribers:
  - {name: reader, filters: ['apart/#'], qos: 1}
  - {name: screen, count: 2, filters: ['apart/quiet/+'], client: house}
";

const TIMES: [&str; 4] = ["--duration", "3s", "--warmup", "1s"];

fn place() -> Place {
    let place = Place::new();
    place.write("apart.yaml", WORKLOAD);
    place
}

/// Cost of each group with separate processes.
fn costs(record: &Value) -> Vec<(String, Value)> {
    let groups = record["cost"]["groups"].as_array().expect("costs by group");
    let mut costs: Vec<(String, Value)> =
        groups.iter().map(|group| (group["group"].as_str().unwrap().to_owned(), group["usage"].clone())).collect();
    costs.sort_by(|one, other| one.0.cmp(&other.0));
    costs
}

#[test]
fn a_group_in_a_process_of_its_own_does_the_same_and_has_a_cost_of_its_own() {
    let place = place();
    let run = ["apart.yaml", "--system", "builtin", "--seed", "7"];
    let all = place.record(&[&run[..], &TIMES, &["--isolate", "all"]].concat());
    let one = place.record(&[&run[..], &TIMES].concat());
    for record in [&all, &one] {
        assert_closed(record);
        schema::assert_agrees(record);
        assert_delivered_once(record);
    }
    for name in ["offered", "skipped_planned", "sent", "expected", "delivered"] {
        assert_count_eq!(count(&all, name), count(&one, name), "{name}");
    }
    let hash = |record: &Value| record["workload"]["schedule_hash"].as_str().expect("a hash").to_owned();
    assert_eq!(hash(&all), hash(&one));
    let names = |record: &Value| costs(record).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&one), ["quiet"]);
    assert_eq!(names(&all), ["busy", "house", "quiet", "reader"]);
    let costs = costs(&all);
    let cpu_s = |place: usize| costs[place].1["cpu_seconds"].as_f64().expect("a cost");
    // 2,000 messages a second against two, in processes that are otherwise alike.
    assert!(cpu_s(0) > 3.0 * cpu_s(2) && cpu_s(3) > 3.0 * cpu_s(2), "{costs:?}");
    let together: f64 = (0..4).map(cpu_s).sum();
    let generator_s = all["cost"]["generator"]["cpu_seconds"].as_f64().unwrap();
    assert!(together <= generator_s * 1.05, "{together} of {generator_s}");
    assert!(costs.iter().all(|(_, usage)| usage["peak_rss_bytes"].as_u64() > Some(1_000_000)), "{costs:?}");
    // 6,024 payloads of 100 B went to the system and more came back, whichever process had the sockets.
    let carried = |record: &Value, way: &str| record["cost"]["generator"][way].as_u64().expect("bytes");
    for way in ["sent_bytes", "received_bytes"] {
        assert!(carried(&all, way) > 600_000, "{way}: {}", all["cost"]["generator"]);
        // A group that were left out would be missed by far more than what a busy machine shifts over the window's ends.
        let (apart, together) = (carried(&all, way), carried(&one, way));
        assert!(apart.abs_diff(together) < together / 4, "{way}: {apart} apart, {together} together");
    }
    assert!(costs.iter().all(|(_, usage)| usage["threads"].as_u64() >= Some(2)), "{costs:?}");
}

#[test]
fn a_group_apart_is_behind_its_link() {
    if !can_be_made() {
        return;
    }
    let place = place();
    let link =
        ["--isolate", "quiet", "--isolate", "house", "--link", "quiet={delay: 40ms}", "--link", "busy={delay: 5ms}"];
    let record = place.record(&[&["apart.yaml", "--system", "builtin"], &TIMES[..], &link].concat());
    assert_closed(&record);
    schema::assert_agrees(&record);
    assert_delivered_once(&record);
    // The sockets in the links' networks are not sampled.
    assert_eq!(record["cost"]["generator"]["sent_bytes"], Value::Null);
    let rows = record["tables"]["by_type"].as_array().unwrap();
    for (name, least_us) in [("quiet", 40_000.0), ("busy", 5_000.0)] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"));
        // The quickest message shows the link once: at least in the upper bound, and not twice in the lower one, which leaves out
        // how late a busy machine let our threads run.
        let min_us = |bound: &str| row["latency"][bound]["min_us"].as_f64().expect("the smallest");
        assert!(min_us("upper") >= least_us && min_us("lower") < least_us + 30_000.0, "{name}: {}", row["latency"]);
    }
}

#[test]
fn clients_without_a_broker_meet_from_processes_of_their_own() {
    let place = Place::new();
    place.write(
        "apart.yaml",
        "name: apart\ndevices:\n  - {name: one, count: 5, every: 100ms, payload: 100B, topic: 'apart/one/{index}'}\n  \
         - {name: two, count: 5, every: 100ms, payload: 100B, topic: 'apart/two/{index}'}\nsubscribers:\n  \
         - {name: reader, filters: ['apart/#']}\n",
    );
    for system in [&["zeromq-peers"][..], &["zenoh-peers"], &["dds"], &["dds", "--client", "rustdds"]] {
        let call = [&["apart.yaml", "--isolate", "all", "--qos", "0", "--system"], system, &TIMES].concat();
        let record = place.record(&call);
        assert_closed(&record);
        assert_delivered_once(&record);
        assert_count_eq!((count(&record, "delivered"), costs(&record).len()), (300, 3), "{system:?}");
    }
}

/// A run of groups that are all apart, on two machines with a node each; `None` if there are no machines.
fn on_two_machines(options: &[&str]) -> Option<Value> {
    let bed = Bed::new(2)?;
    bed.cluster.place.write("apart.yaml", WORKLOAD);
    let nodes = [0, 1].map(|machine| bed.node(machine, &bed.listen, &[]));
    let listen = ["--listen", &bed.listen, "--nodes", "2", "--system-host", &Bridge::address(0)];
    let run = ["apart.yaml", "--system", "builtin", "--seed", "7", "--isolate", "all"];
    let called = bed.run(&[&run[..], &listen, &TIMES, options].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
    let record = called.json();
    assert_closed(&record);
    schema::assert_agrees(&record);
    assert_delivered_once(&record);
    Some(record)
}

#[test]
fn groups_have_processes_of_their_own_on_the_nodes_where_they_are() {
    let Some(record) = on_two_machines(&[]) else { return };
    let one = place().record(&[&["apart.yaml", "--system", "builtin", "--seed", "7"][..], &TIMES].concat());
    for name in ["offered", "skipped_planned", "sent", "expected", "delivered"] {
        assert_count_eq!(count(&record, name), count(&one, name), "{name}");
    }
    let costs = costs(&record);
    let names: Vec<&str> = costs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["busy", "house", "quiet", "reader"], "{costs:?}");
    let cpu_s = |place: usize| costs[place].1["cpu_seconds"].as_f64().expect("a cost");
    // 2,000 messages a second against two.
    assert!(cpu_s(0) > 3.0 * cpu_s(2), "{costs:?}");
    assert!(costs.iter().all(|(_, usage)| usage["peak_rss_bytes"].as_u64() > Some(1_000_000)), "{costs:?}");
    // A node's figure is that of its workers and of its own process.
    let nodes = record["tables"]["nodes"].as_array().unwrap();
    let of_nodes: f64 = nodes.iter().map(|node| node["generator"]["cpu_seconds"].as_f64().unwrap()).sum();
    let together: f64 = (0..4).map(cpu_s).sum();
    assert!(together > 0.0 && together <= of_nodes, "{together} of {of_nodes}");
}

#[test]
fn a_group_apart_on_a_node_is_behind_its_link() {
    if !can_be_made() {
        return;
    }
    let link = ["--link", "quiet={delay: 40ms}", "--link", "busy={delay: 5ms}"];
    let Some(record) = on_two_machines(&link) else { return };
    let rows = record["tables"]["by_type"].as_array().unwrap();
    for (name, least_us) in [("quiet", 40_000.0), ("busy", 5_000.0)] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"));
        assert!(row["latency"]["upper"]["min_us"].as_f64().unwrap() >= least_us, "{name}: {}", row["latency"]);
    }
    // Each network is made once on each node, by the process of its group.
    let groups = record["conditions"]["links"]["groups"].as_array().unwrap();
    let mut names: Vec<&str> = groups.iter().map(|group| group["group"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["busy at edge-1", "busy at edge-2", "quiet at edge-1", "quiet at edge-2"], "{groups:?}");
}

#[test]
fn who_is_to_be_apart_must_be_there() {
    let place = place();
    let called = place.call(&["run", "apart.yaml", "--system", "builtin", "--isolate", "bussy"]);
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("`bussy`") && called.errors.contains("busy"), "{}", called.errors);
    place.write("apart.yaml", WORKLOAD.replace("isolate: process", "isolate: alone"));
    let called = place.call(&["run", "apart.yaml", "--system", "builtin"]);
    assert!(called.code() == 2 && called.errors.contains("apart.yaml:4"), "{called:?}");
}
