//! The settings of a run that its schedule does not include, and in which compared runs may differ.

use pubmark_model::{group_settings, secret, units};

use super::Difference;
use crate::faults::FaultRow;
use crate::links::{LinkBackEnd, LinkDirection, LinkGroup};
use crate::nodes;
use crate::quantity;
use crate::record::{BackEndKind, Record, TopologyInfo};

/// Name of a setting, and the function that reads it: `None` where the record does not say it, such as one of an older version.
type Setting = (&'static str, fn(&Record) -> Option<String>);

/// The kernel of one machine does not always report the same.
const MEMORY: &str = "memory of the machine";

/// The settings, versions and machine of a run, besides its schedule and its system.
static SETTINGS: [Setting; 44] = [
    ("protocol", |record| Some(record.protocol.to_string())),
    ("delivery level", |record| Some(record.workload.levels().join(", "))),
    // Reacting devices and subscribers are no part of the schedule.
    ("devices", |record| Some(record.workload.devices.to_string())),
    ("subscribers", |record| Some(record.workload.subscribers.to_string())),
    ("topics", |record| Some(record.workload.topics.to_string())),
    ("links", |record| Some(links(record))),
    ("faults", |record| Some(faults(record))),
    ("profile", |record| Some(record.system.profile.clone().unwrap_or_else(|| "—".to_string()))),
    ("back end", |record| Some(record.system.back_end.to_string())),
    ("image", |record| or_none(record.system.image.clone())),
    ("endpoint", |record| Some(endpoint(record))),
    ("node of the system", |record| or_none(record.system.node.clone())),
    ("brokers", |record| {
        let brokers = |topology: &TopologyInfo| format!("{}:{}", topology.brokers, topology.mode);
        Some(record.system.topology.as_ref().map_or_else(|| "1".to_string(), brokers))
    }),
    ("limits", |record| Some(limits(record))),
    ("cores of the system", |record| Some(record.system.pinned_cores.clone().unwrap_or_else(|| "all".to_string()))),
    ("nodes", |record| Some(record.tables.nodes.len().to_string())),
    ("machines of the nodes", |record| Some(nodes::machines(&record.tables.nodes))),
    ("TLS", |record| yes_no(record.settings.tls)),
    ("client certificate", |record| yes_no(record.settings.client_certificate)),
    ("TLS sessions", |record| {
        let sessions = match &record.connections.tls {
            Some(tls) => match tls.resumption {
                Some(true) => "resumed",
                Some(false) => "never resumed",
                None => "up to the client library",
            },
            None => "—",
        };
        Some(sessions.to_string())
    }),
    ("congestion control", |record| {
        Some(record.settings.congestion_control.clone().unwrap_or_else(|| "the machine's".to_string()))
    }),
    ("clients", |record| {
        let programs = record.connections.client_programs.as_ref();
        Some(programs.map_or_else(|| "in pubmark".to_string(), |programs| programs.library.clone()))
    }),
    ("source addresses", |record| {
        let addresses = match record.settings.source_addresses {
            0 => "chosen by the kernel".to_string(),
            given => given.to_string(),
        };
        Some(addresses)
    }),
    ("connects per second", |record| Some(record.settings.connects_per_s.to_string())),
    // The schedule of a flood does not include it.
    ("warm-up", |record| Some(format!("{} s", record.settings.warmup_s))),
    ("message log", |record| or_none(record.message_log.as_ref().map(|log| log.file.clone()))),
    ("longest drain", |record| Some(format!("{} s", record.settings.drain_limit_s))),
    ("real-time", |record| yes_no(record.settings.realtime)),
    ("pace", |record| Some(record.settings.pace.clone())),
    ("CPU idle states prevented", |record| yes_no(record.settings.cpu_idle_disabled)),
    ("shards", |record| Some(format!("{} + {}", record.settings.publisher_shards, record.settings.subscriber_shards))),
    ("`sent` means", |record| Some(record.protocol.sent_means.to_string())),
    ("delivery window", |record| {
        let window = record.protocol.delivery_window;
        Some(window.map_or_else(|| "no limit, or not known".to_string(), |most| most.to_string()))
    }),
    ("pubmark", |record| Some(record.run.pubmark_version.clone())),
    ("processor", |record| Some(record.environment.cpu.clone())),
    ("cores", |record| Some(record.environment.cores.to_string())),
    ("CPU quota", |record| {
        let quota = record.environment.cpu_quota_cores;
        Some(quota.map_or_else(|| "none".to_string(), |quota| format!("{quota} cores")))
    }),
    ("operating system", |record| Some(record.environment.os.clone())),
    ("kernel", |record| Some(record.environment.kernel.clone())),
    ("processors of the machine", |record| record.environment.processors.map(|processors| processors.to_string())),
    (MEMORY, |record| Some(quantity::bytes(record.environment.memory_bytes as f64))),
    ("CPU frequency governor", |record| or_none(record.environment.governor.clone())),
    ("congestion control of the machine", |record| record.environment.congestion_control.clone()),
    ("virtualization", |record| or_none(record.environment.virtualization.clone())),
];

/// Settings that describe the machines of a run and not what was run on them.
pub const MACHINE: [&str; 11] = [
    "processor",
    "cores",
    "CPU quota",
    "operating system",
    "kernel",
    "processors of the machine",
    "memory of the machine",
    "CPU frequency governor",
    "congestion control of the machine",
    "virtualization",
    "machines of the nodes",
];

/// The machines of a run in words: this machine, and those of the nodes.
pub fn machine(record: &Record) -> String {
    let here = record.environment.machine();
    if record.tables.nodes.is_empty() {
        here
    } else {
        format!("{here}; nodes: {}", nodes::machines(&record.tables.nodes))
    }
}

/// All known settings of a run, by name. Those of groups are missing in records of older versions.
pub(crate) fn settings_of(record: &Record) -> impl Iterator<Item = (&'static str, String)> {
    let of_groups = group_settings::NAMES.iter().map(|&name| (name, of_groups(name, record)));
    let of_run = SETTINGS.iter().map(|(name, get)| (*name, get(record)));
    of_run.chain(of_groups).filter_map(|(name, value)| Some((name, value?)))
}

/// The settings in which these runs differ.
pub(crate) fn differences(records: &[Record]) -> Vec<Difference> {
    let is_one_memory = records.windows(2).all(|two| two[0].environment.is_same_memory(&two[1].environment));
    let compared = SETTINGS.iter().filter(|(name, _)| !(is_one_memory && *name == MEMORY));
    let of_runs = compared.filter_map(|(name, get)| difference(name, records.iter().map(get).collect()));
    let of_groups = group_settings::NAMES
        .iter()
        .filter_map(|&name| difference(name, records.iter().map(|record| of_groups(name, record)).collect()));
    of_runs.chain(of_groups).collect()
}

/// The setting, if runs differ in it. A run whose record does not say it is not compared.
fn difference(name: &'static str, values: Vec<Option<String>>) -> Option<Difference> {
    let mut known = values.iter().flatten();
    let first = known.next()?;
    known.any(|value| value != first).then(|| Difference {
        name,
        values: values.into_iter().map(|value| value.unwrap_or_else(|| quantity::MISSING.to_string())).collect(),
    })
}

/// A setting of groups.
fn of_groups(name: &str, record: &Record) -> Option<String> {
    record.workload.group_settings.get(name).cloned()
}

/// Addresses of a system that ran before the run. The port of one that pubmark starts is a free one, which changes.
fn endpoint(record: &Record) -> String {
    let system = &record.system;
    if system.back_end != BackEndKind::External {
        return "chosen by pubmark".to_string();
    }
    let all = match &system.topology {
        Some(topology) if !topology.endpoints.is_empty() => topology.endpoints.as_slice(),
        _ => std::slice::from_ref(&system.endpoint),
    };
    all.iter().map(|endpoint| secret::without_password(endpoint)).collect::<Vec<String>>().join(", ")
}

/// The limits that held, whatever they were called: a set and a list can be the same, and one list can be held with several periods.
fn limits(record: &Record) -> String {
    let Some(limits) = &record.system.limits else { return "none".to_string() };
    let period =
        limits.cpu_period_ms.map_or_else(|| "the engine's period".to_string(), |ms| format!("in every {ms} ms"));
    let parts = [
        limits.cpu.map(|cpu| format!("cpu={cpu} ({period})")),
        limits.memory_bytes.map(|bytes| format!("memory={}", units::written_size(bytes))),
        limits.cores.map(|cores| format!("cores={cores}")),
    ];
    let held: Vec<String> = parts.into_iter().flatten().collect();
    if held.is_empty() { limits.requested.clone() } else { held.join(",") }
}

/// The links that were requested, each with its groups.
fn links(record: &Record) -> String {
    let Some(links) = &record.conditions.links else { return "none".to_string() };
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    for group in &links.groups {
        let link = link(group);
        match alike.iter_mut().find(|(known, _)| *known == link) {
            Some((_, groups)) => groups.push(&group.group),
            None => alike.push((link, vec![&group.group])),
        }
    }
    let words: Vec<String> =
        alike.into_iter().map(|(link, groups)| format!("{link} for {}", groups.join(", "))).collect();
    match links.back_end {
        LinkBackEnd::UserSpace => words.join("; "),
        LinkBackEnd::KernelNetem => format!("{}, emulated by {}", words.join("; "), links.back_end),
    }
}

/// Name and conditions of a link: `lte (up 40 ms, down 30 ms)`.
fn link(group: &LinkGroup) -> String {
    let way = |way: &LinkDirection| way.requested.join(", then ");
    let (up, down) = (way(&group.up), way(&group.down));
    if up == down { format!("{} ({up})", group.link) } else { format!("{} (up {up}, down {down})", group.link) }
}

/// The faults that were requested, in order of time.
fn faults(record: &Record) -> String {
    let Some(faults) = &record.conditions.faults else { return "none".to_string() };
    let one = |fault: &FaultRow| {
        let length = fault.requested_for_s.map_or_else(String::new, |length_s| format!(" for {length_s} s"));
        format!("{} of {} at {} s{length}", fault.kind, fault.target, fault.requested_at_s)
    };
    faults.faults.iter().map(one).collect::<Vec<String>>().join("; ")
}

fn yes_no(value: bool) -> Option<String> {
    Some(if value { "yes" } else { "no" }.to_string())
}

fn or_none(value: Option<String>) -> Option<String> {
    Some(value.unwrap_or_else(|| "none".to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::comparison::compare;
    use crate::faults::FaultFigures;
    use crate::links::LinkFigures;
    use crate::message_log::MessageLogInfo;
    use crate::nodes::{NodeMachine, NodeRow};
    use crate::record::{LimitInfo, Qos, TopologyMode};
    use crate::sample;

    /// Why a field of a record is no setting that is compared.
    const NO_SETTINGS: [(&str, &[&str]); 9] = [
        (
            "it was measured or judged",
            &[
                "connections",
                "cost",
                "custom",
                "delivery",
                "latency",
                "objectives",
                "requests",
                "throughput",
                "verdict",
                "settings.drain_s",
                "environment.busy_cores",
                "environment.load_after",
                "environment.load_before",
                "environment.steal",
                "system.ended",
                "tables.by_label",
                "tables.by_pair",
                "tables.by_type",
                "tables.curves",
                "tables.latency_bins",
                "tables.lost_workers",
                "tables.resource_series",
                "tables.series",
            ],
        ),
        (
            "it identifies the run",
            &[
                "schema_version",
                "run.command",
                "run.files",
                "run.id",
                "run.name",
                "run.repetition",
                "run.repetitions",
                "run.started_at",
                "run.status",
                "settings.window_end_ns",
                "settings.window_start_ns",
            ],
        ),
        (
            "the schedule has it, or the load of a flood",
            &[
                "workload.name",
                "workload.scale",
                "workload.schedule_hash",
                "workload.scheduled",
                "workload.seed",
                "workload.variant",
                "settings.duration_s",
                "settings.flood",
            ],
        ),
        ("it is a text about the workload", &["workload.has_readings", "workload.source"]),
        (
            "it is the system, which is what is compared",
            &["system.name", "system.papers", "system.ranked", "system.version"],
        ),
        ("it follows from the protocol of the subscribers", &["protocol.read_by_library"]),
        ("it contains the free ports and folders of the run", &["system.configuration"]),
        ("some of them count what happened; a report lists them", &["settings.deviations"]),
        (
            "pubmark's own: it follows from the version, or a run without it fails",
            &["environment.clock", "environment.descriptor_limit"],
        ),
    ];

    fn value(of: impl serde::Serialize) -> Value {
        serde_json::to_value(of).unwrap()
    }

    /// Another value of each field that is compared.
    fn other_values() -> Vec<(&'static str, Value)> {
        let topology = TopologyInfo { brokers: 3, mode: TopologyMode::Bridge, endpoints: vec![] };
        let limits = LimitInfo { requested: "cpu=0.5".to_string(), ..LimitInfo::default() };
        let log = MessageLogInfo { file: "messages.csv".to_string(), ..MessageLogInfo::default() };
        vec![
            ("run.pubmark_version", json!("9.9.9")),
            ("workload.devices", json!(7)),
            ("workload.subscribers", json!(7)),
            ("workload.topics", json!(7)),
            ("workload.qos", value(vec![Qos::ExactlyOnce])),
            ("workload.group_settings", json!({"in-flight window": "1"})),
            ("system.back_end", json!("process")),
            ("system.endpoint", json!("mqtt://prod:1883")),
            ("system.image", json!("broker:2")),
            ("system.limits", value(limits)),
            ("system.node", json!("edge-2")),
            ("system.pinned_cores", json!("0")),
            ("system.profile", json!("tuned")),
            ("system.topology", value(topology)),
            ("protocol.publish", json!("nats")),
            ("protocol.subscribe", json!("nats")),
            ("protocol.sent_means", json!("handed-over")),
            ("protocol.delivery_window", json!(7)),
            ("settings.client_certificate", json!(true)),
            ("settings.congestion_control", json!("bbr")),
            ("settings.connects_per_s", json!(7.0)),
            ("settings.cpu_idle_disabled", json!(true)),
            ("settings.drain_limit_s", json!(99.0)),
            ("settings.pace", json!("auto")),
            ("settings.publisher_shards", json!(7)),
            ("settings.realtime", json!(true)),
            ("settings.source_addresses", json!(7)),
            ("settings.subscriber_shards", json!(7)),
            ("settings.tls", json!(true)),
            ("settings.warmup_s", json!(99.0)),
            ("conditions.faults", value(FaultFigures::default())),
            ("conditions.links", value(LinkFigures::default())),
            ("message_log", value(log)),
            ("tables.nodes", json!([value(node("edge-1"))])),
            ("environment.congestion_control", json!("bbr")),
            ("environment.cores", json!(7)),
            ("environment.cpu", json!("another")),
            ("environment.cpu_quota_cores", json!(1.5)),
            ("environment.governor", json!("powersave")),
            ("environment.kernel", json!("7.0")),
            ("environment.memory_bytes", json!(1_000_000_000)),
            ("environment.os", json!("another")),
            ("environment.processors", json!(7)),
            ("environment.virtualization", json!("xen")),
        ]
    }

    fn node(host: &str) -> NodeRow {
        let kernel = "6.12".to_string();
        let machine = NodeMachine { host: host.to_string(), cores: 2, kernel, ..NodeMachine::default() };
        NodeRow { name: host.to_string(), machine: Some(machine), ..NodeRow::default() }
    }

    /// A run against a system that ran before it.
    fn external() -> Record {
        let mut record = sample::record();
        record.system.back_end = BackEndKind::External;
        record.system.endpoint = "mqtt://staging:1883".to_string();
        record.workload.group_settings.insert("in-flight window".to_string(), "20".to_string());
        record
    }

    fn differing(records: &[Record; 2]) -> Vec<(&'static str, Vec<String>)> {
        let differences = compare(records).unwrap().differences;
        differences.into_iter().map(|difference| (difference.name, difference.values)).collect()
    }

    /// Fields of the record: of these groups each one, otherwise the whole group.
    fn fields() -> Vec<String> {
        const GROUPS: [&str; 8] =
            ["conditions", "environment", "protocol", "run", "settings", "system", "tables", "workload"];
        let schema: Value = serde_json::from_str(&crate::schema::record_schema()).unwrap();
        let keys = |of: &Value| of["properties"].as_object().unwrap().keys().cloned().collect::<Vec<String>>();
        let fields = |group: String| {
            if !GROUPS.contains(&group.as_str()) {
                return vec![group];
            }
            let reference = schema["properties"][&group]["$ref"].as_str().unwrap().trim_start_matches('#');
            let names = keys(schema.pointer(reference).unwrap());
            names.into_iter().map(|name| format!("{group}.{name}")).collect()
        };
        let mut all: Vec<String> = keys(&schema).into_iter().flat_map(fields).collect();
        all.sort_unstable();
        all
    }

    /// A new field of a record has to be compared, or to be listed with the reason why not.
    #[test]
    fn each_field_of_a_record_is_compared_or_no_setting() {
        let others = NO_SETTINGS.iter().flat_map(|(_, fields)| fields.iter().copied());
        let mut known: Vec<&str> = other_values().iter().map(|(field, _)| *field).chain(others).collect();
        known.sort_unstable();
        assert_eq!(fields(), known);
    }

    #[test]
    fn another_value_of_each_setting_is_a_difference() {
        for (field, other) in other_values() {
            let mut changed = value(external());
            let (group, name) = field.split_once('.').unwrap_or(("", field));
            let group = if group.is_empty() { &mut changed } else { &mut changed[group] };
            group[name] = other;
            let records = [external(), serde_json::from_value(changed).unwrap()];
            assert!(!differing(&records).is_empty(), "{field}");
        }
    }

    #[test]
    fn the_endpoint_counts_where_the_system_ran_before_and_shows_no_password() {
        let mut records = [external(), external()];
        records[1].system.endpoint = "mqtt://ann:hunter2@prod:1883".to_string();
        let values = vec!["mqtt://staging:1883".to_string(), "mqtt://ann:…@prod:1883".to_string()];
        assert_eq!(differing(&records), [("endpoint", values)]);
        for record in &mut records {
            record.system.back_end = BackEndKind::Process;
        }
        assert!(differing(&records).is_empty(), "each of them has a free port");
    }

    #[test]
    fn a_setting_of_groups_is_compared_where_both_records_have_it() {
        let mut records = [external(), external()];
        records[1].workload.group_settings.insert("in-flight window".to_string(), "1".to_string());
        let values = vec!["20".to_string(), "1".to_string()];
        assert_eq!(differing(&records), [("in-flight window", values)]);
        records[1].workload.group_settings.clear();
        assert!(differing(&records).is_empty(), "a record of an older version");
    }

    #[test]
    fn what_a_record_does_not_say_is_not_compared() {
        let mut records = [external(), external()];
        (records[1].environment.processors, records[1].environment.congestion_control) = (None, None);
        assert!(differing(&records).is_empty());
        records[0].environment.cores = 2;
        assert_eq!(differing(&records), [("cores", vec!["2".to_string(), "4".to_string()])]);
        assert!(settings_of(&records[1]).all(|(name, _)| name != "processors of the machine"));
    }

    #[test]
    fn a_quota_and_the_kernel_s_congestion_control_are_of_the_machine() {
        let mut records = [external(), external()];
        records[1].environment.cpu_quota_cores = Some(1.5);
        records[1].environment.congestion_control = Some("bbr".to_string());
        let names: Vec<&str> = differing(&records).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["CPU quota", "congestion control of the machine"]);
        assert!(names.iter().all(|name| MACHINE.contains(name)));
    }

    #[test]
    fn nodes_are_part_of_the_machine() {
        let mut record = sample::record();
        assert_eq!(machine(&record), "4 × Example CPU at 2.60 GHz, kernel 6.12.0");
        record.tables.nodes = vec![node("b"), node("a")];
        assert!(machine(&record).ends_with("; nodes: 2 × (2 cores, kernel 6.12)"), "{}", machine(&record));
        let before = machine(&record);
        record.tables.nodes = vec![node("c"), node("c"), node("d")];
        assert_eq!(machine(&record), before, "containers have new host names, and c has two nodes");
        record.tables.nodes.push(NodeRow::default());
        record.tables.nodes[2].machine.as_mut().unwrap().cores = 1;
        let nodes = "; nodes: this machine; 1 × (1 core, kernel 6.12); 1 × (2 cores, kernel 6.12)";
        assert!(machine(&record).ends_with(nodes), "{}", machine(&record));
    }

    #[test]
    fn machine_settings_are_settings() {
        for name in MACHINE {
            assert!(SETTINGS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
