//! The axes of experiments: one row of [`AXES`] for each. Cells, their labels, `--only`, files, contests and the reference follow from
//! the rows. `CONTRIBUTING.md` says how to add an axis.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::Deserialize;

use super::axis_value::{
    NO_LIMIT, client_parts, clients, factor, fault, level, limit, link, name, nodes, payload, quoted, read,
    requested_limit, scale, switch, topology,
};
use super::endpoint::EndpointChoice;
use super::raw::{BytesText, FactorText, LevelText, LimitText, RawSystem, SwitchText, TopologyText, WholeText};
use super::systems::{SystemChoice, systems};
use super::{Judge, Word};
use crate::fault::choice::{FaultChoice, NO_FAULT};
use crate::link::choice::LinkChoice;
use crate::load::diagnostic::Problem;
use crate::load::shape::{AnyText, Form, Named, OneOrMany, Spanned, Text};
use crate::topology::Topology;
use crate::units;

/// Settings that vary. Each axis has one value or a list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `system` and other axes")]
pub(crate) struct RawAxes {
    /// Workloads: built-in ones, or paths of files; instead of `workload` above.
    pub workload: Option<OneOrMany<Text<AnyText>>>,
    /// Systems: names (`pubmark list systems`), paths of definitions, or mappings with their own settings; systems that
    /// already run, by their `endpoint`.
    pub system: Spanned<OneOrMany<Form<Text<AnyText>, Spanned<RawSystem>>>>,
    /// Protocols of the clients; the first one that all systems offer if not given.
    pub protocol: Option<OneOrMany<Text<AnyText>>>,
    /// Profiles: `default`, `tuned`.
    pub profile: Option<OneOrMany<Text<AnyText>>>,
    /// QoS of all devices and subscribers; the workload's if not given.
    pub qos: Option<OneOrMany<Text<LevelText>>>,
    /// Number of brokers and how they are connected: `1`, `3:bridge`, `3:cluster`, `5:shard`.
    pub topology: Option<OneOrMany<Text<TopologyText>>>,
    /// Resource limits of each broker: `none`, or limits such as `cpu=0.5,memory=256MB` (in quotes inside `[…]`).
    pub limit: Option<OneOrMany<Text<LimitText>>>,
    /// Multipliers of the number of devices.
    pub scale: Option<OneOrMany<Text<WholeText>>>,
    /// Multipliers of every device's rate.
    pub rate: Option<OneOrMany<Text<FactorText>>>,
    /// Number of nodes that the fleet is distributed over: worker processes on this machine, or with `--nodes` machines
    /// that have joined.
    pub nodes: Option<OneOrMany<Text<WholeText>>>,
    /// Sizes of every payload.
    pub payload: Option<OneOrMany<Text<BytesText>>>,
    /// Emulated networks of all groups, or of one: `none`, `lte`, `sensors=lte`; the workload's if not given.
    pub link: Option<OneOrMany<Text<AnyText>>>,
    /// Faults of each run, instead of the workload's: `none`, or a fault (in quotes) such as `reset:mttf=30s,mttr=5s`; the
    /// workload's if not given.
    pub fault: Option<OneOrMany<Text<AnyText>>>,
    /// Whether connections are encrypted, with certificates created for each run: `true`, `false`.
    pub tls: Option<OneOrMany<Text<SwitchText>>>,
    /// Clients: `pubmark` for its own, a client library, or the command of a client program, `label=command` (in quotes).
    pub client: Option<OneOrMany<Text<AnyText>>>,
    /// Settings of the workload: a parameter, or a dotted path, each with its values.
    #[serde(default)]
    pub set: Named<OneOrMany<Text<AnyText>>>,
}

