//! Small workloads for tests.

use std::time::Duration;

use crate::arrival::{Arrival, Phase};
use crate::churn::{CheckPhase, Churn, Leave};
use crate::fleet::{Device, Fleet};
use crate::identity::GroupIdentity;
use crate::payload::{Body, HeaderPlace, SizeDistribution};
use crate::placement::Placements;
use crate::qos::Qos;
use crate::schedule::{Cursor, Due, Rules, Timeline};
use crate::topic::{TopicFilter, TopicTemplate};
use crate::workload::{DeviceGroup, FilterPlace, MqttSettings, SessionKind, SubscriberGroup, Variant, Workload};

pub(crate) const SECOND: i64 = 1_000_000_000;

pub(crate) fn periodic(interval: Duration, phase: Phase) -> Arrival {
    Arrival::Periodic { interval, phase, jitter: Duration::ZERO }
}

pub(crate) fn group(name: &str, count: u32, arrival: Arrival) -> DeviceGroup {
    DeviceGroup {
        name: name.to_owned(),
        count,
        arrival,
        size: SizeDistribution::Uniform { min: 20, max: 2_000 },
        body: Body::Random,
        header: HeaderPlace::Payload,
        properties: vec![],
        transform: vec![],
        topic: TopicTemplate("t/{domain}/{type}/{device}".to_owned()),
        qos: Qos::AtLeastOnce,
        retain: false,
        session: SessionKind::Clean,
        churn: None,
        will: None,
        mqtt: MqttSettings::default(),
        in_flight_window: 20,
        identity: GroupIdentity::default(),
        client: None,
        link: None,
        isolate: false,
        requests: None,
        slowdown: None,
    }
}

pub(crate) fn listeners(name: &str, count: u32, filters: &[&str]) -> SubscriberGroup {
    SubscriberGroup {
        name: name.to_owned(),
        count,
        filters: filters.iter().map(|filter| TopicFilter((*filter).to_owned())).collect(),
        qos: Qos::BestEffort,
        session: SessionKind::Clean,
        identity: GroupIdentity::default(),
        client: None,
        shared: None,
        processing: Duration::ZERO,
        link: None,
        isolate: false,
        responds: None,
        predicate: None,
        filtered_at: FilterPlace::Client,
    }
}

pub(crate) fn workload(devices: Vec<DeviceGroup>, subscribers: Vec<SubscriberGroup>) -> Workload {
    Workload {
        name: "test".to_owned(),
        description: String::new(),
        source: None,
        variant: Variant::Corrected,
        has_readings: false,
        scale: 1,
        devices,
        subscribers,
        links: Vec::new(),
        faults: Vec::new(),
        objectives: vec![],
        metrics: vec![],
        placement: Placements::default(),
        deviations: Vec::new(),
        secret_parameters: vec![],
    }
}

pub(crate) fn churn(phase: CheckPhase, check_s: [f64; 2], chance: [f64; 2]) -> Churn {
    Churn {
        disconnect_check: Duration::from_secs_f64(check_s[0]),
        disconnect_chance: chance[0],
        reconnect_check: Duration::from_secs_f64(check_s[1]),
        reconnect_chance: chance[1],
        phase,
        leave: Leave::Graceful,
    }
}

/// A group of every arrival process but the flood, two of them with churn.
pub(crate) fn mixed() -> Workload {
    let mut together = group("a/aligned", 3, periodic(Duration::from_millis(500), Phase::Aligned));
    together.churn = Some(churn(CheckPhase::Together, [1.0, 1.0], [0.2, 0.5]));
    let mut jittered = group("b/jittered", 4, periodic(Duration::from_millis(300), Phase::Spread));
    jittered.arrival = Arrival::Periodic {
        interval: Duration::from_millis(300),
        phase: Phase::Spread,
        jitter: Duration::from_millis(149),
    };
    jittered.churn = Some(churn(CheckPhase::Random, [0.7, 1.1], [0.3, 0.4]));
    let on_off = Arrival::OnOff {
        interval: Duration::from_millis(100),
        mean_on: Duration::from_millis(400),
        mean_off: Duration::from_millis(900),
    };
    let trace = Arrival::Trace { offsets_ns: [5, 70, 900_000_000].into(), period: Some(Duration::from_secs(1)) };
    workload(
        vec![
            together,
            jittered,
            group("c/poisson", 5, Arrival::Poisson { rate_per_s: 7.0 }),
            group("d/on-off", 6, on_off),
            group("e/trace", 2, trace),
        ],
        vec![listeners("all", 1, &["#"])],
    )
}

pub(crate) fn timeline(warmup_s: u64, duration_s: u64) -> Timeline {
    Timeline { warmup_ns: warmup_s * 1_000_000_000, duration_ns: duration_s * 1_000_000_000 }
}

/// All messages of a device.
pub(crate) fn dues(rules: &Rules, device: &Device) -> Vec<Due> {
    let mut cursor = Cursor::new(rules, device);
    std::iter::from_fn(|| cursor.take(rules)).collect()
}

/// All due times of each of `count` devices of one group.
pub(crate) fn due_times(arrival: Arrival, count: u32, seed: u64, timeline: &Timeline) -> Vec<Vec<i64>> {
    let workload = workload(vec![group("g/h", count, arrival)], Vec::new());
    let rules = Rules::new(&workload.devices[0], seed, timeline);
    let fleet = Fleet::new(&workload, 1);
    fleet.devices().iter().map(|device| dues(&rules, device).iter().map(|due| due.due_ns).collect()).collect()
}
