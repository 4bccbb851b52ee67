//! Short and full forms have the same meaning.

use std::time::Duration;

use pubmark_model::arrival::{Arrival, Phase};
use pubmark_model::churn::{CheckPhase, Leave};
use pubmark_model::payload::{Body, SizeDistribution};
use pubmark_model::placement::Placement;
use pubmark_model::qos::Qos;
use pubmark_model::workload::{SessionKind, Variant};
use pubmark_model::{listing, load};

use super::{group, read, variant};

fn arrival(lines: &str) -> Arrival {
    read(&group(&format!("{lines}\npayload: 100B"))).unwrap().devices[0].arrival.clone()
}

fn size(payload: &str) -> SizeDistribution {
    read(&group(&format!("every: 1s\npayload: {payload}"))).unwrap().devices[0].size.clone()
}

#[test]
fn arrivals() {
    let periodic = |ms, phase, jitter_ms| Arrival::Periodic {
        interval: Duration::from_millis(ms),
        phase,
        jitter: Duration::from_millis(jitter_ms),
    };
    assert_eq!(arrival("every: 5s"), periodic(5000, Phase::Spread, 0));
    assert_eq!(arrival("rate: 10/s"), periodic(100, Phase::Spread, 0));
    assert_eq!(arrival("rate: 30/min\nphase: aligned\njitter: 10ms"), periodic(2000, Phase::Aligned, 10));
    assert_eq!(arrival("rate: 10/s\narrival: poisson"), Arrival::Poisson { rate_per_s: 10.0 });
    assert_eq!(arrival("every: 100ms\narrival: poisson"), Arrival::Poisson { rate_per_s: 10.0 });
    assert_eq!(arrival("arrival: flood"), Arrival::Flood);
    assert_eq!(
        arrival("every: 100ms\narrival: {on: 5s, off: 20s}"),
        Arrival::OnOff {
            interval: Duration::from_millis(100),
            mean_on: Duration::from_secs(5),
            mean_off: Duration::from_secs(20)
        }
    );
    assert_eq!(
        arrival("arrival: {trace: [0s, 1s, 1s, 1.5s], repeat: 10s}"),
        Arrival::Trace {
            offsets_ns: [0, 1_000_000_000, 1_000_000_000, 1_500_000_000].into(),
            period: Some(Duration::from_secs(10))
        }
    );
}

#[test]
fn sizes() {
    assert_eq!(size("1KB"), SizeDistribution::Fixed(1000));
    assert_eq!(size("100"), SizeDistribution::Fixed(100));
    assert_eq!(size("{mean: 200B, sd: 10%}"), SizeDistribution::Normal { mean: 200.0, sd: 20.0, floor: 0 });
    assert_eq!(
        size("{mean: 200.5B, variance: 16, floor: 25B}"),
        SizeDistribution::Normal { mean: 200.5, sd: 4.0, floor: 25 }
    );
    assert_eq!(
        size("{mean: 1KB, sd: 200B, shape: lognormal}"),
        SizeDistribution::Lognormal { mean: 1000.0, sd: 200.0 }
    );
    assert_eq!(size("{min: 16B, max: 1KiB}"), SizeDistribution::Uniform { min: 16, max: 1024 });
    assert_eq!(size("{sizes: [20B, 30B, 30B]}"), SizeDistribution::Empirical([20, 30, 30].into()));
}

#[test]
fn the_other_fields() {
    let text = group(
        "every: 1s\npayload: 100B\nqos: 2\nretain: true\nsession: persistent\nin_flight_window: 5\n\
         topic: \"{workload}/{group}/{index}\"\nbody: {json: '{\"t\": 1}'}\ncredentials: {user: u, password: p}\n\
         churn: {disconnect: 5% every 1s, reconnect: 0.8 every 2s, checks: together, leave: cut}",
    );
    let group = read(&text).unwrap().devices.remove(0);
    assert_eq!((group.qos, group.retain, group.session), (Qos::ExactlyOnce, true, SessionKind::Persistent));
    assert_eq!((group.in_flight_window, group.topic.0.as_str()), (5, "{workload}/{group}/{index}"));
    assert_eq!(group.body, Body::Json("{\"t\": 1}".into()));
    assert_eq!(group.identity.credentials.unwrap().user, "u");
    let churn = group.churn.unwrap();
    assert_eq!((churn.disconnect_chance, churn.reconnect_chance), (0.05, 0.8));
    assert_eq!((churn.disconnect_check, churn.reconnect_check), (Duration::from_secs(1), Duration::from_secs(2)));
    assert_eq!((churn.phase, churn.leave), (CheckPhase::Together, Leave::Cut));
}

