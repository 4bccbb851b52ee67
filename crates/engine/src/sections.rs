//! The parts of a record that come from the engine.

use std::time::Duration;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Distribution;
use pubmark_metrics::series::{Series, Widened};
use pubmark_model::arrival::Arrival;
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::workload::DeviceGroup;
use pubmark_protocol::traffic::Traffic;
use pubmark_record::connections::{ClientPrograms, RampUp, TlsFigures};
use pubmark_record::content::ContentRow;
use pubmark_record::distribution::{bounds, curve, micros, summary};
use pubmark_record::efficiency::{EfficiencyFigures, GroupEfficiency, PacketCounts, Source};
use pubmark_record::latency_bin::LatencyBin;
use pubmark_record::nodes::NodeRow;
use pubmark_record::record::{
    CauseCount, Connections, Curve, Delivery, ShardHealth, Side, Throughput, WillCounts, Windows,
};
use pubmark_record::tables::{PairRow, SeriesLatency, SeriesQuantiles, SeriesRow, TypeRow};
use pubmark_record::transform::{StepUse, TransformRow};

use crate::books::{self, GroupBooks};
use crate::outcome::{GroupContent, NodePair, Outcome, StepSum, TransformCounts};
use crate::plan::RunPlan;
use crate::plan::TYPE_LIMIT;
use crate::shard_outcome::{CAUSE_LIMIT, TypeTimes};
use crate::traffic::GroupTraffic;
use crate::{setup, shares};

const SECOND_NS: u64 = 1_000_000_000;

/// The distributions that a record stores as histograms, by name. A latency has two, one for each bound.
fn distributions(outcome: &Outcome, clock_error_ns: Option<u64>) -> Vec<(&'static str, Distribution)> {
    let times = &outcome.times;
    let mut all = vec![];
    let mut enter = |upper: &'static str, lower: &'static str, bounds: &Bounds, error_ns: Option<u64>| {
        let widened = bounds.widened(error_ns);
        all.extend([(upper, widened.upper), (lower, widened.lower)]);
    };
    enter("latency", "latency_lower", &times.latency, clock_error_ns);
    enter("service_latency", "service_latency_lower", &times.service_latency, clock_error_ns);
    enter("chain", "chain_lower", &times.chain, clock_error_ns);
    // A wait begins and ends at the same client.
    enter("backpressure", "backpressure_lower", &times.backpressure, Some(0));
    if let Some(requests) = &outcome.requests {
        // A round trip ends on the client where it began, so one clock stamps both ends.
        let times = &requests.times;
        enter("round_trip", "round_trip_lower", &times.round_trip, Some(0));
        enter("service_round_trip", "service_round_trip_lower", &times.service, Some(0));
        enter("round_trip_travel", "round_trip_travel_lower", &times.travel, Some(0));
    }
    let ours = [
        ("scheduler_lag", &times.scheduler_lag),
        ("receive_lateness", &times.receive_lateness),
        ("tls_handshake_full", &times.full_handshake),
        ("tls_handshake_resumed", &times.resumed_handshake),
    ];
    all.extend(ours.map(|(name, times)| (name, times.clone())));
    all.retain(|(_, times)| times.count() > 0);
    all
}

/// All curves of a run.
pub fn curves(outcome: &Outcome, clock_error_ns: Option<u64>) -> Vec<Curve> {
    distributions(outcome, clock_error_ns).iter().filter_map(|(name, times)| curve(name, times)).collect()
}

/// All histograms of a run in HdrHistogram's V2 format, ns, by name; histograms without samples are omitted.
pub fn histograms(outcome: &Outcome, clock_error_ns: Option<u64>) -> Vec<(&'static str, Vec<u8>)> {
    distributions(outcome, clock_error_ns).iter().map(|(name, times)| (*name, times.to_hdr_v2())).collect()
}

