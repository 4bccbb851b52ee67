//! Emulated links of clients on other machines: each node creates those of its clients, and connects them to the system
//! through a relay.

use std::time::Duration;

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::links::can_be_made;
use crate::relayed::assert_relayed;
use crate::relayed_far::{REQUESTS, assert_near, assert_round_trip};
use crate::support::bed::Bed;
use crate::support::books::{assert_closed, assert_delivered_once, check, count, names_deviation};
use crate::support::bridge::Bridge;
use crate::support::cluster::stop;
use crate::support::place::{Call, Called};
use crate::support::processes::{family_of, signal, wait_for};

/// Sensors behind 20 ms each way, a reader without a link.
const WORKLOAD: &str = "\
name: spread-links
links:
  far: {delay: 20ms}
devices:
  - {name: sensor, count: 10, every: 100ms, payload: 100B, topic: 'spread/{index}', qos: 1, link: far}
subscribers:
  - {name: reader, count: 2, filters: ['spread/#'], qos: 1}
";
const TIMES: [&str; 4] = ["--duration", "3s", "--warmup", "1s"];
const LIMIT: Duration = Duration::from_secs(60);
const PORT: u16 = 18_830;

/// Three machines: the coordinator and a broker on the first, nodes on the others.
struct Spread {
    bed: Bed,
    broker: Call,
    nodes: Vec<Call>,
}

impl Spread {
    fn new() -> Option<Spread> {
        if !can_be_made() {
            return None;
        }
        let bed = Bed::new(3)?;
        bed.cluster.place.write("spread-links.yaml", WORKLOAD);
        let at = format!("{}:{PORT}", Bridge::address(0));
        let broker = bed.cluster.place.start_by(bed.bridge.at(0), &["broker", "--listen", &at]);
        let nodes = [1, 2].map(|machine| bed.node(machine, &bed.listen, &[]));
        Some(Spread { bed, broker, nodes: nodes.into() })
    }

    /// Starts a run on both nodes.
    fn start(&self, options: &[&str]) -> Call {
        let run = ["spread-links.yaml", "--nodes", "2", "--listen", &self.bed.listen];
        self.bed.run(&[&run[..], options].concat())
    }

    /// As [`Spread::start`], against the broker of the first machine.
    fn start_at_broker(&self, options: &[&str]) -> Call {
        let endpoint = format!("mqtt://{}:{PORT}", Bridge::address(0));
        self.start(&[&["--endpoint", &endpoint], options].concat())
    }

    fn end(self) {
        for node in self.nodes {
            assert_eq!(stop(node).code(), 0);
        }
        stop(self.broker);
    }
}

fn figure(record: &Value, bound: &str, name: &str) -> f64 {
    let total = &record["latency"]["total"];
    total[bound][name].as_f64().unwrap_or_else(|| panic!("no {name} in {total}"))
}

fn groups(record: &Value) -> Vec<&str> {
    let groups =
        record["conditions"]["links"]["groups"].as_array().unwrap_or_else(|| panic!("{}", record["conditions"]));
    groups.iter().map(|group| group["group"].as_str().unwrap()).collect()
}

/// Every message arrived once, 20 ms after it was sent, over links with the requested settings.
fn assert_behind_20_ms(record: &Value) {
    assert_closed(record);
    assert_delivered_once(record);
    assert_count_eq!((count(record, "delivered"), count(record, "lost")), (600, 0));
    assert!(figure(record, "upper", "min_us") >= 20_000.0, "{}", record["latency"]["total"]);
    let lower_us = figure(record, "lower", "p50_us");
    assert!(lower_us <= 20_000.0 * 1.02 + 200.0, "{}", record["latency"]["total"]);
    assert!(names_deviation(record, "relayed"), "{}", record["settings"]);
    // With other tests running, a probe may measure more than 20 ms.
    assert!(check(record, "V18") != "invalid", "{}", record["verdict"]);
    assert_eq!(check(record, "V21"), "valid");
    assert_eq!(groups(record), ["sensor at edge-2", "sensor at edge-3"]);
    let links = &record["conditions"]["links"];
    for group in links["groups"].as_array().unwrap() {
        assert_count!(group["up"]["traffic"]["entered_packets"].as_u64() >= Some(150), "{group}");
        assert!(!group["up"]["checks"].as_array().unwrap().is_empty(), "{group}");
    }
    assert_count_eq!(links["relay"]["refused"], 0);
    let at_end = &record["delivery"]["at_end"];
    assert!(at_end["relay_bytes"].is_u64() && at_end["link_bytes"].is_u64(), "{at_end}");
    for node in record["tables"]["nodes"].as_array().unwrap() {
        // Counters are sent before the window and after it.
        assert!(node["control"]["while_measuring"].as_u64() < Some(20_000), "{node}");
        assert!(node["generator"]["cores"].as_f64() > Some(0.0), "{node}");
    }
}

