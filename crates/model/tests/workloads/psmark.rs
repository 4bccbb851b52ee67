//! The PSMark workloads compared with PSMark's files and Table II of its paper; see `data/README.md`.

use std::collections::HashMap;
use std::time::Duration;

use pubmark_model::arrival::{Arrival, Phase};
use pubmark_model::churn::{CheckPhase, Leave};
use pubmark_model::listing::messages_per_s;
use pubmark_model::load;
use pubmark_model::payload::SizeDistribution;
use pubmark_model::placement::Placement;
use pubmark_model::workload::{DeviceGroup, Variant, Workload};

use super::variant;

const DEVICES: &str = include_str!("../../data/psmark_devices.csv");
const WORKLOADS: &str = include_str!("../../data/psmark_workloads.csv");
const TABLE_2: &str = include_str!("../../data/psmark_table2.csv");

type Row = HashMap<&'static str, &'static str>;

fn rows(csv: &'static str) -> Vec<Row> {
    let mut lines = csv.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    lines.map(|line| header.iter().copied().zip(line.split(',')).collect()).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

fn load_both(name: &str) -> (Workload, Workload) {
    let load = |reading| load::load(name, &variant(reading)).unwrap();
    (load(Variant::Corrected), load(Variant::Published))
}

/// Our name of one of PSMark's workloads; also checks that PSMark's name is an alias of it.
fn ours(psmark: &str) -> String {
    let name = load::load(psmark, &Default::default()).unwrap().name;
    let scale = psmark.rsplit_once('-').map_or("", |(_, last)| last);
    assert_eq!(name.ends_with("x"), scale.ends_with('x'), "{psmark} is {name}");
    name
}

fn group<'a>(workload: &'a Workload, row: &Row) -> &'a DeviceGroup {
    let name = format!("{}/{}", row["domain"].replace('_', "-"), row["device_type"]);
    workload
        .devices
        .iter()
        .find(|group| group.name == name)
        .unwrap_or_else(|| panic!("{name} is not in {}", workload.name))
}

fn devices(workload: &Workload) -> u32 {
    workload.devices.iter().map(|group| group.count).sum()
}

fn interval_ms(group: &DeviceGroup) -> f64 {
    1000.0 / group.arrival.mean_rate_per_s().unwrap()
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}

fn collides(row: &Row) -> bool {
    row["domain"] == "smart_city" && row["device_type"] == "temperature_sensor"
}

#[test]
fn every_row_of_every_deployment_is_there() {
    let rows = rows(WORKLOADS);
    assert_eq!(rows.len(), 150);
    let mut counted: HashMap<String, usize> = HashMap::new();
    for row in &rows {
        let (corrected, published) = load_both(&ours(row["workload"]));
        for workload in [&corrected, &published] {
            assert_eq!(f64::from(group(workload, row).count), number(row, "devices_per_node"), "{row:?}");
        }
        near(interval_ms(group(&published, row)), number(row, "publish_interval_ms_as_loaded"), 1e-6);
        let cut_to_a_second = row["device_type"] == "vibration_sensor";
        let meant = if cut_to_a_second { 1000.0 } else { number(row, "publish_interval_ms") };
        near(interval_ms(group(&corrected, row)), meant, 1e-6);
        *counted.entry(corrected.name.clone()).or_default() += 1;
        let of_workload = rows.iter().filter(|other| other["workload"] == row["workload"]).count();
        assert_eq!(corrected.devices.len(), of_workload, "{} has groups that PSMark has not", corrected.name);
    }
    assert_eq!(counted.len(), 12);
}

#[test]
fn device_counts_and_churn_are_those_of_table_2() {
    let rows = rows(TABLE_2);
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let (corrected, published) = load_both(&ours(row["workload"]));
        assert_eq!(f64::from(devices(&corrected)), number(row, "devices"));
        assert_eq!(f64::from(devices(&published)), number(row, "devices"));
        for churn in corrected.devices.iter().map(|group| group.churn.unwrap()) {
            assert_eq!(churn.disconnect_chance, number(row, "disconnect_chance"));
            assert_eq!(churn.reconnect_chance, number(row, "reconnect_chance"));
            assert_eq!(churn.disconnect_check.as_secs_f64(), number(row, "disconnect_check_s"));
            assert_eq!(churn.reconnect_check.as_secs_f64(), number(row, "reconnect_check_s"));
        }
    }
}