/// Settings that vary. An empty axis changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    /// Workloads; empty if there is only one.
    pub workload: Vec<String>,
    /// Systems; at least one.
    pub system: Vec<SystemChoice>,
    /// Protocols.
    pub protocol: Vec<String>,
    /// Profiles of the systems.
    pub profile: Vec<String>,
    /// QoS of all devices and subscribers, 0 to 2.
    pub qos: Vec<u8>,
    /// Numbers of brokers and how they are connected.
    pub topology: Vec<Topology>,
    /// Resource limits of each broker, as written; `none` for none.
    pub limit: Vec<String>,
    /// Multipliers of device counts, from 1.
    pub scale: Vec<u32>,
    /// Multipliers of every device's rate, above 0.
    pub rate: Vec<f64>,
    /// Numbers of nodes that the fleet is distributed over: worker processes, or some of the machines that joined.
    pub nodes: Vec<u16>,
    /// Sizes of every payload, as written.
    pub payload: Vec<String>,
    /// Links that replace those of the workload: `none`, `lte`, `sensors=lte`.
    pub link: Vec<LinkChoice>,
    /// Faults that replace those of the workload: `none`, `reset:mttf=30s,mttr=5s`.
    pub fault: Vec<FaultChoice>,
    /// Whether connections are encrypted.
    pub tls: Vec<bool>,
    /// Clients: `pubmark` for its own client, a client library, or the command of a client program; `label=command` gives
    /// it a name.
    pub client: Vec<String>,
    /// Settings of the workload: key, values.
    pub set: Vec<(String, Vec<String>)>,
}

/// Settings of a cell for its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A built-in workload or the path of a file.
    pub workload: String,
    /// A built-in system or the path of a definition; `None` for an endpoint of an unknown system.
    pub system: Option<String>,
    /// Endpoint of a system that already runs; `None` for a system that pubmark starts.
    pub endpoint: Option<EndpointChoice>,
    /// Protocol; chosen automatically if `None`.
    pub protocol: Option<String>,
    /// Profile of the system; `default` if `None`.
    pub profile: Option<String>,
    /// QoS of all devices and subscribers; the workload's if `None`.
    pub qos: Option<u8>,
    /// Number of brokers and how they are connected.
    pub topology: Topology,
    /// Resource limits as written; none if `None`.
    pub limit: Option<String>,
    /// `process` or `container`; the first one of the definition if `None`.
    pub back_end: Option<String>,
    /// Node that starts the system; the machine of the coordinator, or that of all systems, if `None`.
    pub node: Option<String>,
    /// Image of the container; the definition's if `None`.
    pub image: Option<String>,
    /// Multiplier of device counts.
    pub scale: u32,
    /// Multiplier of rates.
    pub rate: f64,
    /// Number of nodes; `None` if no axis sets it.
    pub nodes: Option<u16>,
    /// Size of every payload, bytes; the workload's if `None`.
    pub payload_bytes: Option<u32>,
    /// Link that replaces those of the workload; unchanged if `None`.
    pub link: Option<LinkChoice>,
    /// Fault that replaces those of the workload; unchanged if `None`.
    pub fault: Option<FaultChoice>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Client library or program; pubmark's client if `None`.
    pub client: Option<String>,
    /// Settings of the workload; those of all cells come first.
    pub set: Vec<(String, String)>,
}

impl Settings {
    /// The settings of a run that no axis changes.
    pub(super) fn unchanged(workload: &str, set: &[(String, String)]) -> Settings {
        Settings {
            workload: workload.to_owned(),
            system: None,
            endpoint: None,
            protocol: None,
            profile: None,
            qos: None,
            topology: Topology::ONE,
            limit: None,
            back_end: None,
            node: None,
            image: None,
            scale: 1,
            rate: 1.0,
            nodes: None,
            payload_bytes: None,
            link: None,
            fault: None,
            tls: false,
            client: None,
            set: set.to_vec(),
        }
    }

    fn choose(&mut self, choice: &SystemChoice) {
        self.system.clone_from(&choice.system);
        self.endpoint.clone_from(&choice.endpoint);
        self.protocol.clone_from(&choice.protocol);
        self.profile.clone_from(&choice.profile);
        self.qos = choice.qos;
        self.limit = choice.limit.as_deref().and_then(requested_limit);
        self.topology = choice.topology.unwrap_or(Topology::ONE);
        self.tls = choice.tls.unwrap_or(false);
        self.back_end.clone_from(&choice.back_end);
        self.node.clone_from(&choice.node);
        self.image.clone_from(&choice.image);
    }
}

