//! Makes a record from the run outcome of the engine.

pub(crate) mod delivery_window;
mod links;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use pubmark_engine::by_label;
use pubmark_engine::faults::FaultOutcome;
use pubmark_engine::outcome::{Counters, Outcome};
use pubmark_engine::plan::RunPlan;
use pubmark_engine::sections;
use pubmark_model::fleet::{ConnectionCounts, ConnectionsOnNodes, SecondConnection};
use pubmark_model::group_settings::group_settings;
use pubmark_model::placement;
use pubmark_model::qos::Qos;
use pubmark_model::schedule::Summary;
use pubmark_model::workload;
use pubmark_record::conditions::RunConditions;
use pubmark_record::connections::Connections;
use pubmark_record::cost::{Cost, ResourceRow, Usage};
use pubmark_record::distribution;
use pubmark_record::faults::FaultFigures;
use pubmark_record::latency_breakdown::LatencyBreakdown;
use pubmark_record::nodes::NodeRow;
use pubmark_record::record::{
    BackEndKind, DeliveryFigures, Deviation, Environment, FilteredCounts, LatencyFigures, LeftAtEnd, OwnDrops,
    PairCounts, ProtocolInfo, ReactionCounts, Record, RunInfo, SCHEMA_VERSION, SentMeans, Settings, Status, SystemEnd,
    SystemInfo, Verdict, WorkloadInfo,
};
use pubmark_record::tables::Tables;
use pubmark_record::time::UtcTime;
use pubmark_record::verdict;
use pubmark_systems::awake::{Awake, AwakeError, Means};
use pubmark_systems::sockets::InTransit;

use crate::command_line;
use crate::identities;
use crate::sampling;
use pubmark_protocol::capabilities;
use pubmark_protocols::ProtocolPair;

pub use links::{add_links, add_links_of_nodes};

/// Content of a record in addition to the engine's outcome.
pub struct RecordInputs {
    /// The command line, which may contain passwords.
    pub command: Vec<String>,
    /// Name of the run, which is the name of its folder.
    pub run: String,
    /// Protocols of the clients.
    pub protocol_pair: ProtocolPair,
    /// Summary of the schedule.
    pub schedule: Summary,
    /// The system that was measured.
    pub system: SystemInfo,
    /// Differences from what was requested, in addition to the workload's.
    pub deviations: Vec<Deviation>,
    /// Resource usage.
    pub cost: Cost,
    /// Resource usage over time.
    pub resource_series: Vec<ResourceRow>,
    /// [`LeftAtEnd::system_drain_wait_ns`].
    pub drain_wait_ns: Option<u64>,
    /// This machine.
    pub environment: Environment,
    /// Nodes, for a run on several nodes.
    pub nodes: Vec<NodeRow>,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Number of repetitions of the command.
    pub repetitions: u32,
}