#[test]
fn rates_are_those_of_the_files_and_near_those_of_the_paper() {
    // For each workload: the corrected variant, the published variant, and the figure of Table II.
    for (name, corrected_rate, published_rate, table_2) in [
        ("smart-city", 108.20, 157.53, 109.0),
        ("smart-factory", 590.0, 584.10, 590.0),
        ("smart-healthcare", 4.8, 4.8, 5.0),
        ("smart-home", 147.71, 147.71, 148.0),
    ] {
        for (suffix, scale) in [("", 1.0), ("-2x", 2.0), ("-10x", 10.0)] {
            let (corrected, published) = load_both(&format!("{name}{suffix}"));
            near(messages_per_s(&corrected).unwrap(), corrected_rate * scale, 0.005 * scale);
            near(messages_per_s(&published).unwrap(), published_rate * scale, 0.005 * scale);
            // Table II rounds up to a whole message and multiplies the result.
            near(messages_per_s(&corrected).unwrap(), table_2 * scale, scale);
        }
    }
    for row in rows(TABLE_2) {
        let (corrected, _) = load_both(&ours(row["workload"]));
        near(messages_per_s(&corrected).unwrap() / number(&row, "msgs_per_s"), 1.0, 0.041);
    }
    let as_loaded: f64 = rows(WORKLOADS)
        .iter()
        .filter(|row| row["workload"] == "PSMark-C")
        .map(|row| number(row, "max_msgs_per_s_per_node_as_loaded"))
        .sum();
    near(messages_per_s(&load_both("smart-city").1).unwrap(), as_loaded, 1e-4);
}

#[test]
fn sizes_and_churn_are_those_of_the_device_files() {
    let types: HashMap<_, _> =
        rows(DEVICES).into_iter().map(|row| ((row["domain"], row["device_type"]), row)).collect();
    assert_eq!(types.len(), 52);
    for row in rows(WORKLOADS) {
        let (corrected, published) = load_both(&ours(row["workload"]));
        let own = &types[&(row["domain"], row["device_type"])];
        let loaded = if collides(&row) { &types[&("smart_home", "temperature_sensor")] } else { own };
        let mean = number(own, "payload_mean_bytes");
        assert_eq!(group(&corrected, &row).size, SizeDistribution::Normal { mean, sd: mean * 0.1, floor: 0 });
        let SizeDistribution::Normal { mean, sd, floor } = group(&published, &row).size else { panic!("not normal") };
        assert_eq!((mean, floor), (number(loaded, "payload_mean_bytes"), 25));
        near(sd, number(loaded, "payload_sd_bytes"), 0.0005);
        for (workload, file, phase) in
            [(&corrected, own, CheckPhase::Random), (&published, loaded, CheckPhase::Together)]
        {
            let churn = group(workload, &row).churn.unwrap();
            let ms = |column| Duration::from_millis(number(file, column) as u64);
            assert_eq!(churn.disconnect_chance, number(file, "disconnect_chance"));
            assert_eq!(churn.reconnect_chance, number(file, "reconnect_chance"));
            assert_eq!(churn.disconnect_check, ms("disconnect_check_period_ms"));
            assert_eq!(churn.reconnect_check, ms("reconnect_check_period_ms"));
            assert_eq!((churn.phase, churn.leave), (phase, Leave::Graceful));
        }
    }
}

#[test]
fn availability_follows_the_closed_forms() {
    for (name, published_share, corrected_share) in [
        ("smart-city", 0.833, 0.750),
        ("smart-factory", 0.988, 0.963),
        ("smart-healthcare", 0.976, 0.927),
        ("smart-home", 0.988, 0.963),
    ] {
        let (corrected, published) = load_both(name);
        for (workload, share) in [(&corrected, corrected_share), (&published, published_share)] {
            for group in &workload.devices {
                let collided = workload.variant == Variant::Published && group.name == "smart-city/temperature_sensor";
                near(group.churn.unwrap().availability(), if collided { 0.988 } else { share }, 0.0006);
            }
        }
    }
}

#[test]
fn the_two_readings_differ_as_documented() {
    for name in ["smart-city", "smart-factory-2x", "smart-healthcare-10x", "smart-home"] {
        let (corrected, published) = load_both(name);
        let filters: Vec<_> = published.subscribers[0].filters.iter().map(|filter| filter.0.as_str()).collect();
        assert_eq!(filters, ["psmark/device/qos_0/#", "psmark/device/qos_1/#", "psmark/device/qos_2/#"]);
        assert_eq!((published.subscribers.len(), published.subscribers[0].count), (1, 1));
        let [made, meant] = [&published.placement, &corrected.placement];
        assert_eq!((&made.devices, &meant.devices), (&Placement::Replicate, &Placement::Split));
        assert_eq!((&made.subscribers, &meant.subscribers), (&Placement::Replicate, &Placement::Replicate));
        for (meant, made) in corrected.devices.iter().zip(&published.devices) {
            assert_eq!(meant.name, made.name);
            assert_eq!(made.topic.0, "psmark/device/qos_{qos}/{type}");
            assert_eq!(meant.topic.0, "psmark/{domain}/{type}/{device}");
            assert_eq!((made.in_flight_window, meant.in_flight_window), (1, 20));
            assert!(matches!(made.arrival, Arrival::Periodic { phase: Phase::Aligned, .. }));
            assert!(matches!(meant.arrival, Arrival::Periodic { phase: Phase::Spread, .. }));
        }
    }
}