#[test]
fn each_node_makes_the_links_of_its_own_clients() {
    let Some(spread) = Spread::new() else { return };
    let called = spread.start_at_broker(&TIMES).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_behind_20_ms(&record);
    assert_relayed(&record);
    // The fastest message, in the upper bound: what a relay adds to every message is in it, whatever the relay says of itself.
    assert_near(figure(&record, "upper", "min_us"), 20_000.0, &record["latency"]["total"]);
    // Sensors and readers in turn: all connections of a node pass through its only relay.
    assert_count_eq!(record["conditions"]["links"]["relay"]["connections"], 12);
    // Traffic of a group is the sum over both nodes.
    let efficiency = &record["cost"]["efficiency"]["groups"][0];
    let window = &efficiency["window"];
    let entered: u64 = record["conditions"]["links"]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["up"]["traffic"]["entered_packets"].as_u64().unwrap())
        .sum();
    assert_count_eq!(window["sent_packets"].as_u64(), Some(entered), "{efficiency}");
    spread.end();
}

#[test]
fn a_round_trip_takes_twice_the_delay_of_a_node_s_link() {
    let Some(spread) = Spread::new() else { return };
    spread.bed.cluster.place.write("asked-from-afar.yaml", REQUESTS);
    let endpoint = format!("mqtt://{}:{PORT}", Bridge::address(0));
    let run = ["asked-from-afar.yaml", "--nodes", "2", "--listen", &spread.bed.listen, "--endpoint", &endpoint];
    let called = spread.bed.run(&[&run[..], &TIMES].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_relayed(&record);
    assert_count_eq!(record["requests"]["outcomes"]["answered"], 300, "{}", record["requests"]);
    assert_round_trip(&record);
    spread.end();
}

#[test]
fn a_library_that_opens_its_own_sockets_runs_inside_its_network() {
    let Some(spread) = Spread::new() else { return };
    let address = Bridge::address(0);
    let system = ["--system", "zenoh", "--system-host", &address, "--qos", "0"];
    let called = spread.start(&[&system[..], &TIMES].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert_behind_20_ms(&called.json());
    spread.end();
}

#[test]
fn a_partition_cuts_a_group_off_on_every_node() {
    let Some(spread) = Spread::new() else { return };
    let fault = ["--fault", "partition:group=sensor,at=1s,for=1s", "--qos", "0", "--duration", "4s", "--warmup", "1s"];
    let called = spread.start_at_broker(&fault).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    let row = &record["conditions"]["faults"]["faults"][0];
    assert!(row["failure"].is_null(), "{row}");
    let at = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    assert!((1.0..1.2).contains(&at("done_at_s")) && (2.0..2.2).contains(&at("ended_at_s")), "{row}");
    for group in record["conditions"]["links"]["groups"].as_array().unwrap() {
        assert_count!(group["up"]["traffic"]["lost_down"].as_u64() > Some(0), "{group}");
    }
    spread.end();
}

#[test]
fn a_relay_that_dies_on_a_node_makes_the_run_invalid() {
    let Some(spread) = Spread::new() else { return };
    let run = spread.start_at_broker(&["--duration", "4s", "--events", "events"]);
    let events = spread.bed.cluster.place.path().join("events");
    let measures =
        || std::fs::read_to_string(&events).is_ok_and(|text| text.contains(r#""phase":"measure","elapsed_s":1"#));
    wait_for("the measured window", LIMIT, measures);
    let is_relay = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.split(|byte| *byte == 0).any(|word| word == b"relay"))
    };
    let relay = family_of(spread.nodes[0].pid()).into_iter().find(is_relay).expect("a relay");
    signal(relay, libc::SIGKILL);
    let called = run.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    let record = spread.bed.cluster.place.only_record();
    assert_closed(&record);
    assert_eq!(check(&record, "V18"), "invalid", "{}", record["verdict"]);
    assert!(record["system"]["ended"].is_null(), "{}", record["system"]);
    spread.end();
}

fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_node_that_cannot_emulate_links_is_named_before_anything_starts() {
    let Some(mut spread) = Spread::new() else { return };
    let hidden = spread.nodes.remove(0);
    stop(hidden);
    let without = spread.bed.node_without_tunnels(1);
    let called = spread.start_at_broker(&TIMES).wait();
    assert_eq!(called.code(), 2, "{called:?}");
    let said = words(&called);
    assert!(
        said.contains("`edge-2` cannot emulate the links of its clients: interfaces need `/dev/net/tun`"),
        "{said}"
    );
    assert!(said.contains("`--link none`"), "{said}");
    stop(without);
    spread.end();
}

#[test]
fn an_endpoint_that_a_node_does_not_reach_is_named_with_the_node() {
    let Some(spread) = Spread::new() else { return };
    let closed = format!("mqtt://{}:9", Bridge::address(0));
    let called = spread.start(&[&["--endpoint", &closed], &TIMES[..]].concat()).wait();
    assert_eq!(called.code(), 6, "{called:?}");
    let said = words(&called);
    assert!(said.contains(&format!("could not begin: failed to connect to `{closed}`")), "{said}");
    assert!(said.contains("`edge-2`") || said.contains("`edge-3`"), "{said}");
    spread.end();
}

#[test]
fn an_endpoint_at_which_each_machine_reaches_itself_is_refused_for_nodes_elsewhere() {
    let Some(spread) = Spread::new() else { return };
    for endpoint in ["mqtt://127.0.0.1:18830", "mqtt://[::1]:18830"] {
        let called = spread.start(&[&["--endpoint", endpoint], &TIMES[..]].concat()).wait();
        assert_eq!(called.code(), 2, "{called:?}");
        let said = words(&called);
        assert!(said.contains(&format!("`{endpoint}` leads each node to its own machine")), "{said}");
        assert!(said.contains("`edge-2` at 10.99.8.2") || said.contains("`edge-3` at 10.99.8.3"), "{said}");
    }
    spread.end();
}

/// Sensors behind 20 ms each way, devices without a link, readers behind 5 ms each way.
const PEERS: &str = "\
name: far-peers
links:
  far: {delay: 20ms}
  near: {delay: 5ms}
devices:
  - {name: sensor, count: 4, every: 100ms, payload: 100B, topic: 'far/sensor/{index}', qos: 0, link: far}
  - {name: bench, count: 2, every: 100ms, payload: 100B, topic: 'far/bench/{index}', qos: 0}
subscribers:
  - {name: reader, count: 2, filters: ['far/#'], qos: 0, link: near}
";

#[test]
fn clients_without_a_broker_meet_across_the_links_of_two_nodes() {
    let Some(spread) = Spread::new() else { return };
    spread.bed.cluster.place.write("far-peers.yaml", PEERS);
    for system in ["zenoh-peers", "zeromq-peers", "dds"] {
        let run = ["far-peers.yaml", "--nodes", "2", "--listen", &spread.bed.listen, "--system", system];
        let called = spread.bed.run(&[&run[..], &TIMES].concat()).wait();
        assert!(matches!(called.code(), 0 | 5), "{system}: {called:?}");
        let record = called.json();
        assert_closed(&record);
        assert_delivered_once(&record);
        assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (360, 0), "{system}");
        // The fastest message crossed the reader's link alone, half of all a sensor's and the reader's.
        assert!(figure(&record, "upper", "min_us") >= 5_000.0, "{system}: {}", record["latency"]["total"]);
        assert!(figure(&record, "upper", "p50_us") >= 25_000.0, "{system}: {}", record["latency"]["total"]);
        assert!(names_deviation(&record, "trunked"), "{}", record["settings"]);
        assert!(!names_deviation(&record, "relayed"), "{}", record["settings"]);
        let mut groups = groups(&record);
        groups.sort_unstable();
        assert_eq!(groups, ["reader at edge-2", "reader at edge-3", "sensor at edge-2", "sensor at edge-3"]);
        let trunk = &record["conditions"]["links"]["trunk"];
        assert_count!(trunk["sent_packets"].as_u64() >= Some(180), "{trunk}");
        assert_count_eq!([&trunk["missing"], &trunk["unsent"], &trunk["refused"]], [0, 0, 0], "{trunk}");
        assert!(trunk["transit"]["count"].as_u64() > Some(0), "{trunk}");
        assert!(record["conditions"]["links"]["relay"].is_null(), "{}", record["conditions"]["links"]);
        assert!(check(&record, "V18") != "invalid", "{}", record["verdict"]);
    }
    spread.end();
}