/// Makes the record; [`judge`] it when it is complete.
pub fn record(plan: &RunPlan, outcome: &Outcome, mut inputs: RecordInputs) -> Record {
    if plan.on_nodes {
        // This process only led the run: the load was generated on other machines.
        inputs.cost.generator = crate::nodes::generator(&inputs.nodes);
        inputs.resource_series = sampling::of_system(inputs.resource_series);
    }
    let clock_error_ns = sections::clock_error_ns(&inputs.nodes);
    let publish = &inputs.protocol_pair.publish.capabilities;
    let subscribe = &inputs.protocol_pair.subscribe.capabilities;
    let is_external = inputs.system.back_end == BackEndKind::External;
    let leftovers = if is_external { leftovers(plan, inputs.protocol_pair) } else { vec![] };
    let ids_reused = ids_reused(&outcome.counters).filter(|_| is_external);
    Record {
        schema_version: SCHEMA_VERSION,
        run: RunInfo {
            name: inputs.run,
            id: plan.run_id,
            repetition: inputs.repetition,
            repetitions: inputs.repetitions,
            started_at: UtcTime::from_unix_seconds(outcome.started_at_ns / 1_000_000_000).rfc3339(),
            status: if outcome.interrupted { Status::Interrupted } else { Status::Complete },
            pubmark_version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command_line::shown(inputs.command, &plan.workload.secret_parameters),
            files: BTreeMap::new(),
        },
        verdict: Verdict::default(),
        objectives: vec![],
        workload: workload_info(plan, inputs.schedule),
        system: inputs.system,
        protocol: ProtocolInfo {
            publish: publish.name.to_owned(),
            subscribe: subscribe.name.to_owned(),
            sent_means: sent_means(publish.sent_means),
            read_by_library: Some(subscribe.sent_means == capabilities::SentMeans::HandedOver),
            delivery_window: delivery_window::smallest(&plan.workload, &plan.fleet, &subscribe.features),
        },
        settings: Settings {
            deviations: [workload_deviations(plan), inputs.deviations, own_deviations(plan, outcome), leftovers]
                .into_iter()
                .flatten()
                .chain(ids_reused)
                .collect(),
            ..settings(plan, outcome)
        },
        connections: connections(plan, outcome, inputs.protocol_pair),
        delivery: DeliveryFigures {
            content: sections::content(plan, outcome, clock_error_ns),
            ..delivery(plan, outcome, inputs.protocol_pair, inputs.drain_wait_ns, clock_error_ns)
        },
        latency: latency(outcome, clock_error_ns),
        throughput: sections::throughput(outcome),
        cost: cost(inputs.cost, plan, outcome, inputs.protocol_pair.second_connection()),
        requests: outcome.requests.as_ref().map(|requests| requests.figures.clone()),
        conditions: RunConditions::default(),
        message_log: None,
        custom: vec![],
        tables: Tables {
            by_type: sections::by_type(plan, outcome, clock_error_ns),
            lost_workers: crate::nodes::lost_workers(plan, outcome),
            by_pair: sections::by_pair(outcome, &inputs.nodes),
            by_label: by_label::by_label(outcome, &inputs.nodes, &placement::keys(&plan.workload)),
            nodes: inputs.nodes,
            series: sections::series(&outcome.series, clock_error_ns),
            latency_bins: sections::latency_bins(&outcome.series, clock_error_ns),
            resource_series: inputs.resource_series,
            curves: sections::curves(outcome, clock_error_ns),
        },
        environment: inputs.environment,
    }
}

fn connections(plan: &RunPlan, outcome: &Outcome, protocol_pair: ProtocolPair) -> Connections {
    let mut connections = sections::connections(plan, outcome);
    if let (Some(programs), Some(library)) = (&mut connections.client_programs, protocol_pair.publish.program) {
        library.clone_into(&mut programs.library);
    }
    connections
}

fn delivery(
    plan: &RunPlan,
    outcome: &Outcome,
    protocol_pair: ProtocolPair,
    drain_wait_ns: Option<u64>,
    clock_error_ns: Option<u64>,
) -> DeliveryFigures {
    DeliveryFigures {
        messages: outcome.books.delivery,
        too_large: outcome.books.too_large,
        sizes_raised: outcome.books.sizes_raised,
        never_sent: Some(outcome.books.never_sent),
        due_times: Some(outcome.books.due_times),
        at_end: LeftAtEnd {
            socket_unsent_bytes: outcome.unsent_bytes,
            held_bytes: outcome.held_bytes,
            sessions_not_resumed: outcome.counters.not_resumed,
            system_unsent_bytes: None,
            system_unread_bytes: None,
            system_drain_wait_ns: drain_wait_ns,
            relay_bytes: None,
            link_bytes: None,
        },
        own_drops: OwnDrops {
            missed: outcome.counters.missed,
            overflowed_datagrams: outcome.counters.overflowed,
            library_datagrams: plan.library_sockets.then_some(outcome.counters.library_overflowed),
        },
        broken_promises: Some(outcome.books.broken_promises),
        reactions: outcome.reactions.map(|counted| ReactionCounts {
            scheduled: counted.scheduled,
            triggered: counted.triggered,
            starved: counted.starved,
            chain_latency: distribution::bounds(&outcome.times.chain.widened(clock_error_ns)),
        }),
        filtered: filtered(protocol_pair, outcome),
        content: vec![],
        pairs: protocol_pair
            .is_brokerless()
            .then(|| PairCounts { probed: outcome.probed, ..outcome.books.pairs.counts() }),
    }
}