/// Results of subscribers with predicates, by group.
pub fn content(plan: &RunPlan, outcome: &Outcome, clock_error_ns: Option<u64>) -> Vec<ContentRow> {
    let row = |content: &GroupContent| {
        let group = &plan.workload.subscribers[usize::from(content.group)];
        // What the lost shards received and sent is missing on both sides.
        let account = content.account.filter(|_| outcome.lost.is_empty());
        let counts = &content.counts;
        ContentRow {
            group: group.name.clone(),
            r#where: group.predicate.as_ref().map_or_else(String::new, |predicate| predicate.text().to_owned()),
            arrived: account.map(|account| account.arrived),
            should_match: account.map(|account| account.should_match),
            matched: counts.matched,
            filtered: counts.filtered,
            filtered_bytes: counts.filtered_bytes,
            unreadable: counts.unreadable,
            differing_subscribers: account.and(content.differing).map(|differing| differing.audiences),
            differing_messages: account.and(content.differing).map(|differing| differing.messages),
            missed: account.map(|account| account.missed),
            at: group.filtered_at,
            filtered_out: account.filter(|_| group.broker_filter().is_some()).map(|account| account.filtered_out),
            latency: bounds(&counts.latency.widened(clock_error_ns)),
        }
    };
    outcome.content.iter().map(row).collect()
}

/// Results of the steps of `transform`, by device group and step.
pub fn transform(plan: &RunPlan, outcome: &Outcome) -> Vec<TransformRow> {
    let used = |sum: &StepSum| StepUse {
        messages: sum.messages,
        cpu_s: Duration::from_nanos(sum.cpu_ns).as_secs_f64(),
        bytes_before: sum.bytes_before,
        bytes_after: sum.bytes_after,
    };
    let none = TransformCounts::default();
    let rows = plan.workload.devices.iter().enumerate().flat_map(|(group, devices)| {
        let counts = outcome.transform.get(group).and_then(Option::as_deref).unwrap_or(&none);
        let sums = counts.publishing.iter().zip(&counts.receiving);
        devices.transform.iter().zip(sums).map(move |(step, (publishing, receiving))| TransformRow {
            group: devices.name.clone(),
            step: step.to_string(),
            publishing: used(publishing),
            receiving: used(receiving),
            failed: receiving.failed,
        })
    });
    rows.collect()
}

/// Actual length of the measured window, seconds.
pub fn window_s(outcome: &Outcome) -> f64 {
    (outcome.window_ns.1 - outcome.window_ns.0) as f64 / 1e9
}

/// Payload divided by bytes carried, according to the statistics of pubmark's sockets.
pub fn efficiency(plan: &RunPlan, outcome: &Outcome) -> Option<EfficiencyFigures> {
    let counts = |traffic: Traffic| PacketCounts {
        sent_packets: traffic.sent.packets,
        sent_bytes: traffic.sent.ip_bytes,
        received_packets: traffic.received.packets,
        received_bytes: traffic.received.ip_bytes,
    };
    let names = ConnectionGroups::of(&plan.workload).names;
    let group = |(group, carried): (String, &GroupTraffic)| GroupEfficiency {
        group,
        published: carried.published,
        published_bytes: carried.published_bytes,
        delivered: carried.delivered,
        delivered_bytes: carried.delivered_bytes,
        source: if carried.window.is_some() { Source::Estimated } else { Source::Unknown },
        window: carried.window.map(counts),
        set_up: carried.set_up.map(counts),
        ..GroupEfficiency::default()
    };
    (outcome.window_ns.1 > outcome.window_ns.0)
        .then(|| EfficiencyFigures::of(names.into_iter().zip(&outcome.traffic).map(group).collect()))
}

/// Rates over the measured window.
pub fn throughput(outcome: &Outcome) -> Throughput {
    let seconds = window_s(outcome);
    let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    Throughput {
        offered_per_s: per_s(outcome.books.delivery.offered),
        sent_per_s: per_s(outcome.counters.sent_in_window),
        delivered_per_s: per_s(outcome.counters.delivered_in_window),
        payload_bytes_per_s: per_s(outcome.counters.bytes_in_window),
        windows_1s: windows(&outcome.series.deliveries_per_second(seconds as usize)),
    }
}

