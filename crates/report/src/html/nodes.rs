//! The nodes of a run: load, error bound of the clocks, and messages between nodes.

use maud::{Markup, html};
use pubmark_record::latency::both;
use pubmark_record::nodes::{NodeClock, NodeRow};
use pubmark_record::record::Record;

use super::heat_map::{HeatCell, heat_map};
use super::{sites, tables};
use crate::markdown::unit_of;
use crate::numbers::{MISSING, bytes, cores, count, short};
use crate::words;

/// Most nodes that are shown as a map: with more, the figures would not fit.
const MAP_NODES: usize = 24;

/// The section.
pub(super) fn section(record: &Record) -> Markup {
    html! { (table(&record.tables.nodes)) (sites::section(record)) (map(record)) (tables::pairs(record)) }
}

/// A column: its name, and its value for a node.
type Column = (&'static str, fn(&NodeRow) -> Option<String>);

const COLUMNS: [Column; 16] = [
    ("devices", |node| Some(count(node.devices))),
    ("subscribers", |node| Some(count(node.subscribers))),
    ("received/s", |node| Some(short(node.received?.mean_per_s))),
    ("variance", |node| Some(short(node.received?.variance?))),
    ("min/s", |node| Some(count(node.received?.min_per_s))),
    ("max/s", |node| Some(count(node.received?.max_per_s))),
    ("cores used", |node| Some(cores(Some(node.generator?.cores)))),
    ("memory", |node| Some(bytes(Some(node.generator?.peak_rss_bytes as f64)))),
    ("machine cores", |node| Some(cores(Some(node.machine_usage?.cores)))),
    ("machine memory", |node| Some(bytes(Some(node.machine_usage?.used_bytes? as f64)))),
    ("NIC in", |node| Some(bytes(Some(node.machine_usage?.received_bytes? as f64)))),
    ("NIC out", |node| Some(bytes(Some(node.machine_usage?.sent_bytes? as f64)))),
    ("clock", |node| {
        let clock = node.clock.as_ref()?;
        Some(if clock.is_the_same { "the same".to_owned() } else { format!("{} ms", short(clock.offset_us / 1e3)) })
    }),
    ("drift", |node| Some(format!("{} ppm", short(other_clock(node)?.drift_ppm)))),
    ("± bound", |node| Some(format!("± {} µs", short(other_clock(node)?.bound_us?)))),
    ("control", |node| {
        let control = node.control?;
        Some(bytes(Some((control.sent + control.received) as f64)))
    }),
];

/// Clock of a node, if it is not the clock of the run.
fn other_clock(node: &NodeRow) -> Option<&NodeClock> {
    node.clock.as_ref().filter(|clock| !clock.is_the_same)
}

/// A table of the columns that have a value for at least one node.
fn table(nodes: &[NodeRow]) -> Markup {
    let shown: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value)| nodes.iter().any(|node| value(node).is_some())).collect();
    let has_labels = nodes.iter().any(|node| !node.labels.is_empty());
    let has_clocks = nodes.iter().any(|node| node.clock.is_some());
    html! {
        div.scroll { table.sortable {
            caption {
                @if nodes.iter().any(|node| node.received.is_some()) {
                    "Received: first copies in each full second of the window, without replies to requesters. "
                }
                @if nodes.iter().any(|node| node.machine_usage.is_some()) {
                    "Machine: all that ran there. "
                }
                @if nodes.iter().any(|node| node.machine_usage.is_some_and(|usage| usage.received_bytes.is_some())) {
                    "NIC: the network interface with the node's address. "
                }
                @if has_clocks {
                    "Clocks: the run's time − the node's own at the start of the window, and the bound of its error over the run"
                }
            }
            thead { tr { th { "node" } @if has_labels { th { "labels" } } th { "machine" } @for (name, _) in &shown { th.number { (name) } } } }
            tbody { @for node in nodes { (row(node, &shown, has_labels)) } }
        } }
    }
}

fn row(node: &NodeRow, columns: &[&Column], has_labels: bool) -> Markup {
    let machine = node.machine.as_ref().map_or("this one".to_owned(), |machine| {
        let awake = if machine.cpu_idle_disabled { ", CPU idle states prevented" } else { "" };
        format!("{}, {} cores{awake}, Linux {}", machine.host, machine.cores, machine.kernel)
    });
    html! {
        tr.none[node.lost.is_some()] {
            th scope="row" { (node.name) @if let Some(why) = &node.lost { small { "lost: " (why) } } }
            @if has_labels { td { (words::labels(node)) } }
            td { (machine) }
            @for (_, value) in columns { td.number { (value(node).unwrap_or_else(|| MISSING.to_owned())) } }
        }
    }
}

/// A cell for each pair of nodes.
fn map(record: &Record) -> Markup {
    let nodes = &record.tables.nodes;
    if nodes.len() > MAP_NODES || record.tables.by_pair.is_empty() {
        return html! {};
    }
    let cell = |from: usize, to: usize| {
        let wanted = (&nodes[from].name, &nodes[to].name);
        let row = record.tables.by_pair.iter().find(|row| (&row.publisher_node, &row.subscriber_node) == wanted)?;
        let p50 = both(&row.latency, |latency| latency.p50);
        Some(HeatCell { p50, expected: row.expected, lost: row.lost })
    };
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    heat_map("Latency from node to node", "node", &names, unit_of(record), cell)
}
