//! An exporter's metrics at one instant.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use prometheus_parse::{Scrape, Value};

/// Name of the loopback interface, whose bytes never leave the machine.
pub(super) const LOOPBACK: &str = "lo";
/// Starts of the names of interfaces whose packets pass another interface of the machine as well: bridges and their ports to
/// containers and virtual machines, tunnels and bonds. Their bytes would count several times.
const REPEATING: &[&str] = &[
    "veth",
    "docker",
    "br-",
    "cni",
    "cali",
    "cilium",
    "flannel",
    "vxlan",
    "podman",
    "lxc",
    "lxd",
    "virbr",
    "vmbr",
    "vnet",
    "ovs",
    "tap",
    "tun",
    "wg",
    "tailscale",
    "bond",
    "team",
];
/// Modes in which a core did no work: it was idle, waited for a disk, or the hypervisor ran other guests.
const NOT_USED: &[&str] = &["idle", "iowait", STEAL];
/// Mode in which the hypervisor ran other guests although the machine had work.
const STEAL: &str = "steal";

/// Counters and gauges of a machine. Metrics that the exporter left out are `None` or missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// CPU time since the machine started, over all cores, seconds by mode (`user`, `idle`, …).
    pub cpu_seconds: BTreeMap<String, f64>,
    /// Number of cores.
    pub cores: Option<u32>,
    /// Total memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that is available to programs, bytes.
    pub available_bytes: Option<u64>,
    /// Bytes received since the machine started, by network interface, without the loopback.
    pub received_bytes: BTreeMap<String, u64>,
    /// Bytes sent since the machine started, by network interface, without the loopback.
    pub sent_bytes: BTreeMap<String, u64>,
}

impl Snapshot {
    /// Parses the needed metrics from the text format of Prometheus; lines of other metrics are skipped.
    pub fn parse(text: &str) -> Snapshot {
        let wanted = |line: &&str| METRICS.iter().any(|(name, _)| line.starts_with(name));
        let lines = text.lines().filter(wanted).map(|line| Ok::<_, io::Error>(line.to_owned()));
        let mut snapshot = Snapshot::default();
        let mut cores = BTreeSet::new();
        // Reading lines from memory cannot fail. A line that cannot be parsed is left out, and so is its value.
        let samples = Scrape::parse(lines).map(|scrape| scrape.samples).unwrap_or_default();
        for sample in samples {
            let value = match sample.value {
                Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => value,
                Value::Histogram(_) | Value::Summary(_) => continue,
            };
            if !value.is_finite() || value < 0.0 {
                continue;
            }
            let Some((_, take)) = METRICS.iter().find(|(name, _)| *name == sample.metric) else { continue };
            if let Some(core) = sample.labels.get("cpu") {
                cores.insert(core.to_owned());
            }
            take(&mut snapshot, &|label| sample.labels.get(label).map(str::to_owned), value);
        }
        snapshot.cores = u32::try_from(cores.len()).ok().filter(|cores| *cores > 0);
        snapshot
    }

    /// CPU time in which the machine worked, since its start, seconds over all cores.
    pub fn busy_seconds(&self) -> f64 {
        let busy = self.cpu_seconds.iter().filter(|(mode, _)| !NOT_USED.contains(&mode.as_str()));
        busy.map(|(_, seconds)| seconds).sum()
    }

    /// CPU time in all modes since the machine's start, seconds over all cores.
    pub fn total_seconds(&self) -> f64 {
        self.cpu_seconds.values().sum()
    }

    /// CPU time that the hypervisor took for other guests since the machine's start, seconds over all cores; `None` if it is
    /// not reported.
    pub fn stolen_seconds(&self) -> Option<f64> {
        self.cpu_seconds.get(STEAL).copied()
    }

    /// Memory in use, bytes: the total without the available memory.
    pub fn used_bytes(&self) -> Option<u64> {
        self.memory_bytes?.checked_sub(self.available_bytes?)
    }

    /// Bytes received on all interfaces that repeat no other one; `None` if none is known.
    pub fn all_received_bytes(&self) -> Option<u64> {
        all_bytes(&self.received_bytes)
    }

    /// Bytes sent on all interfaces that repeat no other one; `None` if none is known.
    pub fn all_sent_bytes(&self) -> Option<u64> {
        all_bytes(&self.sent_bytes)
    }
}

fn all_bytes(devices: &BTreeMap<String, u64>) -> Option<u64> {
    let mut once = devices.iter().filter(|(name, _)| !is_repeating(name)).map(|(_, bytes)| *bytes).peekable();
    once.peek().is_some().then(|| once.sum())
}

/// Do the packets of an interface pass another one of the machine as well? An exporter gives no more than its name.
fn is_repeating(name: &str) -> bool {
    let is_bridge = name.strip_prefix("br").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    // `eth0.100` is a VLAN on `eth0`.
    is_bridge || name.contains('.') || REPEATING.iter().any(|start| name.starts_with(start))
}