#[test]
fn groups_take_from_their_type_and_the_defaults() {
    let workload = read(
        "name: t
defaults: {qos: 1, every: 1s, topic: x, churn: {disconnect: 5% every 1s, reconnect: 80% every 1s}}
device_types:
  d/slow: {every: 10s, payload: 10B}
  d/fast: {rate: 10/s, payload: 20B, churn: none}
devices:
  - {type: d/slow, count: 2}
  - {type: d/fast}
  - {name: own, type: d/fast, qos: 0, every: 2s}
  - {name: flood, payload: 30B, arrival: flood}
subscribers: []
",
    )
    .unwrap();
    let rates: Vec<_> = workload.devices.iter().map(|group| group.arrival.mean_rate_per_s()).collect();
    assert_eq!(rates, [Some(0.1), Some(10.0), Some(0.5), None]);
    let levels: Vec<_> = workload.devices.iter().map(|group| group.qos.level()).collect();
    assert_eq!(levels, [1, 1, 0, 1]);
    let churn: Vec<_> = workload.devices.iter().map(|group| group.churn.is_some()).collect();
    assert_eq!(churn, [true, false, false, true]);
    assert_eq!(workload.devices[2].name, "own");
    assert_eq!(workload.deviations.len(), 1, "10 B is below the header: {:?}", workload.deviations);
}

#[test]
fn a_group_that_is_not_periodic_takes_out_the_jitter_of_its_type() {
    let with = |own: &str| {
        read(&format!(
            "name: t\ndevice_types: {{d/a: {{every: 500ms, payload: 80B, jitter: 10ms}}}}\n\
             devices: [{{type: d/a, arrival: poisson{own}}}]\nsubscribers: []\n"
        ))
    };
    assert_eq!(with(", jitter: null").unwrap().devices[0].arrival, Arrival::Poisson { rate_per_s: 2.0 });
    assert!(with("").is_err());
}

#[test]
fn the_published_reading_replaces_fields_and_a_null_takes_one_out() {
    let text = "name: t
defaults: {phase: spread}
device_types: {d/a: {every: 1s, payload: {mean: 100B, sd: 10%}, jitter: 100ms}}
devices: [{type: d/a, count: 5}]
subscribers: [{name: all, filters: '#'}]
published:
  defaults: {phase: aligned}
  device_types: {d/a: {rate: 2/s, payload: {mean: 100B, variance: 4}, jitter: null}}
  devices: {d/a: {count: 7}}
  subscribers: {all: {filters: [a, b]}}
  placement: {devices: replicate, subscribers: every-node}
";
    let corrected = load::parse("t", text, &variant(Variant::Corrected)).unwrap();
    let published = load::parse("t", text, &variant(Variant::Published)).unwrap();
    assert_eq!((corrected.devices[0].count, published.devices[0].count), (5, 7));
    assert_eq!(corrected.placement.devices, Placement::Split);
    let placement = &published.placement;
    assert_eq!((&placement.devices, &placement.subscribers), (&Placement::Replicate, &Placement::Replicate));
    assert_eq!(published.subscribers[0].filters.len(), 2);
    let interval = Duration::from_millis(500);
    let aligned = Arrival::Periodic { interval, phase: Phase::Aligned, jitter: Duration::ZERO };
    assert_eq!(published.devices[0].arrival, aligned);
    assert_eq!(published.devices[0].size, SizeDistribution::Normal { mean: 100.0, sd: 2.0, floor: 0 });
    assert!(published.deviations.is_empty());
}