/// Ordinary percentiles (nearest rank) over full seconds.
fn windows(per_second: &[u32]) -> Option<Windows> {
    let mut sorted = per_second.to_vec();
    sorted.sort_unstable();
    let rank = |fraction: f64| {
        let index = (fraction * sorted.len() as f64).ceil() as usize;
        sorted.get(index.saturating_sub(1)).map(|value| f64::from(*value))
    };
    Some(Windows {
        min: rank(0.0)?,
        median: rank(0.5)?,
        max: rank(1.0)?,
        p90: rank(0.9)?,
        p95: rank(0.95)?,
        p99: rank(0.99)?,
    })
}

/// The connection counters of the run.
pub fn connections(plan: &RunPlan, outcome: &Outcome) -> Connections {
    let counters = &outcome.counters;
    let mut causes: Vec<_> =
        counters.causes.iter().map(|(cause, count)| CauseCount { cause: cause.clone(), count: *count }).collect();
    causes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cause.cmp(&b.cause)));
    causes.truncate(CAUSE_LIMIT + 1);
    Connections {
        attempted: counters.attempted,
        established: counters.established,
        refused: counters.refused,
        auth_failed: counters.auth_failed,
        log_in_ended: counters.log_in_ended,
        reauthenticated: counters.reauthenticated,
        tls_failed: counters.tls_failed,
        dropped: counters.dropped,
        retried: counters.retried,
        never_connected: Some(counters.never_connected),
        planned_leaves: counters.planned_leaves,
        subscriptions_refused: counters.subscriptions_refused,
        subscriptions_revoked: counters.subscriptions_revoked,
        causes,
        connect_time: summary(&outcome.times.connect),
        ramp_up: ramp_up(outcome),
        granted_qos_lower: counters.granted_lower,
        resent: counters.resent,
        tls: tls(plan, outcome),
        wills: wills(plan, outcome),
        client_programs: client_programs(plan, outcome),
    }
}

/// What client programs reported; `None` in a run without client programs.
fn client_programs(plan: &RunPlan, outcome: &Outcome) -> Option<ClientPrograms> {
    plan.connections.program.as_ref()?;
    let misreports = outcome.counters.misreports.iter();
    Some(ClientPrograms {
        library: String::new(),
        round_trip: summary(&outcome.times.program_round_trip),
        misreports: misreports.map(|(misreport, count)| (misreport.name().to_owned(), *count)).collect(),
        ended: outcome.counters.program_ended.clone(),
    })
}

fn ramp_up(outcome: &Outcome) -> Vec<RampUp> {
    let sides = [Side::Subscribers, Side::Devices].into_iter().zip(&outcome.ramps);
    sides.filter_map(|(side, ramp)| Some(RampUp::new(side, ramp.accepted, ramp.seconds()?))).collect()
}

fn wills(plan: &RunPlan, outcome: &Outcome) -> Option<WillCounts> {
    let left = plan.workload.devices.iter().any(|group| group.will.is_some());
    let counters = &outcome.counters;
    left.then_some(WillCounts {
        due: counters.wills_due,
        undetermined: Some(counters.wills_undetermined),
        delivered: counters.wills,
    })
}

/// Counts and durations of TLS handshakes; `None` in a run without TLS.
fn tls(plan: &RunPlan, outcome: &Outcome) -> Option<TlsFigures> {
    let sides = [&plan.publish_at, &plan.subscribe_at];
    if !sides.iter().any(|places| places.are_encrypted()) {
        return None;
    }
    let (times, secured) = (&outcome.times, &outcome.counters.secured);
    let count =
        |resumed: bool| secured.iter().filter(|agreed| agreed.resumed == resumed).map(|agreed| agreed.count).sum();
    let mut agreed = secured.clone();
    agreed.sort_by_key(|agreed| std::cmp::Reverse(agreed.count));
    let is_ours = plan.connections.program.is_none() && !plan.library_sockets;
    Some(TlsFigures {
        resumption: is_ours.then_some(plan.connections.resumes_tls),
        full: count(false),
        resumed: count(true),
        full_handshake: summary(&times.full_handshake),
        resumed_handshake: summary(&times.resumed_handshake),
        opening: summary(&times.opening),
        agreed,
    })
}