/// An axis.
pub struct AxisRow {
    /// Its name in files, in records, and as a column of CSV files.
    pub name: &'static str,
    /// Its name in text for people.
    pub title: &'static str,
    /// A value, as a file has it.
    pub example: &'static str,
    /// A value in words.
    words: fn(&str) -> String,
    /// For an axis that does not change the schedule, its place among the axes along which contests are held.
    contest: Option<u8>,
    /// Reads the values of a file.
    pub(super) read: fn(&RawAxes, &mut Axes, Judge<'_>) -> Result<(), Problem>,
    /// The values of an experiment.
    pub(super) values: fn(&Axes) -> Vec<Value>,
    /// Keeps the values at the positions that are `true`.
    pub(super) retain: fn(&mut Axes, &[bool]),
}

/// A value of an axis.
pub(super) struct Value {
    /// As records and tables have it.
    pub shown: String,
    /// As YAML.
    pub written: String,
    /// Puts it into the settings of a cell.
    pub change: Change,
}

type Change = Box<dyn Fn(&mut Settings)>;

/// The axes, the ones that vary slowest first. Settings of the workload (`set.KEY`) vary faster than all of them.
pub const AXES: &[AxisRow] = &[
    AxisRow {
        name: "system",
        title: "system",
        example: "mosquitto",
        words: str::to_owned,
        contest: Some(0),
        read: |raw, to, judge| systems(&raw.system, raw, judge).map(|found| to.system = found),
        values: |axes| {
            let written = |choice: &SystemChoice| (choice.label.clone(), choice.to_yaml());
            changes(&axes.system, written, Settings::choose)
        },
        retain: |axes, kept| retain(&mut axes.system, kept),
    },
    AxisRow {
        name: "workload",
        title: "workload",
        example: "hello",
        words: str::to_owned,
        contest: None,
        read: |raw, to, judge| read(&raw.workload, name(judge, Some(Word::Workload))).map(|found| to.workload = found),
        values: |axes| texts(&axes.workload, |to, name| to.workload.clone_from(name)),
        retain: |axes, kept| retain(&mut axes.workload, kept),
    },
    AxisRow {
        name: "protocol",
        title: "protocol",
        example: "mqtt5",
        words: str::to_owned,
        contest: Some(1),
        read: |raw, to, judge| read(&raw.protocol, name(judge, Some(Word::Protocol))).map(|found| to.protocol = found),
        values: |axes| texts(&axes.protocol, |to, name| to.protocol = Some(name.clone())),
        retain: |axes, kept| retain(&mut axes.protocol, kept),
    },
    AxisRow {
        name: "profile",
        title: "profile",
        example: "tuned",
        words: |value| format!("profile {value}"),
        contest: Some(5),
        read: |raw, to, judge| read(&raw.profile, name(judge, None)).map(|found| to.profile = found),
        values: |axes| texts(&axes.profile, |to, name| to.profile = Some(name.clone())),
        retain: |axes, kept| retain(&mut axes.profile, kept),
    },
    AxisRow {
        name: "qos",
        title: "QoS",
        example: "1",
        words: |value| format!("QoS {value}"),
        contest: Some(2),
        read: |raw, to, _| read(&raw.qos, level).map(|found| to.qos = found),
        values: |axes| numbers(&axes.qos, |to, level| to.qos = Some(*level)),
        retain: |axes, kept| retain(&mut axes.qos, kept),
    },
    AxisRow {
        name: "topology",
        title: "topology",
        example: "3:bridge",
        words: |value| match value.split_once(':') {
            Some((brokers, "bridge")) => format!("{brokers} bridged brokers"),
            Some((brokers, "cluster")) => format!("{brokers} clustered brokers"),
            Some((brokers, _)) => format!("{brokers} shards"),
            None => "1 broker".to_owned(),
        },
        contest: Some(4),
        read: |raw, to, _| read(&raw.topology, topology).map(|found| to.topology = found),
        values: |axes| texts(&axes.topology, |to, topology| to.topology = *topology),
        retain: |axes, kept| retain(&mut axes.topology, kept),
    },
    AxisRow {
        name: "limit",
        title: "limit",
        example: "'cpu=0.5,memory=256MB'",
        words: |value| if value == NO_LIMIT { "no limit".to_owned() } else { value.to_owned() },
        contest: Some(3),
        read: |raw, to, judge| read(&raw.limit, |text| limit(text, judge)).map(|found| to.limit = found),
        values: |axes| texts(&axes.limit, |to, limit| to.limit = requested_limit(limit)),
        retain: |axes, kept| retain(&mut axes.limit, kept),
    },
    AxisRow {
        name: "scale",
        title: "scale",
        example: "10",
        words: |value| format!("scale {value}"),
        contest: None,
        read: |raw, to, _| read(&raw.scale, scale).map(|found| to.scale = found),
        values: |axes| numbers(&axes.scale, |to, scale| to.scale = *scale),
        retain: |axes, kept| retain(&mut axes.scale, kept),
    },
    AxisRow {
        name: "rate",
        title: "rate",
        example: "0.5",
        words: |value| format!("rate × {value}"),
        contest: None,
        read: |raw, to, _| read(&raw.rate, factor).map(|found| to.rate = found),
        values: |axes| numbers(&axes.rate, |to, rate| to.rate = *rate),
        retain: |axes, kept| retain(&mut axes.rate, kept),
    },
    AxisRow {
        name: "nodes",
        title: "nodes",
        example: "5",
        words: |value| if value == "1" { "1 node".to_owned() } else { format!("{value} nodes") },
        contest: None,
        read: |raw, to, _| read(&raw.nodes, nodes).map(|found| to.nodes = found),
        values: |axes| numbers(&axes.nodes, |to, nodes| to.nodes = Some(*nodes)),
        retain: |axes, kept| retain(&mut axes.nodes, kept),
    },
    AxisRow {
        name: "payload",
        title: "payload",
        example: "1KB",
        words: |value| format!("payload {value}"),
        contest: None,
        read: |raw, to, _| read(&raw.payload, payload).map(|found| to.payload = found),
        // The size was validated when the file was read.
        values: |axes| {
            texts(&axes.payload, |to, size| to.payload_bytes = units::size(size).ok().map(|bytes| bytes.round() as u32))
        },
        retain: |axes, kept| retain(&mut axes.payload, kept),
    },
    AxisRow {
        name: "link",
        title: "link",
        example: "sensors=lte",
        words: |value| format!("link {value}"),
        contest: None,
        read: |raw, to, _| read(&raw.link, link).map(|found| to.link = found),
        values: |axes| texts(&axes.link, |to, link| to.link = Some(link.clone())),
        retain: |axes, kept| retain(&mut axes.link, kept),
    },
    AxisRow {
        name: "fault",
        title: "fault",
        example: "'kill:at=10s,for=2s'",
        words: |value| if value == NO_FAULT { "no fault".to_owned() } else { value.to_owned() },
        contest: Some(6),
        read: |raw, to, _| read(&raw.fault, fault).map(|found| to.fault = found),
        values: |axes| texts(&axes.fault, |to, fault| to.fault = Some(fault.clone())),
        retain: |axes, kept| retain(&mut axes.fault, kept),
    },
    AxisRow {
        name: "tls",
        title: "TLS",
        example: "true",
        words: |value| if value == "true" { "TLS" } else { "no TLS" }.to_owned(),
        contest: Some(7),
        read: |raw, to, _| read(&raw.tls, switch).map(|found| to.tls = found),
        values: |axes| numbers(&axes.tls, |to, tls| to.tls = *tls),
        retain: |axes, kept| retain(&mut axes.tls, kept),
    },
    AxisRow {
        name: "client",
        title: "client",
        example: "'mine=python3 client.py'",
        words: str::to_owned,
        contest: Some(8),
        read: |raw, to, judge| clients(&raw.client, judge).map(|found| to.client = found),
        values: |axes| {
            let written = |client: &String| (client_parts(client).0.to_owned(), quoted(client));
            changes(&axes.client, written, |to, client| to.client = client_parts(client).1.map(str::to_owned))
        },
        retain: |axes, kept| retain(&mut axes.client, kept),
    },
];

/// The row of an axis; `None` for a setting of the workload.
fn row(axis: &str) -> Option<&'static AxisRow> {
    AXES.iter().find(|row| row.name == axis)
}