#[test]
fn anchors_and_merge_keys_work() {
    let workload = read(
        "name: t
devices:
  - &a {name: a, every: 1s, payload: 100B}
  - {<<: *a, name: b, count: 2}
subscribers: [{filters: '#'}]
",
    )
    .unwrap();
    assert_eq!((workload.devices[1].name.as_str(), workload.devices[1].count), ("b", 2));
    assert_eq!(workload.devices[0].arrival, workload.devices[1].arrival);
}

#[test]
fn small_sizes_are_named() {
    let deviations = |payload: &str| read(&group(&format!("every: 1s\npayload: {payload}"))).unwrap().deviations;
    assert!(deviations("16B").is_empty());
    let raised = deviations("11B");
    assert_eq!(raised[0].name, "payload-raised-to-header");
    assert!(raised[0].detail.contains("11 B") && raised[0].detail.contains("16 B"), "{}", raised[0].detail);
    assert!(deviations("{min: 1B, max: 30B}")[0].detail.contains("50.00 %"));
    assert!(deviations("{sizes: [8B, 20B, 20B, 20B]}")[0].detail.contains("25.00 %"));
    assert!(deviations("{mean: 16B, sd: 1B}")[0].detail.contains("50.00 %"));
    assert!(deviations("{mean: 10B, sd: 1B, floor: 16B}").is_empty());
    assert!(deviations("{mean: 100B, sd: 10B}").is_empty());
}

#[test]
fn every_builtin_loads_in_both_readings_and_is_listed() {
    let listed = listing::list().unwrap();
    assert_eq!(listed.len(), 19);
    for row in &listed {
        for reading in [Variant::Corrected, Variant::Published] {
            let workload = load::load(row.name, &variant(reading)).unwrap();
            assert_eq!(workload.name, row.name);
            assert_eq!(workload.variant, reading);
            let unpublished = workload.deviations.iter().any(|deviation| deviation.name == "no-published-reading");
            assert_eq!(unpublished, reading == Variant::Published && row.variants.len() == 1, "{}", row.name);
        }
        assert!(!row.description.is_empty());
    }
    let hello = listed.iter().find(|row| row.name == "hello").unwrap();
    assert_eq!((hello.devices, hello.subscribers), (1, 1));
    let hello = load::load("hello", &Default::default()).unwrap();
    assert_eq!(hello.devices[0].size, SizeDistribution::Fixed(11));
    assert_eq!(hello.deviations[0].name, "payload-raised-to-header");
}

#[test]
fn a_profile_and_states_are_read() {
    let arrival = |lines: &str| read(&group(&format!("payload: 100B\n{lines}"))).unwrap().devices[0].arrival.clone();
    let profiled = arrival("rate: 2/s\nprofile: {day: 60s, start: '06:00', curve: {'00:00': 0.5, '12:00': 1.5}}");
    let Arrival::Profiled { base, profile } = &profiled else { panic!("{profiled:?}") };
    assert!(matches!(**base, Arrival::Periodic { .. }), "{base:?}");
    assert_eq!((profile.day, profile.peak()), (Duration::from_secs(60), 1.5));
    assert_eq!(profiled.mean_rate_per_s(), Some(2.0));
    assert_eq!(profiled.highest_rate_per_s(), Some(3.0));
    // From 06:00 to noon, a quarter of the day.
    assert_eq!(profiled.mean_rate_within(Duration::from_secs(5), Duration::from_secs(15)), Some(2.5));
    let states = arrival(
        "arrival: {states: [{name: idle, rate: 0/s, for: exponential 30s}, {name: active, rate: 10/s, for: 10s}]}",
    );
    assert!((states.mean_rate_per_s().unwrap() - 2.5).abs() < 1e-9, "{states:?}");
    let none = "name: t
defaults: {every: 1s, payload: 16B, profile: {curve: {'08:00': 2}}}
devices: [{name: a}, {name: b, profile: none}]
subscribers: []
";
    let workload = read(none).unwrap();
    let rates: Vec<_> = workload.devices.iter().map(|group| group.arrival.mean_rate_per_s()).collect();
    assert_eq!(rates, [Some(2.0), Some(1.0)]);
}