fn latency(outcome: &Outcome, clock_error_ns: Option<u64>) -> LatencyFigures {
    let times = &outcome.times;
    LatencyFigures {
        total: distribution::bounds(&times.latency.widened(clock_error_ns)),
        service: distribution::bounds(&times.service_latency.widened(clock_error_ns)),
        without_write_start: outcome.counters.without_write_start,
        scheduler_lag: distribution::summary(&times.scheduler_lag),
        backpressure: distribution::summary(&times.backpressure.upper),
        backpressure_lower: distribution::summary(&times.backpressure.lower),
        receive_lateness: distribution::summary(&times.receive_lateness),
        kernel_receive_lateness: distribution::summary(&times.kernel_lateness),
        breakdown: None,
    }
}

/// Judges a complete record: sets its verdict.
pub fn judge(record: &mut Record) {
    verdict::assess(record);
}

/// Adds the latency breakdown of messages.
pub fn add_breakdown(record: &mut Record, breakdown: Option<LatencyBreakdown>) {
    record.latency.breakdown = breakdown.filter(|breakdown| !breakdown.rows.is_empty());
}

/// Adds what was in transit from and to the system at the end of the drain, without what cannot arrive because a fault silenced
/// the client's connection.
pub fn add_in_transit(record: &mut Record, in_transit: Option<InTransit>, faults: Option<&FaultOutcome>) {
    let silenced = faults.map(|faults| faults.notes.silenced.as_slice()).unwrap_or_default();
    let at_end = &mut record.delivery.at_end;
    at_end.system_unsent_bytes = in_transit.as_ref().map(|bytes| bytes.to_clients_except(silenced));
    at_end.system_unread_bytes = in_transit.map(|bytes| bytes.to_system);
}

/// Adds how the system ended, if it ended.
pub fn add_end(record: &mut Record, end: Option<SystemEnd>) {
    record.system.ended = end;
}

/// Adds the figures of faults.
pub fn add_faults(record: &mut Record, faults: FaultFigures) {
    record.conditions.faults = Some(faults);
}

fn workload_info(plan: &RunPlan, schedule: Summary) -> WorkloadInfo {
    let workload = &plan.workload;
    let levels: BTreeSet<Qos> = workload.devices.iter().map(|group| group.qos).collect();
    WorkloadInfo {
        name: workload.name.clone(),
        variant: workload.variant,
        has_readings: workload.has_readings,
        scale: workload.scale,
        seed: plan.seed,
        schedule_hash: schedule.hash,
        scheduled: schedule.offered,
        devices: plan.fleet.device_count() as u64,
        subscribers: plan.fleet.subscribers().len() as u64,
        topics: plan.fleet.topic_count(workload) as u64,
        source: workload.source.clone(),
        qos: levels.into_iter().collect(),
        group_settings: group_settings(workload),
    }
}

fn filtered(protocol_pair: ProtocolPair, outcome: &Outcome) -> Option<FilteredCounts> {
    let at_clients = [protocol_pair.publish, protocol_pair.subscribe]
        .iter()
        .any(|protocol| protocol.capabilities.features.filters_at_clients);
    let Counters { withheld, discarded, .. } = outcome.counters;
    at_clients.then_some(FilteredCounts { withheld, discarded })
}

/// Least number of connections for which memory is divided among them: the growth of a resident set by some pages says
/// nothing about each of twenty connections.
const FEWEST_CONNECTIONS: u64 = 100;
/// Least number of bytes that every connection needs: if a resident set grew by less, the system already had the
/// memory, and no figure can be given.
const LEAST_BYTES: u64 = 100;

/// Growth of the system's resident set per connection; `None` where it says nothing about a connection.
fn bytes_per_connection(system: &Usage, connections: u64) -> Option<f64> {
    let grown = system.peak_rss_bytes.saturating_sub(system.idle_rss_bytes?);
    let meaningful = connections >= FEWEST_CONNECTIONS && grown >= connections * LEAST_BYTES;
    meaningful.then(|| grown as f64 / connections as f64)
}

/// Most sessions that were connected at once, `most_online` where that was counted. Where it was not, all `connected` clients
/// were connected at once unless some `leave` as planned. Not the number of connects, which grows with each reconnect.
fn sessions_at_once(most_online: Option<u64>, connected: u64, leave: bool) -> Option<u64> {
    most_online.or((!leave).then_some(connected))
}

