//! The fleet on several nodes: for the same seed, the message accounting is that of one process.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::place::Place;
use crate::support::schema;

/// A subscriber that exists once, and devices that connect and disconnect.
const WORKLOAD: &str = "\
name: spread
devices:
  - {name: meter, count: 23, every: 50ms, payload: 100B, topic: 'spread/{index}', qos: 1}
  - name: phone
    count: 10
    every: 20ms
    payload: 100B
    topic: 'spread/phone/{index}'
    qos: 0
    churn: {disconnect: 20% every 200ms, reconnect: 50% every 200ms}
subscribers:
  - {name: reader, count: 3, filters: ['spread/#'], qos: 1}
";

const TIMES: [&str; 6] = ["--duration", "3s", "--warmup", "1s", "--seed", "11"];

fn place() -> Place {
    let place = Place::new();
    place.write("spread.yaml", WORKLOAD);
    place
}

fn pairs(record: &Value) -> &Vec<Value> {
    record["tables"]["by_pair"].as_array().expect("rows from node to node")
}

#[test]
fn devices_dealt_out_over_nodes_do_what_they_do_on_one() {
    let place = place();
    let one = place.record(&[&["spread.yaml"][..], &TIMES].concat());
    assert_eq!((pairs(&one).len(), one["tables"]["nodes"].as_array().unwrap().len()), (1, 0));
    for nodes in ["2", "5"] {
        let record = place.record(&[&["spread.yaml", "--local-nodes", nodes][..], &TIMES].concat());
        assert_closed(&record);
        schema::assert_agrees(&record);
        assert_delivered_once(&record);
        assert_eq!(record["workload"]["schedule_hash"], one["workload"]["schedule_hash"]);
        for name in ["offered", "skipped_planned", "sent", "expected", "delivered"] {
            assert_count_eq!(count(&record, name), count(&one, name), "{name} on {nodes} nodes");
        }
        let rows = record["tables"]["nodes"].as_array().expect("nodes");
        let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
        assert_count_eq!((rows.len().to_string().as_str(), sum("devices"), sum("subscribers")), (nodes, 33, 3));
        // Three subscribers are on two or three nodes, devices on all.
        let expected = rows.len() * rows.len().min(3);
        assert_eq!(pairs(&record).len(), expected, "{:?}", pairs(&record));
        assert_count!(pairs(&record).iter().all(|pair| pair["delivered"].as_u64() > Some(0)), "{:?}", pairs(&record));
    }
}

#[test]
fn devices_on_every_node_are_so_many_copies() {
    let place = place();
    let run = ["spread.yaml", "--devices", "replicate", "--subscribers", "every-node", "--local-nodes", "3"];
    let record = place.record(&[&run[..], &TIMES].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_eq!(
        (record["workload"]["devices"].as_u64(), record["workload"]["subscribers"].as_u64()),
        (Some(99), Some(9))
    );
    assert_eq!(pairs(&record).len(), 9);
    // Every node receives from every node, itself included: each message that one offers is expected by all three
    // subscribers of each node.
    for pair in pairs(&record) {
        let to_others = pairs(&record).iter().filter(|row| row["publisher_node"] == pair["publisher_node"]);
        assert_count!(to_others.into_iter().all(|row| row["expected"] == pair["expected"]), "{pair}");
    }
}

#[test]
fn nodes_behind_links_have_networks_of_their_own() {
    if !super::links::can_be_made() {
        return;
    }
    let place = place();
    let run = ["spread.yaml", "--local-nodes", "2", "--link", "{delay: 10ms}"];
    let one = place.record(&[&["spread.yaml"][..], &TIMES].concat());
    let record = place.record(&[&run[..], &TIMES].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    for name in ["offered", "skipped_planned"] {
        assert_count_eq!(count(&record, name), count(&one, name), "{name}");
    }
    let groups = record["conditions"]["links"]["groups"].as_array().expect("links");
    // Two groups of devices and one of subscribers, on either node.
    assert_eq!(groups.len(), 6, "{groups:?}");
    assert!(groups.iter().all(|group| group["up"]["traffic"]["entered_packets"].as_u64() > Some(10)), "{groups:?}");
    let median_us = record["latency"]["total"]["upper"]["p50_us"].as_f64().expect("a median");
    assert!((20_000.0..80_000.0).contains(&median_us), "{median_us}");
}

#[test]
fn psmark_s_sites_receive_each_other_s_messages_over_links() {
    if !super::links::can_be_made() {
        return;
    }
    let place = place();
    // Networks are created for each group of each node: the subscriber's is sufficient.
    let link = ["--link", "everything={delay: 5ms}"];
    let times = ["--duration", "6s", "--warmup", "0s", "--variant", "published"];
    // PSMark's numbers of nodes: every node has all devices and a subscriber that receives from all nodes.
    for (workload, nodes) in [("smart-home", 1), ("smart-healthcare", 2), ("smart-home", 5), ("smart-healthcare", 8)] {
        let words = nodes.to_string();
        let record = place.record(&[&[workload, "--local-nodes", &words][..], &times, &link].concat());
        assert_closed(&record);
        assert_delivered_once(&record);
        let devices = if workload == "smart-home" { 20 } else { 24 };
        assert_eq!(record["workload"]["devices"], devices * nodes, "{workload} on {nodes} nodes");
        assert_count_eq!(count(&record, "expected"), count(&record, "sent") * nodes, "{workload} on {nodes} nodes");
        assert_eq!(pairs(&record).len() as u64, nodes * nodes, "{workload} on {nodes} nodes");
    }
}

const PEERS: &str = "name: peers
devices:
  - {name: meter, count: 6, every: 100ms, payload: 100B, topic: 'peers/{index}', qos: 0}
subscribers:
  - {name: reader, count: 1, filters: ['peers/#'], qos: 0}
placement: {devices: split, subscribers: every-node}
";

#[test]
fn clients_without_a_broker_meet_across_nodes_behind_links() {
    if !super::links::can_be_made() {
        return;
    }
    let place = place();
    place.write("peers.yaml", PEERS);
    let behind =
        |system: &'static str| ["peers.yaml", "--system", system, "--local-nodes", "2", "--link", "{delay: 5ms}"];
    let refused = place.call(&[&["run"], &behind("zeromq-peers")[..], &TIMES].concat());
    let text = refused.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(refused.code() == 2 && text.contains("behind a link of its own"), "{refused:?}");
    for system in ["zenoh-peers", "dds"] {
        let record = place.record(&[&behind(system)[..], &TIMES].concat());
        assert_closed(&record);
        let counts = (count(&record, "offered"), count(&record, "delivered"));
        assert_count_eq!(counts, (180, 360), "{system}: {}", record["delivery"]);
        assert_count_eq!(record["connections"]["never_connected"], 0, "{system}: {}", record["connections"]);
    }
}

#[test]
fn clients_without_a_broker_meet_across_nodes() {
    let place = place();
    place.write("peers.yaml", PEERS);
    for system in ["zeromq-peers", "zenoh-peers", "dds"] {
        let run = ["peers.yaml", "--system", system, "--local-nodes", "2"];
        let record = place.record(&[&run[..], &TIMES].concat());
        assert_closed(&record);
        assert_count_eq!(
            (count(&record, "offered"), count(&record, "delivered")),
            (180, 360),
            "{system}: {}",
            record["delivery"]
        );
    }
}