/// A label's value.
type Label<'a> = &'a dyn Fn(&str) -> Option<String>;
/// Stores a value in its field.
type Take = fn(&mut Snapshot, Label<'_>, f64);

/// Metrics that are read, by the names that node_exporter has used since 0.16, and the field of each.
const METRICS: &[(&str, Take)] = &[
    ("node_cpu_seconds_total", |snapshot, label, value| {
        if let Some(mode) = label("mode") {
            *snapshot.cpu_seconds.entry(mode).or_default() += value;
        }
    }),
    ("node_memory_MemTotal_bytes", |snapshot, _, value| snapshot.memory_bytes = Some(value as u64)),
    ("node_memory_MemAvailable_bytes", |snapshot, _, value| snapshot.available_bytes = Some(value as u64)),
    ("node_network_receive_bytes_total", |snapshot, label, value| {
        add_device(&mut snapshot.received_bytes, label, value);
    }),
    ("node_network_transmit_bytes_total", |snapshot, label, value| {
        add_device(&mut snapshot.sent_bytes, label, value);
    }),
];

fn add_device(devices: &mut BTreeMap<String, u64>, label: Label<'_>, value: f64) {
    if let Some(device) = label("device").filter(|device| device != LOOPBACK) {
        devices.insert(device, value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 7.128542e+06
node_cpu_seconds_total{cpu="0",mode="iowait"} 10
node_cpu_seconds_total{cpu="0",mode="steal"} 5
node_cpu_seconds_total{cpu="0",mode="user"} 100.5
node_cpu_seconds_total{cpu="1",mode="idle"} 1
node_cpu_seconds_total{cpu="1",mode="user"} 20.25
node_cpu_seconds_total{cpu="1",mode="system"} 4
node_cpu_guest_seconds_total{cpu="7",mode="user"} 1000
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 2.1e+10
node_memory_MemTotal_bytes 2.5e+10
node_network_receive_bytes_total{device="eth0"} 5.49394e+05
node_network_receive_bytes_total{device="lo"} 9e+09
node_network_transmit_bytes_total{device="eth0"} 1000
node_network_transmit_bytes_total{device="wlan0"} 500
node_network_transmit_bytes_total{device="lo"} 9e+09
node_scrape_collector_duration_seconds{collector="cpu"} 0.0001
"#;

    #[test]
    fn an_exporter_s_text_is_read() {
        let snapshot = Snapshot::parse(TEXT);
        assert_eq!((snapshot.cores, snapshot.busy_seconds()), (Some(2), 124.75));
        assert_eq!((snapshot.stolen_seconds(), snapshot.total_seconds()), (Some(5.0), 7_128_682.75));
        assert_eq!((snapshot.memory_bytes, snapshot.used_bytes()), (Some(25_000_000_000), Some(4_000_000_000)));
        assert_eq!((snapshot.all_received_bytes(), snapshot.all_sent_bytes()), (Some(549_394), Some(1_500)));
    }

    #[test]
    fn bytes_to_a_container_count_once() {
        let text = |name: &str| format!("node_network_receive_bytes_total{{device=\"{name}\"}} 1000\n");
        let virtual_ones =
            ["veth12ab", "docker0", "br-0a1b2c", "br0", "cni0", "virbr0", "podman1", "bond0", "eth0.100", "wg0"];
        let others = ["tailscale0", "vxlan100", "cilium_host", "vmbr0", "ovs-system", "team0"];
        let all: String = ["eth0", "wlp3s0", "lo"].into_iter().chain(virtual_ones).chain(others).map(text).collect();
        let snapshot = Snapshot::parse(&all);
        assert_eq!(snapshot.all_received_bytes(), Some(2_000));
        assert!(snapshot.received_bytes.contains_key("br0"), "a node may have its address there");
        assert_eq!(Snapshot::parse(&text("docker0")).all_received_bytes(), None);
    }

    #[test]
    fn missing_or_malformed_metrics_are_unknown() {
        assert_eq!(Snapshot::parse("<html>not found</html>"), Snapshot::default());
        let broken = "node_memory_MemTotal_bytes lots\nnode_memory_MemAvailable_bytes NaN\n\
                      node_cpu_seconds_total{cpu=\"0\"\nnode_network_receive_bytes_total 5\n\
                      node_network_transmit_bytes_total{device=\"eth0\"} -4\n";
        let snapshot = Snapshot::parse(broken);
        assert_eq!(snapshot.stolen_seconds(), None, "not 0");
        assert_eq!((snapshot.memory_bytes, snapshot.used_bytes(), snapshot.cores), (None, None, None));
        assert_eq!((snapshot.all_received_bytes(), snapshot.all_sent_bytes()), (None, None));
    }
}