/// Most connections that were open at once, of which some sessions may have two. Such sessions are not counted separately: with
/// them, the number is known only if the sessions of all clients were connected at once.
fn connections_at_once(sessions_at_once: Option<u64>, plan: &RunPlan, second: SecondConnection) -> Option<u64> {
    let planned = |second: SecondConnection| {
        let ConnectionCounts { devices, subscribers } =
            ConnectionsOnNodes::of(&plan.workload, plan.labels(), second).all;
        devices.saturating_add(subscribers)
    };
    connections_of(sessions_at_once?, planned(SecondConnection::Never), planned(second))
}

/// Number of open connections while `sessions_at_once` sessions were connected. All `sessions` of the fleet together have `connections`
/// connections. `None` if some sessions have two, and not all were connected.
fn connections_of(sessions_at_once: u64, sessions: u64, connections: u64) -> Option<u64> {
    match connections == sessions {
        true => Some(sessions_at_once),
        false => (sessions_at_once == sessions).then_some(connections),
    }
}

/// Resource usage with the cost per message and per connection, if both operands were measured, and with our threads
/// and the efficiency.
fn cost(measured: Cost, plan: &RunPlan, outcome: &Outcome, second: SecondConnection) -> Cost {
    // CPU time is that of the window, and so are the deliveries and the replies.
    let replies = outcome.requests.as_ref().map_or(0, |requests| requests.replies_in_window);
    let arrived = outcome.counters.delivered_in_window + replies;
    let per_million = |cpu_seconds: f64| (arrived > 0).then(|| cpu_seconds * 1e6 / arrived as f64);
    let sessions: u64 = outcome.threads.iter().map(|thread| thread.sessions).sum();
    let connected = sessions.saturating_sub(outcome.counters.never_connected);
    let leave = plan.workload.devices.iter().any(|group| group.churn.is_some());
    let sessions_at_once = sessions_at_once(outcome.most_online, connected, leave);
    let connections_at_once = connections_at_once(sessions_at_once, plan, second);
    let per_connection = |usage: Usage| bytes_per_connection(&usage, connections_at_once?);
    Cost {
        system_cpu_s_per_million: measured.system.and_then(|usage| per_million(usage.cpu_seconds)),
        generator_cpu_s_per_million: measured.generator.and_then(|usage| per_million(usage.cpu_seconds)),
        client_programs_cpu_s_per_million: measured.client_programs.and_then(|usage| per_million(usage.cpu_seconds)),
        system_bytes_per_connection: measured.system.and_then(per_connection),
        connections_at_once,
        threads: sections::threads(outcome),
        efficiency: sections::efficiency(plan, outcome),
        transform: sections::transform(plan, outcome),
        ..measured
    }
}

fn settings(plan: &RunPlan, outcome: &Outcome) -> Settings {
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    Settings {
        warmup_s: seconds(plan.timeline.warmup_ns),
        duration_s: seconds(plan.timeline.duration_ns),
        drain_limit_s: plan.drain_limit.as_secs_f64(),
        drain_s: seconds(outcome.drain_ns),
        publisher_shards: plan.publisher_shards as u32,
        subscriber_shards: plan.subscriber_shards as u32,
        realtime: outcome.realtime,
        pace: plan.pacing.pace.to_string(),
        cpu_idle_disabled: false,
        tls: plan.publish_at.are_encrypted() || plan.subscribe_at.are_encrypted(),
        congestion_control: plan.connections.congestion_control.as_deref().map(str::to_owned),
        client_certificate: plan.publish_at.have_identity()
            || plan.subscribe_at.have_identity()
            || identities::show_certificates(&plan.workload),
        source_addresses: plan.sources.len() as u32,
        flood: plan.is_flood(),
        window_start_ns: outcome.window_ns.0,
        window_end_ns: outcome.window_ns.1,
        connects_per_s: plan.connects_per_s,
        deviations: vec![],
    }
}

fn workload_deviations(plan: &RunPlan) -> Vec<Deviation> {
    let shown =
        |deviation: &workload::Deviation| Deviation { name: deviation.name.clone(), detail: deviation.detail.clone() };
    plan.workload.deviations.iter().map(shown).collect()
}

