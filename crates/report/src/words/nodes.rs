//! Nodes in words.

use pubmark_record::latency::{both, upper};
use pubmark_record::nodes::{NodeClock, NodeRow};
use pubmark_record::record::Record;
use pubmark_record::tables::PairRow;

use crate::numbers::{MISSING, bytes, cores, count, interval, share, short};

/// Labels of a node as written, separated by spaces; empty if it has none.
pub fn labels(node: &NodeRow) -> String {
    let words: Vec<String> = node.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.join(" ")
}

/// Messages received per second by a node, and resources used by the node and its machine, in one line.
pub fn node(node: &NodeRow) -> String {
    let mut parts: Vec<String> = vec![];
    if !node.labels.is_empty() {
        parts.push(labels(node));
    }
    if let Some(received) = node.received {
        let variance = received.variance.map_or_else(|| MISSING.to_owned(), short);
        parts.push(format!(
            "received {}/s (variance {variance}, {} to {})",
            short(received.mean_per_s),
            count(received.min_per_s),
            count(received.max_per_s)
        ));
    }
    if let Some(usage) = node.generator {
        parts.push(format!(
            "pubmark {} of a core, {}",
            cores(Some(usage.cores)),
            bytes(Some(usage.peak_rss_bytes as f64))
        ));
    }
    if let Some(machine) = node.machine_usage {
        parts.push(format!(
            "machine {} of a core, {}",
            cores(Some(machine.cores)),
            bytes(machine.used_bytes.map(|used| used as f64))
        ));
        if let (Some(received), Some(sent)) = (machine.received_bytes, machine.sent_bytes) {
            let [received, sent] = [received, sent].map(|carried| bytes(Some(carried as f64)));
            parts.push(format!("NIC {received} in, {sent} out"));
        }
    }
    match &node.lost {
        Some(why) => format!("lost: {why}"),
        None if parts.is_empty() => MISSING.to_owned(),
        None => parts.join("; "),
    }
}

/// Number of nodes, lost nodes, and the range of latency and loss between pairs of nodes, in one line.
pub fn nodes(record: &Record) -> String {
    let nodes = &record.tables.nodes;
    let lost: Vec<&str> = nodes.iter().filter(|node| node.lost.is_some()).map(|node| node.name.as_str()).collect();
    let mut text = count(nodes.len() as u64);
    if !lost.is_empty() {
        text.push_str(&format!(", of which {} lost: {}", lost.len(), lost.join(", ")));
    }
    let p50 = |row: &&PairRow| upper(&row.latency).and_then(|latency| latency.p50);
    let rows = || record.tables.by_pair.iter().filter(|row| p50(row).is_some());
    let by_p50 = |one: &&PairRow, other: &&PairRow| p50(one).unwrap_or(0.0).total_cmp(&p50(other).unwrap_or(0.0));
    if let (Some(fastest), Some(slowest)) = (rows().min_by(by_p50), rows().max_by(by_p50)) {
        let p50 = |row: &PairRow| interval(both(&row.latency, |latency| latency.p50));
        text.push_str(&format!(
            "; p50 from {} ({} → {}) to {} ({} → {})",
            p50(fastest),
            fastest.publisher_node,
            fastest.subscriber_node,
            p50(slowest),
            slowest.publisher_node,
            slowest.subscriber_node
        ));
    }
    if let Some(worst) = record.tables.by_pair.iter().filter(|row| row.lost > 0).max_by_key(|row| row.lost) {
        let lost = share(worst.lost, worst.expected);
        text.push_str(&format!("; most lost {lost} ({} → {})", worst.publisher_node, worst.subscriber_node));
    }
    let apart = nodes.iter().filter_map(|node| node.clock.as_ref()).filter(|clock| !clock.is_the_same);
    let bound = |clock: &NodeClock| clock.bound_us.unwrap_or(f64::INFINITY);
    match apart.map(bound).reduce(f64::max) {
        Some(bound_us) if bound_us.is_infinite() => text.push_str("; a clock jumped"),
        Some(bound_us) => text.push_str(&format!("; clocks ± {} µs", short(bound_us))),
        None => text.push_str("; one clock"),
    }
    text
}
