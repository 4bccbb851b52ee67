//! Messages received per second by each node, and resources used by the node and its machine.

use pubmark_record::nodes::NodeRow;
use pubmark_record::record::Record;

use super::{Table, optional, text};
use crate::words;

/// A figure with its name; `None` becomes an empty field.
type NodeColumn = (&'static str, fn(&NodeRow) -> Option<String>);

const COLUMNS: [NodeColumn; 14] = [
    ("devices", |node| Some(node.devices.to_string())),
    ("subscribers", |node| Some(node.subscribers.to_string())),
    ("seconds", |node| Some(node.received?.seconds.to_string())),
    ("received_mean_per_s", |node| Some(node.received?.mean_per_s.to_string())),
    ("received_variance", |node| Some(node.received?.variance?.to_string())),
    ("received_min_per_s", |node| Some(node.received?.min_per_s.to_string())),
    ("received_max_per_s", |node| Some(node.received?.max_per_s.to_string())),
    ("generator_cores", |node| Some(node.generator?.cores.to_string())),
    ("generator_peak_rss_bytes", |node| Some(node.generator?.peak_rss_bytes.to_string())),
    ("machine_cores", |node| Some(node.machine_usage?.cores.to_string())),
    ("machine_used_bytes", |node| Some(node.machine_usage?.used_bytes?.to_string())),
    ("machine_received_bytes", |node| Some(node.machine_usage?.received_bytes?.to_string())),
    ("machine_sent_bytes", |node| Some(node.machine_usage?.sent_bytes?.to_string())),
    ("labels", |node| Some(words::labels(node)).filter(|labels| !labels.is_empty())),
];

/// One line per node; no lines in a run without nodes.
pub(super) fn by_node(record: &Record) -> String {
    let mut names = vec!["node", "lost"];
    names.extend(COLUMNS.map(|(name, _)| name));
    let mut table = Table::new(&names);
    for node in &record.tables.nodes {
        let mut fields = vec![text(&node.name), optional(node.lost.as_deref().map(text))];
        fields.extend(COLUMNS.map(|(_, get)| optional(get(node).as_deref().map(text))));
        table.row(&fields);
    }
    table.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_record::nodes::{MachineUsage, ReceivedPerSecond};
    use pubmark_record::sample;

    #[test]
    fn what_was_not_measured_is_an_empty_field() {
        let mut record = sample::record();
        let machine =
            MachineUsage { cores: 0.5, received_bytes: Some(7), sent_bytes: Some(8), ..MachineUsage::default() };
        record.tables.nodes = vec![
            NodeRow {
                name: "edge-1".to_owned(),
                devices: 3,
                subscribers: 1,
                received: ReceivedPerSecond::of(&[10, 12]),
                machine_usage: Some(machine),
                labels: [("site", "edge"), ("zone", "a")].map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
                ..NodeRow::default()
            },
            NodeRow { name: "edge-2".to_owned(), lost: Some("killed".to_owned()), ..NodeRow::default() },
        ];
        let text = by_node(&record);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["edge-1,,3,1,2,11,2,10,12,,,0.5,,7,8,site=edge zone=a", "edge-2,killed,0,0,,,,,,,,,,,,"]);
        record.tables.nodes[0].labels = [("=cmd()".to_owned(), "a,b".to_owned())].into();
        assert!(by_node(&record).contains(",\"'=cmd()=a,b\"\n"), "{}", by_node(&record));
    }
}
