//! The nodes of a run: what each carried, how well its clock is known, and what went from node to node.

use maud::{Markup, html};
use pubmark_record::latency::upper;
use pubmark_record::nodes::{NodeClock, NodeRow};
use pubmark_record::record::Record;
use pubmark_record::tables::PairRow;

use super::tables;
use crate::markdown::unit_of;
use crate::numbers::{MISSING, bytes, cores, count, share, short};

/// Most nodes that are shown as a map: more would have no room for their figures.
const MAP_NODES: usize = 24;

/// The section.
pub(super) fn section(record: &Record) -> Markup {
    html! { (table(&record.tables.nodes)) (map(record)) (tables::pairs(record)) }
}

/// A column: its name, and what it says of a node.
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

/// A node's clock, where it is not the run's.
fn other_clock(node: &NodeRow) -> Option<&NodeClock> {
    node.clock.as_ref().filter(|clock| !clock.is_the_same)
}

/// A table of those columns that say something of a node.
fn table(nodes: &[NodeRow]) -> Markup {
    let shown: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value)| nodes.iter().any(|node| value(node).is_some())).collect();
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
            thead { tr { th { "node" } th { "machine" } @for (name, _) in &shown { th.number { (name) } } } }
            tbody { @for node in nodes { (row(node, &shown)) } }
        } }
    }
}

fn row(node: &NodeRow, columns: &[&Column]) -> Markup {
    let machine = node.machine.as_ref().map_or("this one".to_owned(), |machine| {
        let awake = if machine.cpu_idle_disabled { ", CPU idle states disabled" } else { "" };
        format!("{}, {} cores{awake}, Linux {}", machine.host, machine.cores, machine.kernel)
    });
    html! {
        tr.none[node.lost.is_some()] {
            th scope="row" { (node.name) @if let Some(why) = &node.lost { small { "lost: " (why) } } }
            td { (machine) }
            @for (_, value) in columns { td.number { (value(node).unwrap_or_else(|| MISSING.to_owned())) } }
        }
    }
}

/// A cell for each pair of nodes, the deeper coloured the longer its p50; what was lost stands below.
fn map(record: &Record) -> Markup {
    let nodes = &record.tables.nodes;
    if nodes.len() > MAP_NODES || record.tables.by_pair.is_empty() {
        return html! {};
    }
    let unit = unit_of(record);
    let p50 = |row: &PairRow| upper(&row.latency).and_then(|latency| latency.p50);
    let longest = record.tables.by_pair.iter().filter_map(p50).fold(0.0, f64::max);
    let found = |from: &NodeRow, to: &NodeRow| {
        record.tables.by_pair.iter().find(|row| (&row.publisher_node, &row.subscriber_node) == (&from.name, &to.name))
    };
    html! {
        h3 { "Latency from node to node" }
        div.scroll { table.map {
            caption { "p50 in " (unit.symbol()) ", devices' node at the left, subscribers' above; below it the share that was lost" }
            thead { tr { th { "from \\ to" } @for to in nodes { th.number { (to.name) } } } }
            tbody {
                @for from in nodes { tr {
                    th scope="row" { (from.name) }
                    @for to in nodes { @match found(from, to) {
                        Some(row) => {
                            @let depth = p50(row).filter(|_| longest > 0.0).map_or(0.0, |p50| p50 / longest * 60.0);
                            td.number style=(format!("background:color-mix(in srgb,var(--link) {depth:.0}%,transparent)")) {
                                (unit.number(p50(row)))
                                @if row.lost > 0 { small { (share(row.lost, row.expected)) " lost" } }
                            }
                        }
                        None => { td.number { (MISSING) } }
                    } }
                } }
            }
        } }
    }
}
