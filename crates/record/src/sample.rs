//! An invented record for tests: consistent, but with invented figures. Never part of a release.

use std::collections::BTreeMap;

use pubmark_model::qos::Qos;
use pubmark_model::workload::Variant;

use crate::conditions::RunConditions;
use crate::content::{ContentRow, FilterPlace};
use crate::cost::{ResourceRow, Usage};
use crate::custom::{CustomBounds, CustomMetric};
use crate::latency_bin::LatencyBin;
use crate::record::*;
use crate::tables::{PairRow, SeriesLatency, SeriesQuantiles, SeriesRow, Tables, TypeRow};
use crate::transform::{StepUse, TransformRow};
use crate::verdict::assess;

/// A distribution whose value at fraction `q` is `median_us · (0.5 / (1 − q))^tail`: its median is `median_us`, and its
/// tail follows a power law.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Median, µs.
    pub median_us: f64,
    /// Exponent of the tail, > 0.
    pub tail: f64,
    /// Number of samples.
    pub count: u64,
}

impl Shape {
    /// Value at a fraction of the samples; the largest sample is the value at `1 − 0.5 / count`.
    pub fn value_us(&self, fraction: f64) -> f64 {
        let beyond = f64::max(1.0 - fraction, 0.5 / self.count.max(1) as f64);
        self.median_us * (0.5 / beyond).powf(self.tail)
    }

    /// Summary of the distribution, without percentiles that have fewer than 10 samples beyond them.
    pub fn summary(&self) -> Summary {
        let at = |fraction: f64| {
            let beyond = (1.0 - fraction).min(fraction) * self.count as f64;
            (beyond >= 10.0 - 1e-6).then(|| self.value_us(fraction))
        };
        Summary {
            count: self.count,
            mean: self.median_us * 1.1,
            stddev: self.median_us * 0.5,
            min: self.value_us(0.0),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.value_us(1.0),
            negative: 0,
            clipped: 0,
        }
    }

    /// The distribution as a latency, of which up to a fifth may be caused by the generator.
    pub fn bounds(&self) -> LatencyBounds {
        LatencyBounds { upper: self.summary(), lower: Some(self.lower().summary()) }
    }

    /// Distribution of the lower bounds.
    pub fn lower(&self) -> Shape {
        Shape { median_us: self.median_us * 0.8, ..*self }
    }

    /// The samples as a bin of one second.
    pub fn latency_bin(&self, t_s: f64) -> LatencyBin {
        let values = (0..self.count).map(|sample| (self.value_us((sample as f64 + 0.5) / self.count as f64), 1));
        LatencyBin::of(t_s, 1.0, values)
    }

    /// Percentile curve of the distribution.
    pub fn curve(&self, name: &str) -> Curve {
        let nines = (self.count.max(1) as f64).log10();
        let steps = 120;
        let mut points: Vec<(f64, f64)> = (0..steps)
            .map(|step| 1.0 - 10f64.powf(-nines * f64::from(step) / f64::from(steps)))
            .map(|fraction| (fraction, self.value_us(fraction)))
            .collect();
        points.push((1.0, self.value_us(1.0)));
        Curve { name: name.to_string(), points, count: self.count }
    }
}

/// Device types of the sample: name, devices, messages per thousand.
const TYPES: [(&str, u64, u64); 5] = [
    ("smart_home/temperature_sensor", 60, 300),
    ("smart_home/motion_sensor", 50, 250),
    ("smart_home/smart_meter", 40, 200),
    ("smart_home/camera_event", 30, 150),
    ("smart_home/door_lock", 20, 100),
];

/// Ten seconds of an invented smart home on the built-in broker: 10,000 messages, all delivered, valid.
pub fn record() -> Record {
    let latency = Shape { median_us: 310.0, tail: 0.255, count: 10_000 };
    let service = Shape { median_us: 298.0, tail: 0.250, count: 10_000 };
    let lag = Shape { median_us: 8.0, tail: 0.35, count: 10_000 };
    let lateness = Shape { median_us: 12.0, tail: 0.30, count: 10_000 };
    let wait = Shape { median_us: 4.0, tail: 0.3, count: 10_000 };
    let mut record = Record {
        schema_version: SCHEMA_VERSION,
        run: RunInfo {
            name: "20260301-090507-smart-home".to_string(),
            id: 7,
            repetition: 1,
            repetitions: 1,
            started_at: "2026-03-01T09:05:10Z".to_string(),
            status: Status::Complete,
            pubmark_version: "0.1.0".to_string(),
            command: ["pubmark", "demo"].map(String::from).to_vec(),
            files: BTreeMap::from([("latency".to_string(), "latency.hgrm".to_string())]),
        },
        verdict: Verdict::default(),
        objectives: vec![],
        workload: workload(),
        system: system(),
        protocol: ProtocolInfo {
            publish: "mqtt5".to_string(),
            subscribe: "mqtt5".to_string(),
            sent_means: SentMeans::Wire,
            read_by_library: Some(false),
            delivery_window: None,
        },
        settings: settings(),
        connections: Connections {
            attempted: 201,
            established: 201,
            connect_time: Some(Shape { median_us: 420.0, tail: 0.3, count: 201 }.summary()),
            ..Connections::default()
        },
        delivery: DeliveryFigures {
            messages: all_delivered(10_000),
            at_end: LeftAtEnd {
                system_unsent_bytes: Some(0),
                system_unread_bytes: Some(0),
                system_drain_wait_ns: Some(0),
                ..LeftAtEnd::default()
            },
            ..DeliveryFigures::default()
        },
        latency: LatencyFigures {
            total: Some(latency.bounds()),
            service: Some(service.bounds()),
            scheduler_lag: Some(lag.summary()),
            backpressure: Some(wait.summary()),
            receive_lateness: Some(lateness.summary()),
            kernel_receive_lateness: Some(Shape { median_us: 9.0, ..lateness }.summary()),
            ..LatencyFigures::default()
        },
        throughput: throughput(),
        cost: cost(),
        requests: None,
        conditions: RunConditions::default(),
        message_log: None,
        custom: vec![],
        tables: tables(latency, service),
        environment: environment(),
    };
    assess(&mut record);
    record
}