/// State that a run leaves on a system that it did not start.
fn leftovers(plan: &RunPlan, protocol_pair: ProtocolPair) -> Vec<Deviation> {
    let workload = &plan.workload;
    let mut left = vec![];
    let retains = |group: &workload::DeviceGroup| group.retain || group.will.as_ref().is_some_and(|will| will.retain);
    if workload.devices.iter().any(retains) {
        let detail =
            "the last message of each topic stays on the system as a retained one; the next run counts it as foreign";
        left.push(Deviation { name: "retained-left-behind".to_owned(), detail: detail.to_owned() });
    }
    let persistent = |kind: workload::SessionKind| kind == workload::SessionKind::Persistent;
    let of_devices = workload.devices.iter().any(|group| persistent(group.session));
    let of_subscribers = workload.subscribers.iter().any(|group| persistent(group.session));
    let [of_devices, of_subscribers] = [(of_devices, protocol_pair.publish), (of_subscribers, protocol_pair.subscribe)]
        .map(|(keeps, protocol)| keeps && !protocol.capabilities.ends_sessions);
    if of_devices || of_subscribers {
        let detail = "persistent sessions stay on the system: this protocol has no message that ends them";
        left.push(Deviation { name: "sessions-left-behind".to_owned(), detail: detail.to_owned() });
    }
    left
}

/// Adds whether and how CPU idle states were prevented, if that was requested.
pub fn add_awake(record: &mut Record, awake: &Result<Option<Awake>, AwakeError>) {
    let deviation = |name: &str, detail: String| Deviation { name: name.to_owned(), detail };
    let settings = &mut record.settings;
    match awake {
        Ok(held) => {
            settings.cpu_idle_disabled = held.is_some();
            if held.as_ref().is_some_and(|held| held.means() == Means::Loops) {
                settings.deviations.push(deviation("idle-loops", IDLE_LOOPS.to_owned()));
            }
        }
        Err(error) => settings.deviations.push(deviation(
            "awake-refused",
            format!("CPU idle states of the machine were to be prevented (--awake) and could not be: {error}"),
        )),
    }
}

/// What loops at idle priority change in a run.
const IDLE_LOOPS: &str = "a loop at idle priority on each core prevented its idle states (--awake), as this kernel has no driver \
     for CPU idle states; the machine's CPU pressure and its load average would count the loops, and are unknown";

/// Requested features of pubmark itself that were not available.
fn own_deviations(plan: &RunPlan, outcome: &Outcome) -> Vec<Deviation> {
    let mut deviations = vec![];
    if plan.realtime && !outcome.realtime {
        deviations.push(Deviation {
            name: "realtime-refused".to_owned(),
            detail: "SCHED_FIFO was asked for (--realtime) and not every thread obtained it: it needs CAP_SYS_NICE"
                .to_owned(),
        });
    }
    let lowered = outcome.counters.publish_level_lower;
    if lowered > 0 {
        deviations.push(Deviation {
            name: "publish-qos-lower".to_owned(),
            detail: format!(
                "on {lowered} connections the server takes messages at a lower QoS level only than the workload asks for; \
                 they were sent at its level"
            ),
        });
    }
    deviations.extend(own_drops(&outcome.counters));
    let refused = outcome.counters.topic_alias_refused;
    if refused > 0 {
        deviations.push(Deviation {
            name: "topic-alias-refused".to_owned(),
            detail: format!(
                "on {refused} connections the server takes no topic alias, which the workload asks for; every message \
                 named its topic"
            ),
        });
    }
    deviations
}

/// What had arrived and pubmark did not take in time.
fn own_drops(counters: &Counters) -> Vec<Deviation> {
    let Counters { missed, overflowed, library_overflowed, .. } = counters;
    let mut drops = vec![];
    if *missed > 0 {
        drops.push(Deviation {
            name: "messages-missed".to_owned(),
            detail: format!(
                "{missed} messages that had arrived were dropped by pubmark, which did not take them from the client \
                 library in time; they count as lost"
            ),
        });
    }
    if *overflowed > 0 {
        drops.push(Deviation {
            name: "datagrams-overflowed".to_owned(),
            detail: format!(
                "{overflowed} datagrams that had arrived were dropped by the kernel, because pubmark did not read its \
                 sockets in time; messages in them that were not repeated count as lost"
            ),
        });
    }
    if *library_overflowed > 0 {
        drops.push(Deviation {
            name: "library-datagrams-overflowed".to_owned(),
            detail: format!(
                "{library_overflowed} datagrams that had arrived were dropped by the kernel, because the client library did \
                 not read its sockets in time; messages in them that were not repeated count as lost"
            ),
        });
    }
    drops
}

