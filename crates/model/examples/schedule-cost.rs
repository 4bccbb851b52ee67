//! Prints what the schedule costs: `cargo run --release -p pubmark-model --example schedule-cost`.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use pubmark_model::arrival::{Arrival, Phase};
use pubmark_model::churn::{CheckPhase, Churn, Leave};
use pubmark_model::fleet::{Device, Fleet};
use pubmark_model::identity::GroupIdentity;
use pubmark_model::payload::{Body, HeaderPlace, SizeDistribution};
use pubmark_model::placement::Placements;
use pubmark_model::qos::Qos;
use pubmark_model::schedule::{ChurnCursor, Cursor, DeviceHash, Rules, Timeline};
use pubmark_model::template::{BodyDraw, Filling, Template};
use pubmark_model::topic::{TopicFilter, TopicTemplate};
use pubmark_model::workload::{
    DeviceGroup, FilterPlace, MqttSettings, SessionKind, SubscriberGroup, Variant, Workload,
};

fn main() {
    println!("size of a cursor: {} B, of a churn cursor: {} B", size_of::<Cursor>(), size_of::<ChurnCursor>());
    let periodic = |jitter_us| Arrival::Periodic {
        interval: Duration::from_millis(1),
        phase: Phase::Spread,
        jitter: Duration::from_micros(jitter_us),
    };
    let fixed = SizeDistribution::Fixed(100);
    let normal = SizeDistribution::Normal { mean: 200.0, sd: 20.0, floor: 25 };
    let on_off = Arrival::OnOff {
        interval: Duration::from_millis(1),
        mean_on: Duration::from_millis(20),
        mean_off: Duration::from_millis(1),
    };
    let churn = Churn {
        disconnect_check: Duration::from_secs(1),
        disconnect_chance: 0.05,
        reconnect_check: Duration::from_secs(1),
        reconnect_chance: 0.8,
        phase: CheckPhase::Random,
        leave: Leave::Graceful,
    };
    take_cost("periodic, fixed size", group(periodic(0), fixed.clone(), None));
    take_cost("periodic, normal size", group(periodic(0), normal.clone(), None));
    take_cost("periodic with jitter, normal size, churn", group(periodic(100), normal.clone(), Some(churn)));
    take_cost("Poisson, fixed size", group(Arrival::Poisson { rate_per_s: 1_000.0 }, fixed.clone(), None));
    take_cost(
        "Poisson, normal size, churn",
        group(Arrival::Poisson { rate_per_s: 1_000.0 }, normal.clone(), Some(churn)),
    );
    take_cost("on-off, normal size", group(on_off, normal, None));
    template_cost();
    streams_cost("5,000 pairs", "p/{index}", 5_000, 5_000, &["p/{index}"]);
    streams_cost("5,000 pairs by wildcard", "p/{index}/x", 5_000, 5_000, &["p/{index}/+"]);
    streams_cost("10,000 publishers, 5 wildcard subscribers", "p/{index}", 10_000, 5, &["p/+", "#"]);
}

/// A message of a sensor: eight fields.
fn template_cost() {
    const TEXT: &str = r#"{"device": "{{device}}", "n": {{counter}}, "at": "{{timestamp}}", "temperature": {{normal 21 0.5}},
        "humidity": {{uniform 30 60}}, "state": "{{enum on off standby}}", "id": "{{string 12}}", "alarm": {{bool 0.01}}}"#;
    const MESSAGES: u32 = 1_000_000;
    let template = Template::parse(TEXT).expect("a template");
    let mut out = Vec::new();
    let begin = Instant::now();
    for number in 0..MESSAGES {
        out.clear();
        let draw = BodyDraw { key: 7, number };
        template.append(&Filling { draw, device: "0-17", due_unix_ns: u64::from(number) }, &mut out);
        black_box(&out);
    }
    let each = begin.elapsed() / MESSAGES;
    let begin = Instant::now();
    for number in 0..MESSAGES {
        black_box(template.bytes(BodyDraw { key: 7, number }, 4));
    }
    println!("body of 8 fields, {} B: {each:?} a message, its size alone {:?}", out.len(), begin.elapsed() / MESSAGES);
}

fn group(arrival: Arrival, size: SizeDistribution, churn: Option<Churn>) -> DeviceGroup {
    DeviceGroup {
        name: "cost/device".to_owned(),
        count: 1,
        arrival,
        size,
        body: Body::Random,
        header: HeaderPlace::Payload,
        properties: vec![],
        transform: vec![],
        topic: TopicTemplate("t".to_owned()),
        qos: Qos::BestEffort,
        retain: false,
        session: SessionKind::Clean,
        churn,
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

/// ns per message: for drawing it, and for drawing and hashing it. The median of chunks that are shorter than a time slice,
/// because the machine is shared.
fn take_cost(name: &str, group: DeviceGroup) {
    let timeline = Timeline { warmup_ns: 0, duration_ns: 1_000_000_000_000 };
    let rules = Rules::new(&group, 1, &timeline);
    let device = Device { publisher: 0, group: 0, copy: 0, index: 0, ..Device::default() };
    let median_ns = |hashing: bool| {
        let mut cursor = Cursor::new(&rules, &device);
        let mut hash = DeviceHash::new(&rules, &device, true);
        let mut chunks: Vec<f64> =
            (0..80).map(|_| chunk_ns(&mut cursor, &rules, hashing.then_some(&mut hash))).collect();
        chunks.sort_unstable_by(f64::total_cmp);
        chunks[chunks.len() / 2]
    };
    println!("{name}: {:.1} ns a message, {:.1} ns with hash", median_ns(false), median_ns(true));
}

fn chunk_ns(cursor: &mut Cursor, rules: &Rules, mut hash: Option<&mut DeviceHash>) -> f64 {
    const MESSAGES: u32 = 10_000;
    let begin = Instant::now();
    for _ in 0..MESSAGES {
        let Some(due) = cursor.take(rules) else { panic!("the timeline holds 800,000 messages") };
        match &mut hash {
            Some(hash) => hash.add_due(&due),
            None => {
                black_box(due);
            }
        }
    }
    begin.elapsed().as_nanos() as f64 / f64::from(MESSAGES)
}

fn streams_cost(name: &str, topic: &str, publishers: u32, subscribers: u32, filters: &[&str]) {
    let mut devices = group(Arrival::Flood, SizeDistribution::Fixed(16), None);
    devices.count = publishers;
    devices.topic = TopicTemplate(topic.to_owned());
    let listeners = SubscriberGroup {
        name: "listeners".to_owned(),
        count: subscribers,
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
    };
    let workload = Workload {
        name: "cost".to_owned(),
        description: String::new(),
        source: None,
        variant: Variant::Corrected,
        has_readings: false,
        scale: 1,
        devices: vec![devices],
        subscribers: vec![listeners],
        links: Vec::new(),
        faults: Vec::new(),
        objectives: vec![],
        metrics: vec![],
        placement: Placements::default(),
        deviations: Vec::new(),
        secret_parameters: vec![],
    };
    let begin = Instant::now();
    let streams: usize = Fleet::new(&workload, 1).streams(&workload).iter().map(|heard| heard.len()).sum();
    println!("{name}: {streams} streams in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
}