/// Health of pubmark's threads.
pub fn threads(outcome: &Outcome) -> Vec<ShardHealth> {
    let row = |thread: &crate::outcome::ThreadHealth| ShardHealth {
        name: thread.name.clone(),
        side: match thread.side {
            shares::Side::Publish => Side::Devices,
            shares::Side::Subscribe => Side::Subscribers,
        },
        cores: thread.cores,
        sessions: thread.sessions,
        wakeups: thread.wakeups,
        quantum_us: thread.quantum_ns.map(|ns| ns as f64 / 1e3),
        ordinary_share: thread.ordinary_share,
    };
    outcome.threads.iter().map(row).collect()
}

/// Messages and times of each device group; groups beyond the first 256 share one row.
pub fn by_type(plan: &RunPlan, outcome: &Outcome, clock_error_ns: Option<u64>) -> Vec<TypeRow> {
    let row_of =
        |name: &str, index: usize| type_row(name, outcome.types.get(index).and_then(Option::as_deref), clock_error_ns);
    let mut rows: Vec<TypeRow> = vec![];
    let groups = plan.workload.devices.iter().zip(&outcome.books.groups).enumerate();
    let mut due: Vec<DueTimes> = vec![];
    for (index, (group, part)) in groups {
        let row = if index < TYPE_LIMIT {
            rows.push(row_of(&group.name, index));
            due.push(DueTimes::default());
            index
        } else {
            if index == TYPE_LIMIT {
                rows.push(row_of("other", TYPE_LIMIT));
                due.push(DueTimes::default());
            }
            TYPE_LIMIT
        };
        rows[row].devices += part.devices;
        due[row].add(group, part);
        books::add(&mut rows[row].delivery, &part.delivery);
        rows[row].availability = due[row].availability();
    }
    rows
}

/// Due times of the groups of a row.
#[derive(Default)]
struct DueTimes {
    all: u64,
    planned_online: u64,
    has_churn: bool,
}

impl DueTimes {
    /// Adds a group. A flood has no due times: its devices send while they are online.
    fn add(&mut self, group: &DeviceGroup, part: &GroupBooks) {
        if matches!(group.arrival, Arrival::Flood) {
            return;
        }
        self.all += part.delivery.offered;
        self.planned_online += part.planned_online;
        self.has_churn |= group.churn.is_some();
    }

    /// The share at which devices were planned to be online; `None` if none of the groups has churn.
    fn availability(&self) -> Option<f64> {
        (self.has_churn && self.all > 0).then(|| self.planned_online as f64 / self.all as f64)
    }
}

fn type_row(name: &str, times: Option<&TypeTimes>, clock_error_ns: Option<u64>) -> TypeRow {
    let mut delivery = Delivery::default();
    if let Some(times) = times {
        delivery.late = times.late;
        delivery.duplicated = times.duplicated;
        delivery.out_of_order = times.out_of_order;
        delivery.overlap = times.overlap;
    }
    TypeRow {
        name: name.to_owned(),
        devices: 0,
        delivery,
        latency: times.and_then(|times| bounds(&times.latency.widened(clock_error_ns))),
        service_latency: times.and_then(|times| bounds(&times.service_latency.widened(clock_error_ns))),
        backpressure: times.and_then(|times| summary(&times.backpressure)),
        availability: None,
    }
}

/// Deliveries from node to node. Without nodes there is one process, one clock and one row.
pub fn by_pair(outcome: &Outcome, nodes: &[NodeRow]) -> Vec<PairRow> {
    if nodes.len() > 1 {
        return outcome.pairs.iter().filter_map(|pair| pair_row(pair, nodes)).collect();
    }
    let only = nodes.first().map_or("local", |node| node.name.as_str());
    vec![PairRow {
        publisher_node: only.to_owned(),
        subscriber_node: only.to_owned(),
        expected: outcome.books.delivery.expected,
        delivered: outcome.books.delivery.delivered,
        lost: outcome.books.delivery.lost,
        silent_pairs: Some(outcome.books.pairs.counts().silent),
        latency: bounds(&outcome.times.latency),
        clock_bound_us: Some(0.0),
    }]
}