/// Messages that a server may have taken for repetitions. pubmark's own forgets an identifier before it comes round.
fn ids_reused(counters: &Counters) -> Option<Deviation> {
    let messages = counters.ids_reused;
    (messages > 0).then(|| Deviation {
        name: "message-ids-reused".to_owned(),
        detail: format!(
            "{messages} messages (blocks count, too) had an identifier that their session had used less than 247 s before: \
             there are 65,536 of them, enough for 265 messages per second and session; a server that remembers identifiers \
             that long (RFC 7252 §4.4) acknowledges such a message and does not publish it, and it counts as lost"
        ),
    })
}

fn sent_means(means: capabilities::SentMeans) -> SentMeans {
    match means {
        capabilities::SentMeans::Wire => SentMeans::Wire,
        capabilities::SentMeans::HandedOver => SentMeans::HandedOver,
    }
}

/// The current wall-clock time, for the name of a run's folder.
pub fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(pubmark_protocol::clock::realtime_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pubmark_dropped_is_a_deviation() {
        let names = |missed: u64, overflowed: u64| {
            let counters = Counters { missed, overflowed, ..Counters::default() };
            own_drops(&counters).into_iter().map(|deviation| deviation.name).collect::<Vec<_>>()
        };
        assert!(names(0, 0).is_empty());
        assert_eq!(names(1, 0), ["messages-missed"]);
        assert_eq!(names(0, 1), ["datagrams-overflowed"]);
        assert_eq!(names(1, 1), ["messages-missed", "datagrams-overflowed"]);
        let counters = Counters { library_overflowed: 7, ..Counters::default() };
        assert!(own_drops(&counters)[0].detail.starts_with("7 datagrams"), "of a library");
    }

    #[test]
    fn identifiers_that_came_round_too_early_are_a_deviation() {
        assert_eq!(ids_reused(&Counters::default()), None);
        let found = ids_reused(&Counters { ids_reused: 7, ..Counters::default() });
        assert!(
            found.is_some_and(|found| found.name == "message-ids-reused" && found.detail.starts_with("7 messages"))
        );
    }

    #[test]
    fn memory_is_divided_among_clients_that_were_connected_at_the_same_time() {
        assert_eq!(sessions_at_once(Some(387), 542, true), Some(387));
        assert_eq!(sessions_at_once(None, 542, false), Some(542), "on nodes, and nobody left");
        assert_eq!(sessions_at_once(None, 542, true), None, "on nodes");
    }

    #[test]
    fn a_session_of_two_connections_counts_twice() {
        assert_eq!(connections_of(387, 542, 542), Some(387), "one connection each");
        assert_eq!(connections_of(542, 542, 742), Some(742));
        assert_eq!(connections_of(387, 542, 742), None, "which of them were connected is not known");
        assert_eq!(connections_of(0, 0, 0), Some(0));
    }

    #[test]
    fn memory_is_divided_among_connections_only_where_the_quotient_says_something() {
        let grown = |bytes: u64| Usage {
            idle_rss_bytes: Some(4_000_000),
            peak_rss_bytes: 4_000_000 + bytes,
            ..Usage::default()
        };
        assert_eq!(bytes_per_connection(&grown(2_000_000), 200), Some(10_000.0));
        assert_eq!(bytes_per_connection(&grown(2_000_000), 99), None, "some pages among few connections");
        assert_eq!(bytes_per_connection(&grown(19_999), 200), None, "memory that the system already had");
        let shrunk = Usage { idle_rss_bytes: Some(5_000_000), peak_rss_bytes: 4_000_000, ..Usage::default() };
        assert_eq!(bytes_per_connection(&shrunk, 200), None);
        let no_idle = Usage { peak_rss_bytes: 4_000_000, ..Usage::default() };
        assert_eq!(bytes_per_connection(&no_idle, 200), None, "the system ran before pubmark");
    }
}