/// Name of an axis for people; a setting of the workload without its `set.`.
pub fn axis_title(axis: &str) -> &str {
    row(axis).map_or_else(|| axis.strip_prefix("set.").unwrap_or(axis), |row| row.title)
}

/// A value of an axis in words.
pub fn axis_words(axis: &str, value: &str) -> String {
    row(axis).map_or_else(|| format!("{} {value}", axis_title(axis)), |row| (row.words)(value))
}

/// The values that an axis takes, as the schema of files describes them.
pub fn axis_description(axis: &str) -> String {
    let schema = schemars::schema_for!(RawAxes);
    let property = schema.get("properties").and_then(|properties| properties.get(axis));
    let text = property.and_then(|property| property.get("description")?.as_str()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Axes that do not change the schedule, in the order in which contests are held along them. Cells that differ only in these must get
/// the same messages at the same times, and can be compared.
pub fn same_schedule_axes() -> Vec<&'static str> {
    let mut found: Vec<&AxisRow> = AXES.iter().filter(|row| row.contest.is_some()).collect();
    found.sort_by_key(|row| row.contest);
    found.into_iter().map(|row| row.name).collect()
}

/// Values, each with how it is shown and written, and with the change it makes to a cell.
fn changes<T: Clone + 'static>(
    values: &[T],
    texts: impl Fn(&T) -> (String, String),
    change: impl Fn(&mut Settings, &T) + Clone + 'static,
) -> Vec<Value> {
    let value = |value: &T| {
        let ((shown, written), own, change) = (texts(value), value.clone(), change.clone());
        Value { shown, written, change: Box::new(move |settings| change(settings, &own)) }
    };
    values.iter().map(value).collect()
}

