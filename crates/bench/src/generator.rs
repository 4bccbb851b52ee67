//! A run of the engine in its own process, so that CPU time and memory belong to it alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::outcome::Outcome;
use pubmark_engine::pacing::Pacing;
use pubmark_engine::plan::{Networks, RunPlan};
use pubmark_engine::progress::Totals;
use pubmark_engine::run::{self, Observer, Phase};
use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadOptions};
use pubmark_model::pace::Pace;
use pubmark_model::qos::Qos;
use pubmark_model::schedule::Timeline;
use pubmark_protocol::clients::ConnectionSettings;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocols::Protocol;
use serde::{Deserialize, Serialize};

use crate::usage;

/// The task of a child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Built-in workload.
    pub workload: String,
    /// Its parameters, `KEY=VALUE`.
    pub set: Vec<String>,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// Address of subscribers, if it is another one.
    pub subscribers: Option<String>,
    /// 0, 1 or 2.
    pub qos: u8,
    /// Name of the protocol, as in `pubmark run --protocol`.
    pub protocol: String,
    /// Client library of a protocol that has several; the first available one if `None`.
    pub client: Option<String>,
    /// Seconds.
    pub warmup_s: f64,
    /// Seconds.
    pub duration_s: f64,
    /// SCHED_FIFO.
    pub realtime: bool,
    /// No subscribers: for a sink that discards.
    pub publish_only: bool,
    /// As `pubmark run --pace`.
    pub pace: Pace,
}

impl Order {
    /// `fan-in` with these parameters over MQTT 5 at QoS 0: three seconds after half a second of warm-up.
    pub fn new(address: &impl ToString, set: &[&str]) -> Order {
        Order {
            workload: "fan-in".to_owned(),
            set: set.iter().map(|pair| (*pair).to_owned()).collect(),
            address: address.to_string(),
            subscribers: None,
            qos: 0,
            protocol: "mqtt5".to_owned(),
            client: None,
            warmup_s: 0.5,
            duration_s: 3.0,
            realtime: false,
            publish_only: false,
            pace: Pace::Exact,
        }
    }
}

/// The result of a child process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Finding {
    /// CPU seconds of the process in the measured window.
    pub cpu_s: f64,
    /// Highest resident set, bytes.
    pub peak_rss_bytes: u64,
    /// Resident set at the start and end of the measured window, bytes.
    pub rss_bytes: (u64, u64),
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Messages written in the measured window, whenever they were due.
    pub written: u64,
    /// First copies that arrived in the measured window, whenever they were sent.
    pub arrived: u64,
    /// Messages due in the measured window that were sent, in it or later.
    pub sent: u64,
    /// Deliveries of these messages, in the window or in the drain.
    pub delivered: u64,
    /// Lost deliveries.
    pub lost: u64,
    /// Messages offered in the measured window.
    pub offered: u64,
    /// Bytes that were still in our sockets at the end.
    pub unsent_bytes: u64,
    /// Scheduler lag, µs: p50, p99.
    pub lag_us: Option<(f64, f64)>,
    /// Lower and upper bound of the latency's p99, µs.
    pub p99_us: Option<(f64, f64)>,
    /// Receive lateness p99, µs.
    pub receive_lateness_us: Option<f64>,
    /// Busiest shard thread, cores.
    pub busiest_cores: f64,
    /// SCHED_FIFO was obtained.
    pub realtime: bool,
}

impl Finding {
    /// CPU seconds per million messages that arrived, both of the window: the CPU time does not include the work for a
    /// message that arrives in the drain.
    pub fn cpu_s_per_million(&self) -> Result<f64, String> {
        per_million(self.cpu_s, self.arrived).ok_or_else(|| "no message arrived in the window".to_owned())
    }

    /// The same per million messages that were written, for a run without subscribers.
    pub fn cpu_s_per_million_written(&self) -> Result<f64, String> {
        per_million(self.cpu_s, self.written).ok_or_else(|| "no message was written in the window".to_owned())
    }
}

fn per_million(cpu_s: f64, messages: u64) -> Option<f64> {
    (messages > 0).then(|| cpu_s / (messages as f64 / 1e6))
}

/// Longest wait for the messages of a flood: which of those in transit at the end of the window are lost is known only after it.
const FLOOD_DRAIN: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Meter {
    cpu_s: (f64, f64),
    rss_bytes: (u64, u64),
}

impl Observer for Meter {
    fn phase(&mut self, _phase: Phase) {}
    fn progress(&mut self, _: Phase, _: Duration, _: Option<Duration>, _: &Totals, _: bool) {}
    fn window_began(&mut self) {
        self.cpu_s.0 = usage::cpu_s();
        self.rss_bytes.0 = usage::resident_bytes("VmRSS").unwrap_or(0);
    }
    fn window_ended(&mut self) {
        self.cpu_s.1 = usage::cpu_s();
        self.rss_bytes.1 = usage::resident_bytes("VmRSS").unwrap_or(0);
    }
}

