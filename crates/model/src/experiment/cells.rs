//! Combinations: every value of every axis with every value of the other axes.

use std::collections::{BTreeMap, BTreeSet};

use super::axis_value::NO_LIMIT;
use super::definition::{Experiment, SystemChoice, client_parts};
use super::endpoint::EndpointChoice;
use crate::fault::choice::{FaultChoice, NO_FAULT};
use crate::link::choice::LinkChoice;
use crate::topology::Topology;
use crate::units;

/// Values of an axis as they are displayed, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisValues {
    /// `system`, `qos`, …, or `set.KEY`.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
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

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Unique identifier, safe as a file name; unchanged as long as the cell's values are.
    pub id: String,
    /// Text that distinguishes the cell from the others, for people.
    pub label: String,
    /// Value of the cell on every given axis.
    pub values: BTreeMap<String, String>,
    /// Settings for the runs of the cell.
    pub settings: Settings,
}

/// The given axes, in order; `system` is always among them.
pub fn axes(experiment: &Experiment) -> Vec<AxisValues> {
    dimensions(experiment)
        .into_iter()
        .map(|dimension| AxisValues {
            name: dimension.name,
            values: dimension.values.into_iter().map(|value| value.shown).collect(),
        })
        .collect()
}

/// A change to a cell's settings.
type Change = Box<dyn Fn(&mut Settings)>;

struct Value {
    shown: String,
    change: Change,
}

struct Dimension {
    name: String,
    values: Vec<Value>,
}

impl Dimension {
    fn new<T: Clone + 'static>(
        name: &str,
        values: &[T],
        shown: impl Fn(&T) -> String,
        change: impl Fn(&mut Settings, &T) + Clone + 'static,
    ) -> Dimension {
        let value = |value: &T| {
            let (own, change) = (value.clone(), change.clone());
            Value { shown: shown(value), change: Box::new(move |settings| change(settings, &own)) }
        };
        Dimension { name: name.to_owned(), values: values.iter().map(value).collect() }
    }
}

/// All axes with values; the ones that vary slowest come first.
fn dimensions(experiment: &Experiment) -> Vec<Dimension> {
    let given = &experiment.axes;
    let text = |text: &String| text.clone();
    let mut found = vec![
        Dimension::new("system", &given.system, |choice| choice.label.clone(), choose),
        Dimension::new("workload", &given.workload, text, |to, name| to.workload.clone_from(name)),
        Dimension::new("protocol", &given.protocol, text, |to, name| to.protocol = Some(name.clone())),
        Dimension::new("profile", &given.profile, text, |to, name| to.profile = Some(name.clone())),
        Dimension::new("qos", &given.qos, u8::to_string, |to, level| to.qos = Some(*level)),
        Dimension::new("topology", &given.topology, Topology::to_string, |to, topology| to.topology = *topology),
        Dimension::new("limit", &given.limit, text, |to, limit| to.limit = asked(limit)),
        Dimension::new("scale", &given.scale, u32::to_string, |to, scale| to.scale = *scale),
        Dimension::new("rate", &given.rate, f64::to_string, |to, rate| to.rate = *rate),
        Dimension::new("nodes", &given.nodes, u16::to_string, |to, nodes| to.nodes = Some(*nodes)),
        // The size was validated before.
        Dimension::new("payload", &given.payload, text, |to, size| {
            to.payload_bytes = units::size(size).ok().map(|bytes| bytes.round() as u32);
        }),
        Dimension::new("link", &given.link, LinkChoice::to_string, |to, link| to.link = Some(link.clone())),
        Dimension::new("fault", &given.fault, FaultChoice::to_string, |to, fault| to.fault = Some(fault.clone())),
        Dimension::new("tls", &given.tls, bool::to_string, |to, tls| to.tls = *tls),
        Dimension::new(
            "client",
            &given.client,
            |client| client_parts(client).0.to_owned(),
            |to, client| {
                to.client = client_parts(client).1.map(str::to_owned);
            },
        ),
    ];
    for (key, values) in &given.set {
        let own = key.clone();
        found.push(Dimension::new(&format!("set.{key}"), values, text, move |to, value| {
            to.set.push((own.clone(), value.clone()));
        }));
    }
    found.retain(|dimension| !dimension.values.is_empty());
    found
}

fn asked(limit: &str) -> Option<String> {
    (limit != NO_LIMIT).then(|| limit.to_owned())
}