fn throughput() -> Throughput {
    Throughput {
        offered_per_s: 1_000.0,
        sent_per_s: 1_000.0,
        delivered_per_s: 999.8,
        payload_bytes_per_s: 96_400.0,
        windows_1s: Some(Windows {
            min: 982.0,
            median: 1_000.0,
            max: 1_018.0,
            p90: 1_011.0,
            p95: 1_014.0,
            p99: 1_018.0,
        }),
    }
}

fn cost() -> Cost {
    Cost {
        system: Some(Usage { cpu_seconds: 0.62, cores: 0.062, peak_rss_bytes: 14_300_000, ..Usage::default() }),
        generator: Some(Usage { cpu_seconds: 0.91, cores: 0.091, peak_rss_bytes: 21_700_000, ..Usage::default() }),
        system_cpu_s_per_million: Some(62.0),
        generator_cpu_s_per_million: Some(91.0),
        threads: [("publisher 0", Side::Devices, 0.051, 200), ("subscriber 0", Side::Subscribers, 0.033, 1)]
            .map(|(name, side, cores, sessions)| ShardHealth {
                name: name.to_string(),
                side,
                cores: Some(cores),
                sessions,
                wakeups: Some(9_400),
                quantum_us: None,
                ordinary_share: None,
            })
            .to_vec(),
        ..Cost::default()
    }
}

fn tables(latency: Shape, service: Shape) -> Tables {
    Tables {
        by_type: TYPES
            .iter()
            .map(|(name, devices, thousandths)| type_row(name, *devices, thousandths * 10, latency))
            .collect(),
        by_pair: vec![PairRow {
            publisher_node: "local".to_string(),
            subscriber_node: "local".to_string(),
            expected: 10_000,
            delivered: 10_000,
            lost: 0,
            silent_pairs: Some(0),
            latency: Some(latency.bounds()),
            clock_bound_us: Some(0.0),
        }],
        series: (-2..10).map(|second| series_row(second, latency)).collect(),
        latency_bins: (-2..10).map(|second| bin_of(second, latency).latency_bin(f64::from(second))).collect(),
        resource_series: (1..=40).map(|quarter| resource_row(f64::from(quarter) * 0.25)).collect(),
        curves: [("latency", latency), ("latency_lower", latency.lower()), ("service_latency", service)]
            .map(|(name, shape)| shape.curve(name))
            .to_vec(),
        ..Tables::default()
    }
}

/// A step of `transform`.
pub fn transform() -> TransformRow {
    TransformRow {
        group: "sensor".to_string(),
        step: "compress zstd 3".to_string(),
        publishing: StepUse { messages: 10_000, cpu_s: 0.041, bytes_before: 964_000, bytes_after: 443_440 },
        receiving: StepUse { messages: 10_000, cpu_s: 0.012, bytes_before: 443_440, bytes_after: 964_000 },
        failed: 0,
    }
}

/// Counts for messages that were all sent once and delivered once.
pub fn all_delivered(messages: u64) -> Delivery {
    Delivery { offered: messages, sent: messages, expected: messages, delivered: messages, ..Delivery::default() }
}

fn type_row(name: &str, devices: u64, messages: u64, latency: Shape) -> TypeRow {
    // Types with more devices get a lower latency, so that rows differ.
    let latency = Shape { count: messages, median_us: latency.median_us * (1.5 - devices as f64 / 100.0), ..latency };
    TypeRow {
        name: name.to_string(),
        devices,
        delivery: all_delivered(messages),
        latency: Some(latency.bounds()),
        service_latency: Some(Shape { median_us: latency.median_us * 0.96, ..latency }.bounds()),
        backpressure: Some(Shape { median_us: 4.0, tail: 0.3, count: messages }.summary()),
        availability: None,
    }
}