/// Values of a setting of the workload. A file has them as a mapping of their own.
pub(super) fn setting_values(key: String, values: &[String]) -> Vec<Value> {
    let texts = |value: &String| (value.clone(), quoted(value));
    changes(values, texts, move |to, value| to.set.push((key.clone(), value.clone())))
}

/// Values that are written in quotes where they need them.
fn texts<T: Clone + Display + 'static>(values: &[T], change: fn(&mut Settings, &T)) -> Vec<Value> {
    changes(values, |value| (value.to_string(), quoted(&value.to_string())), change)
}

/// Numbers and switches.
fn numbers<T: Clone + Display + 'static>(values: &[T], change: fn(&mut Settings, &T)) -> Vec<Value> {
    changes(values, |value| (value.to_string(), value.to_string()), change)
}

/// Keeps the values at the positions that are `true`.
pub(super) fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| *kept.next().expect("there is one for each value"));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::{cells, parse};

    fn read(axes: &str) -> crate::experiment::Experiment {
        let text = format!("{{name: t, axes: {{{axes}}}}}");
        parse("t.yaml", &text, &|_, _| Ok(())).unwrap()
    }

    fn all() -> crate::experiment::Experiment {
        read(&AXES.iter().map(|row| format!("{}: {}", row.name, row.example)).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn every_axis_is_in_the_schema_the_cells_and_the_written_file() {
        let schema = schemars::schema_for!(RawAxes);
        let mut names: Vec<&String> = schema.get("properties").unwrap().as_object().unwrap().keys().collect();
        let mut rows: Vec<&str> = AXES.iter().map(|row| row.name).chain(["set"]).collect();
        names.sort_unstable();
        rows.sort_unstable();
        assert_eq!(names, rows, "each key of a file has a row, and each row a key");
        let experiment = all();
        let cell = &cells(&experiment)[0];
        assert_eq!(parse("t.yaml", &experiment.to_yaml(), &|_, _| Ok(())).unwrap(), experiment);
        let unchanged = &cells(&read("system: other, workload: other"))[0].settings;
        for row in AXES {
            assert!(!axis_description(row.name).is_empty(), "{}", row.name);
            let value = &cell.values[row.name];
            assert!(!axis_words(row.name, value).is_empty(), "{}", row.name);
            let mut changed = unchanged.clone();
            ((row.values)(&experiment.axes)[0].change)(&mut changed);
            assert_ne!(&changed, unchanged, "{} changes the runs of a cell", row.name);
            let mut cut = experiment.clone();
            (row.retain)(&mut cut.axes, &[false]);
            assert!(!crate::experiment::axes(&cut).iter().any(|axis| axis.name == row.name), "{}", row.name);
        }
    }

    #[test]
    fn contests_are_held_in_a_fixed_order() {
        let order = ["system", "protocol", "qos", "limit", "topology", "profile", "fault", "tls", "client"];
        assert_eq!(same_schedule_axes(), order);
        let places: Vec<u8> = (0..).take(order.len()).collect();
        let mut given: Vec<u8> = AXES.iter().filter_map(|row| row.contest).collect();
        given.sort_unstable();
        assert_eq!(given, places, "each place is taken once");
    }
}