fn choose(settings: &mut Settings, choice: &SystemChoice) {
    settings.system.clone_from(&choice.system);
    settings.endpoint.clone_from(&choice.endpoint);
    settings.protocol.clone_from(&choice.protocol);
    settings.profile.clone_from(&choice.profile);
    settings.qos = choice.qos;
    settings.limit = choice.limit.as_deref().and_then(asked);
    settings.topology = choice.topology.unwrap_or(Topology::ONE);
    settings.tls = choice.tls.unwrap_or(false);
    settings.back_end.clone_from(&choice.back_end);
    settings.node.clone_from(&choice.node);
    settings.image.clone_from(&choice.image);
}

/// Number of combinations of all axes.
pub(super) fn combinations(experiment: &Experiment) -> u64 {
    axes(experiment).iter().fold(1, |cells, axis| cells.saturating_mul(axis.values.len() as u64))
}

/// Every combination, in order of the axes, the last varying fastest.
pub fn cells(experiment: &Experiment) -> Vec<PlannedCell> {
    let dimensions = dimensions(experiment);
    let untouched = Settings {
        workload: experiment.workload.clone(),
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
        set: experiment.set.clone(),
    };
    let count: usize = dimensions.iter().map(|dimension| dimension.values.len()).product();
    let mut ids = BTreeSet::new();
    (0..count)
        .map(|number| {
            let mut settings = untouched.clone();
            let mut chosen: Vec<(&Dimension, &Value)> = vec![];
            let mut rest = number;
            for dimension in dimensions.iter().rev() {
                chosen.push((dimension, &dimension.values[rest % dimension.values.len()]));
                rest /= dimension.values.len();
            }
            chosen.reverse();
            chosen.iter().for_each(|(_, value)| (value.change)(&mut settings));
            PlannedCell {
                id: unique(&mut ids, &id(&chosen)),
                label: label(&chosen),
                values: chosen.iter().map(|(axis, value)| (axis.name.clone(), value.shown.clone())).collect(),
                settings,
            }
        })
        .collect()
}

/// The system, and every other axis with more than one value; with the axis name where the value alone is not clear.
fn telling<'a>(chosen: &'a [(&'a Dimension, &'a Value)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    chosen
        .iter()
        .enumerate()
        .filter(|(position, (axis, _))| *position == 0 || axis.values.len() > 1)
        .map(|(_, (axis, value))| (axis.name.as_str(), value.shown.as_str()))
}

/// Maximum length of an id: with the number of a repetition it must still be a valid file name.
const LONGEST_ID: usize = 120;

fn id(chosen: &[(&Dimension, &Value)]) -> String {
    let words: Vec<String> = telling(chosen)
        .map(|(axis, value)| match axis {
            "system" | "workload" | "protocol" | "profile" => value.to_owned(),
            axis => format!("{}-{value}", axis.strip_prefix("set.").unwrap_or(axis)),
        })
        .collect();
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    let mut id: String = words.join("_").chars().map(safe).collect();
    id.truncate(LONGEST_ID);
    id
}

fn unique(taken: &mut BTreeSet<String>, id: &str) -> String {
    let numbered = (2..).map(|number| format!("{id}-{number}"));
    let free = std::iter::once(id.to_owned()).chain(numbered).find(|id| !taken.contains(id));
    let free = free.expect("the numbers do not end before the ids taken");
    taken.insert(free.clone());
    free
}

