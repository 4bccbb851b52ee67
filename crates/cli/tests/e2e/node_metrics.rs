//! `pubmark node --metrics`: the metrics of a run's nodes add up to its record.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pubmark_conformance::ports;
use pubmark_testing::assert_count_eq;

use crate::support::books::count;
use crate::support::cluster::{Cluster, stop};

/// The value of the only series of this name at a node.
fn scraped(port: u16, name: &str) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn what_nodes_expose_adds_up_to_the_record() {
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"].map(|name| {
        let port = ports::free().port();
        (cluster.node(name, &["--metrics", &port.to_string()]), port)
    });
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl");
    let options = ["--duration", "3s", "--warmup", "1s", "--json", "--quiet", "--events", events.to_str().unwrap()];
    let called = cluster.run(2, &options).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    for (name, field) in [
        ("pubmark_offered_messages_total", "offered"),
        ("messaging_client_sent_messages_total", "sent"),
        ("messaging_client_consumed_messages_total", "delivered"),
        ("pubmark_delivery_latency_seconds_count", "delivered"),
    ] {
        let sum: u64 = nodes.iter().map(|(_, port)| scraped(*port, name)).sum();
        assert_count_eq!(sum, count(&record, field), "{name}");
    }
    // Nodes send no counts while they measure: neither losses nor rates are reported then.
    let text = std::fs::read_to_string(&events).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut measuring = lines.filter(|line| line["event"] == "progress" && line["phase"] == "measure").peekable();
    let unknown = ["lost", "outstanding", "sent_per_s", "delivered_per_s"];
    let is_unknown = |line: serde_json::Value| unknown.iter().all(|field| line[field].is_null());
    assert!(measuring.peek().is_some() && measuring.all(is_unknown), "{text}");
    for (node, _) in nodes {
        assert_eq!(stop(node).code(), 0);
    }
}