/// Executes a task in this process.
pub fn run(order: &Order) -> Result<Finding, String> {
    let plan = plan(order)?;
    let stop = AtomicBool::new(false);
    let mut meter = Meter::default();
    let sides = protocol(order)?.sides();
    let outcome = run::run(&plan, sides, None, &stop, &mut meter).map_err(|error| error.to_string())?;
    if outcome.unreachable {
        return Err(format!("no connection to {}: {:?}", order.address, outcome.counters.causes));
    }
    Ok(finding(&outcome, &meter))
}

fn protocol(order: &Order) -> Result<&'static Protocol, String> {
    let usual = pubmark_protocols::find(&order.protocol).ok_or_else(|| format!("no protocol `{}`", order.protocol))?;
    match &order.client {
        None => Ok(usual),
        Some(name) => usual.with_client(name).map_err(|known| format!("no client `{name}` but {}", known.join(", "))),
    }
}

fn plan(order: &Order) -> Result<RunPlan, String> {
    let set = order.set.iter().map(|pair| {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is not KEY=VALUE"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    let options = LoadOptions {
        qos: Qos::from_level(order.qos),
        set: set.collect::<Result<_, String>>()?,
        ..LoadOptions::default()
    };
    let mut workload = load::load(&order.workload, &options).map_err(|error| error.to_string())?;
    if order.publish_only {
        workload.subscribers.clear();
    }
    let place = |text: &str| -> Result<Endpoints, String> {
        let address = text.parse().map_err(|error| format!("{text}: {error}"))?;
        let shown = text.to_owned();
        Ok(Endpoints::one(Endpoint { shown, address, tls: None, credentials: None, upgrade: None, settings: None }))
    };
    let mut plan = RunPlan {
        fleet: Arc::new(Fleet::new(&workload, 1)),
        workload: Arc::new(workload),
        seed: 1,
        run_id: std::process::id(),
        timeline: Timeline { warmup_ns: (order.warmup_s * 1e9) as u64, duration_ns: (order.duration_s * 1e9) as u64 },
        drain_limit: Duration::from_secs(30),
        redelivers_after: None,
        networks: Networks::none(),
        nodes: 1,
        node_labels: vec![],
        on_nodes: false,
        probes: false,
        by_network: false,
        library_sockets: false,
        follows: None,
        message_log: None,
        sources: [].into(),
        publish_at: place(&order.address)?,
        subscribe_at: place(order.subscribers.as_ref().unwrap_or(&order.address))?,
        publisher_shards: 1,
        subscriber_shards: 1,
        connects_per_s: 2_000.0,
        connect_limit: Duration::from_secs(30),
        hopeless_after: Duration::from_secs(5),
        pacing: Pacing { pace: order.pace, ..Pacing::default() },
        handicap: None,
        faults: [].into(),
        realtime: order.realtime,
        shares_cores: false,
        // The largest packet is that of a run with such payloads: Redis Streams reads fewer entries at once if it is larger.
        connections: ConnectionSettings::default(),
    };
    if plan.is_flood() {
        plan.drain_limit = FLOOD_DRAIN;
    }
    Ok(plan)
}

fn finding(outcome: &Outcome, meter: &Meter) -> Finding {
    let micros = |time: Option<u64>| time.map(|time| time as f64 / 1e3);
    let pair = |times: &pubmark_metrics::distribution::Distribution| {
        Some((micros(times.quantile_ns(0.5))?, micros(times.quantile_ns(0.99))?))
    };
    let p99 = |times: &pubmark_metrics::bounds::Bounds| {
        Some((micros(times.lower.quantile_ns(0.99))?, micros(times.upper.quantile_ns(0.99))?))
    };
    let delivery = &outcome.books.delivery;
    Finding {
        cpu_s: meter.cpu_s.1 - meter.cpu_s.0,
        peak_rss_bytes: usage::resident_bytes("VmHWM").unwrap_or(0),
        rss_bytes: meter.rss_bytes,
        window_s: (outcome.window_ns.1 - outcome.window_ns.0) as f64 / 1e9,
        written: outcome.counters.sent_in_window,
        arrived: outcome.counters.delivered_in_window,
        sent: delivery.sent,
        delivered: delivery.delivered,
        lost: delivery.lost,
        offered: delivery.offered,
        unsent_bytes: outcome.unsent_bytes,
        lag_us: pair(&outcome.times.scheduler_lag),
        p99_us: p99(&outcome.times.latency),
        receive_lateness_us: micros(outcome.times.receive_lateness.quantile_ns(0.99)),
        busiest_cores: outcome.threads.iter().filter_map(|thread| thread.cores).fold(0.0, f64::max),
        realtime: outcome.realtime,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_the_window_is_divided_by_the_messages_of_the_window() {
        // Half of what was sent arrived in the drain, whose CPU time is not counted.
        let found = Finding {
            cpu_s: 1.0,
            written: 2_000_000,
            arrived: 500_000,
            sent: 1_000_000,
            delivered: 1_000_000,
            ..Finding::default()
        };
        assert_eq!((found.cpu_s_per_million().unwrap(), found.cpu_s_per_million_written().unwrap()), (2.0, 0.5));
        let nothing = Finding { arrived: 0, written: 0, ..found };
        assert!(nothing.cpu_s_per_million().is_err() && nothing.cpu_s_per_million_written().is_err());
    }
}