fn pair_row(pair: &NodePair, nodes: &[NodeRow]) -> Option<PairRow> {
    let (from, to) = (nodes.get(usize::from(pair.from))?, nodes.get(usize::from(pair.to))?);
    let clock_bound_us = clock_bound_us(from, to);
    Some(PairRow {
        publisher_node: from.name.clone(),
        subscriber_node: to.name.clone(),
        expected: pair.delivery.expected,
        delivered: pair.delivery.delivered,
        lost: pair.delivery.lost,
        silent_pairs: Some(pair.silent),
        latency: bounds(&pair.latency.widened(error_ns(clock_bound_us))),
        clock_bound_us,
    })
}

/// Largest difference between the clocks of two nodes, µs; `None` if it is unknown. Messages within one node are
/// stamped by one clock.
pub(crate) fn clock_bound_us(one: &NodeRow, other: &NodeRow) -> Option<f64> {
    let bound = |node: &NodeRow| node.clock.as_ref().map_or(Some(0.0), |clock| clock.bound_us);
    if one.name == other.name { Some(0.0) } else { Some(bound(one)? + bound(other)?) }
}

pub(crate) fn error_ns(bound_us: Option<f64>) -> Option<u64> {
    bound_us.map(|bound_us| (bound_us * 1e3).ceil() as u64)
}

/// Largest error of the latency of a message from one node to another, ns, by the rows of their nodes; `None` if it is
/// unknown. There are no rows in a run of one process, which has one clock.
pub fn pair_error_ns(nodes: &[NodeRow], from: u16, to: u16) -> Option<u64> {
    match (nodes.get(usize::from(from)), nodes.get(usize::from(to))) {
        (Some(from), Some(to)) => error_ns(clock_bound_us(from, to)),
        _ => Some(0),
    }
}

/// Largest error of a message's timestamps, ns, because the sender's clock is not the receiver's; `None` if it is
/// unknown for some nodes, which V22 judges.
pub fn clock_error_ns(nodes: &[NodeRow]) -> Option<u64> {
    let pairs = nodes.iter().flat_map(|one| nodes.iter().map(move |other| (one, other)));
    pairs
        .map(|(one, other)| error_ns(clock_bound_us(one, other)))
        .try_fold(0, |most, error_ns| Some(most.max(error_ns?)))
}

/// Node of each publisher of the fleet, from 0.
pub fn nodes_of_publishers(plan: &RunPlan) -> Vec<u16> {
    setup::nodes_of_publishers(plan, &plan.fleet.audiences(&plan.workload))
}

/// Number of devices and of subscribers of each node.
pub fn on_nodes(plan: &RunPlan) -> Vec<(u64, u64)> {
    let mut counts = vec![(0, 0); usize::from(plan.nodes)];
    let audiences = plan.fleet.audiences(&plan.workload);
    let nodes = setup::nodes_of_publishers(plan, &audiences);
    for (publisher, node) in (0u32..).zip(nodes) {
        counts[usize::from(node)].0 += u64::from(plan.fleet.leads(publisher));
    }
    for (node, _) in shares::places_of_subscribers(&plan.workload, &plan.fleet, plan.labels(), &audiences) {
        counts[usize::from(node)].1 += 1;
    }
    counts
}