fn wobble_of(second: i32) -> f64 {
    f64::from((second * 7).rem_euclid(5)) / 5.0
}

/// Latencies of one second.
fn bin_of(second: i32, latency: Shape) -> Shape {
    Shape { median_us: latency.median_us * (0.9 + 0.2 * wobble_of(second)), count: 1_000, ..latency }
}

fn series_row(second: i32, latency: Shape) -> SeriesRow {
    let wobble = wobble_of(second);
    let bin = bin_of(second, latency);
    let quantiles = |bin: Shape| SeriesQuantiles {
        p50_us: Some(bin.value_us(0.5)),
        p50_width_s: Some(1.0),
        p99_us: Some(bin.value_us(0.99)),
        p99_width_s: Some(1.0),
        max_us: Some(bin.value_us(1.0) * (1.0 + wobble)),
    };
    SeriesRow {
        t_s: f64::from(second),
        width_s: 1.0,
        offered: 1_000,
        sent: 1_000,
        delivered: 990 + (wobble * 20.0) as u64,
        delivered_bytes: 96_400,
        latency: SeriesLatency { upper: quantiles(bin), lower: Some(quantiles(bin.lower())) },
        max_scheduler_lag_us: Some(90.0 + 60.0 * wobble),
    }
}

fn resource_row(t_s: f64) -> ResourceRow {
    let wobble = (t_s * 1.7).sin();
    ResourceRow {
        t_s,
        system_cores: Some(0.062 + 0.01 * wobble),
        system_rss_bytes: Some(14_000_000 + (t_s * 30_000.0) as u64),
        generator_cores: Some(0.091 - 0.012 * wobble),
        generator_rss_bytes: Some(21_600_000),
        ..ResourceRow::default()
    }
}

fn workload() -> WorkloadInfo {
    WorkloadInfo {
        name: "smart-home".to_string(),
        variant: Variant::Corrected,
        has_readings: true,
        scale: 1,
        seed: 42,
        schedule_hash: "5f3a9c0de1b74826".to_string(),
        scheduled: None,
        devices: 200,
        subscribers: 1,
        topics: 19,
        source: Some("made up for tests".to_string()),
        qos: vec![Qos::AtLeastOnce],
        group_settings: BTreeMap::new(),
    }
}

fn system() -> SystemInfo {
    SystemInfo {
        name: "builtin".to_string(),
        version: Some("0.1.0".to_string()),
        back_end: BackEndKind::Builtin,
        profile: Some("default".to_string()),
        endpoint: "mqtt://127.0.0.1:18830".to_string(),
        ranked: false,
        ..SystemInfo::default()
    }
}

fn settings() -> Settings {
    Settings {
        warmup_s: 2.0,
        duration_s: 10.0,
        drain_limit_s: 10.0,
        drain_s: 0.31,
        publisher_shards: 1,
        subscriber_shards: 1,
        ..Settings::default()
    }
}

fn environment() -> Environment {
    Environment {
        os: "Debian GNU/Linux 13".to_string(),
        kernel: "6.12.0".to_string(),
        cpu: "Example CPU at 2.60 GHz".to_string(),
        cores: 4,
        cpu_quota_cores: None,
        processors: Some(4),
        memory_bytes: 8_000_000_000,
        load_before: Some(0.21),
        load_after: Some(0.35),
        steal: Some(0.0),
        busy_cores: Some(1.2),
        governor: None,
        virtualization: Some("kvm".to_string()),
        descriptor_limit: 1_048_576,
        congestion_control: Some("cubic".to_string()),
        clock: "CLOCK_MONOTONIC".to_string(),
    }
}

/// Result of subscribers with a predicate for 4,000 messages.
pub fn content() -> ContentRow {
    ContentRow {
        group: "alarms".to_owned(),
        r#where: "payload.temperature > 30 && payload.room == \"hall\"".to_owned(),
        arrived: Some(4_000),
        should_match: Some(120),
        matched: 120,
        filtered: 3_880,
        filtered_bytes: 465_600,
        unreadable: 0,
        differing_subscribers: Some(0),
        differing_messages: Some(0),
        missed: Some(0),
        at: FilterPlace::Client,
        filtered_out: None,
        latency: Some(Shape { median_us: 310.0, tail: 0.255, count: 120 }.bounds()),
    }
}

/// A user-defined metric with this value.
pub fn custom(name: &str, unit: &str, [lower, upper]: [f64; 2]) -> CustomMetric {
    CustomMetric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        command: vec!["python3".to_owned(), format!("{name}.py")],
        sources: [(format!("{name}.py"), "ba7816bf8f01cfea".to_owned())].into(),
        lower: Some(lower),
        upper: Some(upper),
        by: [("hub".to_owned(), CustomBounds { lower, upper })].into(),
        partial: false,
        ran_s: Some(0.2),
        failure: None,
    }
}