fn label(chosen: &[(&Dimension, &Value)]) -> String {
    let words: Vec<String> = telling(chosen)
        .map(|(axis, value)| match axis {
            "system" | "workload" | "protocol" | "client" => value.to_owned(),
            "profile" => format!("profile {value}"),
            "qos" => format!("QoS {value}"),
            "topology" => match value.split_once(':') {
                Some((brokers, "bridge")) => format!("{brokers} bridged brokers"),
                Some((brokers, "cluster")) => format!("{brokers} clustered brokers"),
                Some((brokers, _)) => format!("{brokers} shards"),
                None => "1 broker".to_owned(),
            },
            "limit" if value == NO_LIMIT => "no limit".to_owned(),
            "limit" => value.to_owned(),
            "scale" => format!("scale {value}"),
            "rate" => format!("rate × {value}"),
            "nodes" if value == "1" => "1 node".to_owned(),
            "nodes" => format!("{value} nodes"),
            "payload" => format!("payload {value}"),
            "fault" if value == NO_FAULT => "no fault".to_owned(),
            "fault" => value.to_owned(),
            "tls" => if value == "true" { "TLS" } else { "no TLS" }.to_owned(),
            axis => format!("{} {value}", axis.strip_prefix("set.").unwrap_or(axis)),
        })
        .collect();
    words.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::parse;

    fn experiment(axes: &str) -> Experiment {
        let text = format!("{{name: test, workload: hello, set: {{every: 1s}}, axes: {{{axes}}}}}");
        parse("test.yaml", &text, &|_, _| Ok(())).unwrap()
    }

    #[test]
    fn every_combination_is_a_cell_of_its_own() {
        let found = cells(&experiment("system: [a, b], qos: [0, 2], scale: 10, set: {size: [1KB, 2KB]}"));
        let ids: Vec<&str> = found.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids[..3], ["a_qos-0_size-1KB", "a_qos-0_size-2KB", "a_qos-2_size-1KB"]);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 8);
        assert_eq!(found[1].label, "a, QoS 0, size 2KB");
        assert_eq!(found[7].settings.qos, Some(2));
        assert_eq!(found[7].settings.scale, 10);
        let set: Vec<(&str, &str)> = found[7].settings.set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(set, [("every", "1s"), ("size", "2KB")]);
        assert_eq!(found[0].values["scale"], "10");
    }

    #[test]
    fn settings_of_a_system_stay_with_it() {
        let axes = "system: [{system: a, label: tuned a, profile: tuned, topology: 3:bridge, limit: cpu=1}, a]";
        let found = cells(&experiment(axes));
        assert_eq!(found[0].id, "tuned-a");
        assert_eq!(found[0].settings.topology.brokers, 3);
        assert_eq!(found[0].settings.limit.as_deref(), Some("cpu=1"));
        assert_eq!((found[1].settings.profile.as_deref(), found[1].settings.limit.as_deref()), (None, None));
    }

    #[test]
    fn ids_that_look_alike_as_file_names_are_told_apart() {
        let found = cells(&experiment("system: [{system: a, label: x y}, {system: a, label: x-y}]"));
        assert_eq!((found[0].id.as_str(), found[1].id.as_str()), ("x-y", "x-y-2"));
    }

    #[test]
    fn clients_are_an_axis_by_their_labels() {
        let found = cells(&experiment("system: a, client: [pubmark, 'paho=python3 client.py', './own a=b', rustdds]"));
        let told: Vec<_> = found.iter().map(|cell| (cell.label.as_str(), cell.settings.client.as_deref())).collect();
        let expected = [
            ("a, pubmark", None),
            ("a, paho", Some("python3 client.py")),
            ("a, ./own a=b", Some("./own a=b")),
            ("a, rustdds", Some("rustdds")),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn tls_is_an_axis_or_a_system_s_own() {
        let found = cells(&experiment("system: a, tls: [false, true]"));
        let told: Vec<_> =
            found.iter().map(|cell| (cell.label.as_str(), cell.id.as_str(), cell.settings.tls)).collect();
        assert_eq!(told, [("a, no TLS", "a_tls-false", false), ("a, TLS", "a_tls-true", true)]);
        let found = cells(&experiment("system: [a, {system: a, label: secured, tls: true}]"));
        assert_eq!(found.iter().map(|cell| cell.settings.tls).collect::<Vec<_>>(), [false, true]);
        for (axes, why) in [
            ("system: a, tls: maybe", "neither `true` nor `false`"),
            ("system: {system: a, tls: true}, tls: [false, true]", "by a system and by an axis"),
            ("system: a, tls: [true, true]", "given twice"),
            ("system: a, client: [\"a=x y\", \"a=z w\"]", "`a` is given twice"),
        ] {
            let text = format!("{{name: test, workload: hello, axes: {{{axes}}}}}");
            let error = parse("test.yaml", &text, &|_, _| Ok(())).unwrap_err().to_string();
            assert!(error.contains(why), "{axes}: {error}");
        }
    }

    #[test]
    fn no_limit_is_a_value_like_others() {
        let found = cells(&experiment("system: a, limit: [none, \"cpu=0.5,memory=256MB\"], topology: [1, 5:shard]"));
        let labels: Vec<&str> = found.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!(labels[..2], ["a, 1 broker, no limit", "a, 1 broker, cpu=0.5,memory=256MB"]);
        assert_eq!(labels[2], "a, 5 shards, no limit");
        assert_eq!(found[0].settings.limit, None);
        assert_eq!(found[1].id, "a_topology-1_limit-cpu-0.5-memory-256MB");
    }
}