/// The time series.
pub fn series(series: &Series, clock_error_ns: Option<u64>) -> Vec<SeriesRow> {
    let row = |(index, bin): (usize, &pubmark_metrics::series::Bin)| {
        let start_ns = series.bin_start_ns(index);
        // A percentile of the measured window includes no sample of the warm-up.
        let not_before_ns = if start_ns < 0 { i64::MIN } else { 0 };
        let p50 = series.latency_quantile(index, 0.5, not_before_ns);
        let p99 = series.latency_quantile(index, 0.99, not_before_ns);
        let span_s = |found: Option<Widened>| found.map(|found| found.width_ns as f64 / SECOND_NS as f64);
        let quantiles = |value: &dyn Fn(Widened) -> u64, max_ns: Option<u64>| SeriesQuantiles {
            p50_us: p50.map(|found| micros(value(found))),
            p50_width_s: span_s(p50),
            p99_us: p99.map(|found| micros(value(found))),
            p99_width_s: span_s(p99),
            max_us: max_ns.map(micros),
        };
        let above = |ns: u64| ns.saturating_add(clock_error_ns.unwrap_or(0));
        let below = |ns: u64| ns.saturating_sub(clock_error_ns.unwrap_or(u64::MAX));
        SeriesRow {
            t_s: start_ns as f64 / SECOND_NS as f64,
            width_s: series.bin_width_ns(index) as f64 / SECOND_NS as f64,
            offered: bin.offered,
            sent: bin.sent,
            delivered: bin.delivered,
            delivered_bytes: bin.delivered_bytes,
            latency: SeriesLatency {
                upper: quantiles(&|found| above(found.value_ns), bin.latency.max_ns().map(above)),
                lower: Some(quantiles(&|found| below(found.lower_ns), bin.lower.max_ns().map(below))),
            },
            max_scheduler_lag_us: bin.max_lag_ns.map(micros),
        }
    };
    series.bins().iter().enumerate().map(row).collect()
}

/// The distributions of the latencies over time, upper bounds; bins without a message are omitted.
pub fn latency_bins(series: &Series, clock_error_ns: Option<u64>) -> Vec<LatencyBin> {
    let seconds = |ns: f64| ns / SECOND_NS as f64;
    let above = |ns: u64| micros(ns.saturating_add(clock_error_ns.unwrap_or(0)));
    let bins = series.bins().iter().enumerate().filter(|(_, bin)| bin.latency.count() > 0);
    bins.map(|(index, bin)| {
        let values = bin.latency.values().map(|(value_ns, messages)| (above(value_ns), u64::from(messages)));
        LatencyBin::of(seconds(series.bin_start_ns(index) as f64), seconds(series.bin_width_ns(index) as f64), values)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use pubmark_model::load::{self, LoadOptions};

    use super::*;

    #[test]
    fn availability_is_that_of_all_due_times_of_a_row_and_a_flood_has_none() {
        let groups = |lines: &str| {
            let text = format!(
                "
name: groups
devices:
  - name: device
    count: 8
    payload: 100B
    topic: 'v/{{device}}'
{lines}
subscribers:
  - {{name: subscriber, filters: ['v/#']}}
"
            );
            load::parse("groups.yaml", &text, &LoadOptions::default()).expect("a workload").devices
        };
        let churn = "    churn: {disconnect: 60% every 1s, reconnect: 60% every 1s}";
        let with_churn = &groups(&format!("    arrival: periodic\n    every: 1s\n{churn}"))[0];
        let without = &groups("    arrival: periodic\n    every: 1s")[0];
        let flood = &groups(&format!("    arrival: flood\n{churn}"))[0];
        let part = |offered, planned_online| GroupBooks {
            delivery: Delivery { offered, ..Delivery::default() },
            planned_online,
            ..GroupBooks::default()
        };
        let availability = |row: &[(&DeviceGroup, GroupBooks)]| {
            let mut due = DueTimes::default();
            row.iter().for_each(|(group, part)| due.add(group, part));
            due.availability()
        };
        assert_eq!(availability(&[(with_churn, part(100, 50))]), Some(0.5));
        assert_eq!(availability(&[(without, part(100, 100))]), None);
        assert_eq!(availability(&[(flood, part(100, 50))]), None);
        // Groups share a row from the 257th on, in any order.
        let mut row = [(with_churn, part(100, 50)), (flood, part(9_000, 9_000)), (without, part(300, 300))];
        assert_eq!(availability(&row), Some(0.875));
        row.reverse();
        assert_eq!(availability(&row), Some(0.875));
    }
}
