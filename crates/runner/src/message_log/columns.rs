//! The columns of the message log: docs/reference/message-log.md explains each.

use pubmark_engine::message_log::entries::Entry;

/// An entry with the names of its publisher, topic and subscriber.
pub struct LoggedRow<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The publisher's device type.
    pub device_type: &'a str,
    /// The publisher's node, from 1.
    pub node: u16,
    /// Topic.
    pub topic: &'a str,
    /// The publisher's delivery level.
    pub qos: u8,
    /// The subscriber group.
    pub subscriber_group: Option<&'a str>,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number, if it is known.
    Integer(Option<i64>),
    /// A name, if it is known.
    Text(Option<&'a str>),
    /// Yes or no.
    Flag(bool),
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Text`].
    Text,
    /// [`Value::Flag`].
    Flag,
}

/// A column.
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Type of the values.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "text has no types"))]
    pub kind: Kind,
    /// Value of the column in a row.
    pub of: for<'a> fn(&LoggedRow<'a>) -> Value<'a>,
}

/// All columns, in order. To add one, add a row here and one in docs/reference/message-log.md.
pub const COLUMNS: [Column; 17] = [
    Column { name: "publisher", kind: Kind::Integer, of: |row| whole(Some(row.entry.publisher)) },
    Column { name: "type", kind: Kind::Text, of: |row| Value::Text(Some(row.device_type)) },
    Column { name: "node", kind: Kind::Integer, of: |row| whole(Some(row.node)) },
    Column { name: "topic", kind: Kind::Text, of: |row| Value::Text(Some(row.topic)) },
    Column { name: "sequence", kind: Kind::Integer, of: |row| whole(row.entry.sequence) },
    Column { name: "bytes", kind: Kind::Integer, of: |row| whole(row.entry.payload_bytes) },
    Column { name: "qos", kind: Kind::Integer, of: |row| whole(Some(row.qos)) },
    Column { name: "due_ns", kind: Kind::Integer, of: |row| whole(row.entry.due_ns) },
    Column { name: "ready_ns", kind: Kind::Integer, of: |row| whole(row.entry.ready_ns) },
    Column { name: "write_start_ns", kind: Kind::Integer, of: |row| whole(row.entry.write_start_ns) },
    Column { name: "received_ns", kind: Kind::Integer, of: |row| whole(row.entry.received_ns) },
    Column { name: "latency_lower_ns", kind: Kind::Integer, of: |row| whole(row.entry.latency_ns.map(|ns| ns.0)) },
    Column { name: "latency_upper_ns", kind: Kind::Integer, of: |row| whole(row.entry.latency_ns.map(|ns| ns.1)) },
    Column { name: "subscriber", kind: Kind::Integer, of: |row| whole(row.entry.audience) },
    Column { name: "subscriber_group", kind: Kind::Text, of: |row| Value::Text(row.subscriber_group) },
    Column { name: "outcome", kind: Kind::Text, of: |row| Value::Text(Some(row.entry.outcome.name())) },
    Column { name: "out_of_order", kind: Kind::Flag, of: |row| Value::Flag(row.entry.out_of_order) },
];

fn whole<'a>(number: Option<impl Into<i64>>) -> Value<'a> {
    Value::Integer(number.map(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that explains the columns.
    const PAGE: &str = include_str!("../../../../docs/reference/message-log.md");

    #[test]
    fn every_column_is_explained() {
        let table = PAGE.split("## Columns").nth(1).expect("a section of columns");
        let rows: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(rows[..names.len()], names, "docs/reference/message-log.md");
    }
}
