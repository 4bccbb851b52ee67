//! Sentences about a record that several reports share.

mod client;
mod connecting;
mod content;
mod custom;
mod efficiency;
mod facts;
mod faults;
mod headroom;
mod latency_breakdown;
mod links;
mod nodes;
mod percentiles;
mod requests;
mod shared;
mod sites;
mod transform;
mod trust;

use pubmark_record::content::FilterPlace;
use pubmark_record::latency::{LatencyBounds, upper};
use pubmark_record::record::{Delivery, Record, Status, Summary, VerdictStatus};
use pubmark_record::wanted::prevented;

use crate::numbers::{TimeUnit, count, counted, percentage, significant};

pub use client::*;
pub use connecting::*;
pub use content::*;
pub use custom::*;
pub use efficiency::*;
pub use facts::*;
pub use faults::*;
pub use headroom::*;
pub use latency_breakdown::*;
pub use links::*;
pub use nodes::*;
pub use percentiles::*;
pub use requests::*;
pub use shared::*;
pub use sites::*;
pub use transform::*;
pub use trust::*;

/// Sign of a figure that the verdict of its run excludes, the same in every report.
pub const UNUSABLE: &str = "✗";
/// What the sign means.
pub const UNUSABLE_MEANS: &str = "of an invalid run: not to be quoted";

/// The verdict as one word.
pub fn verdict_word(status: VerdictStatus) -> &'static str {
    status.as_str()
}

/// The evidence for a valid verdict, as a fragment of a sentence.
pub fn valid_because(record: &Record) -> String {
    let mut parts = vec![format!("{} checks passed", record.verdict.checks.len())];
    let p99 = |summary: &Option<Summary>| summary.as_ref().and_then(|summary| summary.p99);
    if let Some(lag) = p99(&record.latency.scheduler_lag) {
        parts.push(format!("scheduler lag p99 {}", crate::numbers::time(Some(lag))));
    }
    if let Some(lateness) = p99(&record.latency.receive_lateness) {
        parts.push(format!("receive lateness p99 {}", crate::numbers::time(Some(lateness))));
    }
    parts.join(", ")
}

/// The workload in one line: devices, subscribers, topics, rate, QoS levels.
pub fn workload(record: &Record) -> String {
    let workload = &record.workload;
    let clients =
        [counted(workload.subscribers, "subscriber", "subscribers"), counted(workload.topics, "topic", "topics")];
    load(record, &clients)
}

/// The workload in a few words: devices, rate, QoS levels, duration.
pub fn short_workload(record: &Record) -> String {
    format!("{}, {}", load(record, &[]), crate::numbers::seconds(record.settings.duration_s))
}

/// Devices, the items in `besides`, rate, QoS levels.
fn load(record: &Record, besides: &[String]) -> String {
    let workload = &record.workload;
    let scale = (workload.scale != 1).then(|| format!("scale {}", workload.scale));
    let which: Vec<String> = workload.reading().map(str::to_owned).into_iter().chain(scale).collect();
    let which = if which.is_empty() { String::new() } else { format!(" ({})", which.join(", ")) };
    let rate = format!("{} messages/s", significant(record.throughput.offered_per_s));
    let levels = (!workload.qos.is_empty()).then(|| workload.typed_levels());
    let devices = counted(workload.devices, "device", "devices");
    let parts: Vec<String> =
        std::iter::once(devices).chain(besides.iter().cloned()).chain([rate]).chain(levels).collect();
    format!("{}{which}: {}", workload.name, parts.join(", "))
}

/// The system in one line.
pub fn system(record: &Record) -> String {
    let system = &record.system;
    let name = system_name(system);
    let profile = system.profile.as_ref().map_or_else(String::new, |profile| format!(", {profile} profile"));
    let tls = if record.settings.tls { " over TLS" } else { "" };
    let caution = if system.ranked { "" } else { ": a demonstration, not a result to quote" };
    let node = system.node.as_ref().map_or_else(String::new, |node| format!(" on node `{node}`"));
    format!("{name}{profile}, {}{tls} at {}{node}{caution}", record.protocol, system.endpoint)
}

/// Phases with their lengths, seed and schedule hash.
pub fn phases(record: &Record) -> String {
    let settings = &record.settings;
    let length = |seconds: f64| crate::numbers::seconds(seconds);
    let mut text = format!(
        "{} warm-up, {} measured; seed {}, schedule {}",
        length(settings.warmup_s),
        length(settings.duration_s),
        record.workload.seed,
        record.workload.schedule_hash.get(..12).unwrap_or(&record.workload.schedule_hash)
    );
    if record.run.repetitions > 1 {
        text.push_str(&format!("; repetition {} of {}", record.run.repetition, record.run.repetitions));
    }
    if record.run.status == Status::Interrupted {
        text.push_str("; interrupted");
    }
    text
}

/// A category of the message accounting with its name.
pub struct Outcome {
    /// Name as printed.
    pub name: &'static str,
    /// Meaning of the category.
    pub meaning: &'static str,
    /// Number of messages.
    pub count: u64,
}

/// Outcomes of the messages offered; they add up to `offered`.
pub fn sending_outcomes(books: &Delivery) -> Vec<Outcome> {
    let planned_offline = books.skipped_planned.saturating_sub(books.slowed);
    let mut outcomes = vec![
        outcome("sent", "handed to the system", books.sent),
        outcome("planned offline", "their device was planned offline", planned_offline),
        outcome("disconnected", "their device had lost its connection", books.skipped_disconnected),
        outcome("refused", "refused by the system or its limits", books.refused),
        outcome("unsent", "still waiting when the run ended", books.unsent),
    ];
    if books.slowed > 0 {
        outcomes.push(outcome("slowed", "left out: their device sent less after a message (`when`)", books.slowed));
    }
    outcomes
}

/// Outcomes of the messages expected; they add up to `expected`.
pub fn delivery_outcomes(books: &Delivery) -> Vec<Outcome> {
    vec![
        outcome("delivered", "arrived", books.delivered.saturating_sub(books.late)),
        outcome("late", "arrived more than 2 s after publishing ended or, if later, after it was due", books.late),
        outcome("lost", "did not arrive", books.lost),
        outcome("unknown", "did not arrive; their connection died before the acknowledgement", books.unknown),
    ]
}

/// Outcomes of a run that prevented deliveries before they were expected, as far as the share that was delivered counts
/// them.
pub fn prevented_outcomes(record: &Record) -> Vec<Outcome> {
    let books = &record.delivery.messages;
    let prevented = prevented(record, books);
    let is_prevented = |outcome: &Outcome| match outcome.name {
        "refused" | "unsent" | "disconnected" => prevented.not_sent > 0,
        "absent" => prevented.absent > 0,
        _ => false,
    };
    let all = sending_outcomes(books).into_iter().chain(further_counts(books));
    all.filter(|outcome| is_prevented(outcome) && outcome.count > 0).collect()
}

/// Whether deliveries of a device type were prevented. Tables of types have a column of all that was not delivered then:
/// what was lost is only a part of it.
pub fn has_prevented_by_type(record: &Record) -> bool {
    record.tables.by_type.iter().any(|row| prevented(record, &row.delivery).all() > 0)
}

/// Counts with their names in one text: `4 refused, 2 absent`.
pub fn named_counts(outcomes: &[Outcome]) -> String {
    let parts = outcomes.iter().map(|outcome| format!("{} {}", count(outcome.count), outcome.name));
    parts.collect::<Vec<String>>().join(", ")
}

/// Counts that are not part of the message accounting.
pub fn further_counts(books: &Delivery) -> Vec<Outcome> {
    vec![
        outcome("duplicated", "further copies", books.duplicated),
        outcome("out of order", "arrived after a later message of their stream", books.out_of_order),
        outcome("overlap", "further copies by a second matching filter", books.overlap),
        outcome("retained replay", "retained messages replayed on subscribing", books.retained_replay),
        outcome("truncated", "arrived shorter than they were sent", books.truncated),
        outcome("corrupt", "arrived changed: their `transform` could not be undone", books.corrupt),
        outcome("foreign", "messages of another run or client", books.foreign),
        outcome("absent", "sent while a subscription held no session", books.absent),
        outcome("after refusal", "refused, delivered all the same", books.delivered_after_refusal),
    ]
}

/// Counts that only some workloads or protocols have: wills, reactions, messages filtered by clients.
pub fn particular_counts(record: &Record) -> Vec<Outcome> {
    let mut counts = Vec::new();
    let books = &record.delivery.messages;
    if record.delivery.content.iter().any(|row| row.at == FilterPlace::Broker) {
        counts.push(outcome("filtered out", "not forwarded by the system: `where` is false", books.filtered_out));
        counts.push(outcome("unmatched", "forwarded by the system, although `where` is false", books.unmatched));
    }
    if let Some(wills) = record.connections.wills {
        counts.push(outcome("wills due", "connections with a will that ended without a goodbye", wills.due));
        if let Some(undetermined) = wills.undetermined.filter(|count| *count > 0) {
            let meaning = "connections with a will that ended without DISCONNECT before CONNACK was read, or at the end of \
                           the run";
            counts.push(outcome("wills undetermined", meaning, undetermined));
        }
        counts.push(outcome("wills received", "wills that arrived, once for each subscription", wills.delivered));
    }
    if let Some(reactions) = &record.delivery.reactions {
        counts.push(outcome("scheduled", "of those offered, by a schedule", reactions.scheduled));
        counts.push(outcome("triggered", "of those offered, in reaction to a delivery", reactions.triggered));
        counts.push(outcome("starved", "reactions without their trigger, which did not arrive", reactions.starved));
    }
    if let Some(filtered) = record.delivery.filtered {
        counts.push(outcome(
            "withheld",
            "not put on the wire by publishers: no subscriber had subscribed to them",
            filtered.withheld,
        ));
        counts.push(outcome("discarded", "arrived, but match no filter of their subscriber", filtered.discarded));
    }
    counts
}

fn outcome(name: &'static str, meaning: &'static str, count: u64) -> Outcome {
    Outcome { name, meaning, count }
}

/// A distribution of the record with its name and meaning.
pub struct Distribution<'a> {
    /// Name as printed.
    pub name: &'static str,
    /// Name in the record, without unit.
    pub key: &'static str,
    /// Start and end of the measured time, and whether the system or pubmark causes it.
    pub meaning: &'static str,
    /// Figures; for a latency, the measured ones (upper bounds).
    pub summary: Option<&'a Summary>,
    /// Lower bounds of a latency.
    pub lower: Option<&'a Summary>,
}

impl Distribution<'_> {
    /// A statistic of the distribution, without the unit's symbol: an interval if it has two bounds.
    pub fn text(&self, statistic: &Statistic, unit: TimeUnit) -> String {
        let lower = self.lower.filter(|_| statistic.name != NO_BOUND).and_then(statistic.get);
        unit.interval([lower, self.summary.and_then(statistic.get)])
    }
}

/// The statistic for which the bounds of the samples give no bounds.
const NO_BOUND: &str = "stddev";

/// The distributions of a record, in the order in which they are shown.
pub fn distributions(record: &Record) -> Vec<Distribution<'_>> {
    let mut distributions = vec![
        interval("latency", "latency", "due → delivery", &record.latency.total),
        interval("service latency", "service_latency", "write start → delivery", &record.latency.service),
        Distribution {
            name: "back-pressure wait",
            key: "backpressure",
            meaning: "ready → written: the system's, and our delay in noticing",
            summary: record.latency.backpressure.as_ref(),
            lower: record.latency.backpressure_lower.as_ref(),
        },
        distribution("scheduler lag", "scheduler_lag", "due → ready: ours", record.latency.scheduler_lag.as_ref()),
        distribution(
            "receive lateness",
            "receive_lateness",
            "arrival → our read, upper bound: ours",
            record.latency.receive_lateness.as_ref(),
        ),
        distribution(
            "kernel receive lateness",
            "kernel_receive_lateness",
            "kernel's receive stamp → our read: ours",
            record.latency.kernel_receive_lateness.as_ref(),
        ),
    ];
    if let Some(reactions) = &record.delivery.reactions {
        let chain = interval("chain latency", "chain_latency", CHAIN, &reactions.chain_latency);
        distributions.insert(2, chain);
    }
    distributions.extend(request_distributions(record));
    distributions
}

/// Start and end of the latency of a chain of reactions.
pub const CHAIN: &str = "root's due → delivery of a reaction";

fn distribution<'a>(
    name: &'static str,
    key: &'static str,
    meaning: &'static str,
    summary: Option<&'a Summary>,
) -> Distribution<'a> {
    Distribution { name, key, meaning, summary, lower: None }
}

fn interval<'a>(
    name: &'static str,
    key: &'static str,
    meaning: &'static str,
    bounds: &'a Option<LatencyBounds>,
) -> Distribution<'a> {
    let lower = bounds.as_ref().and_then(|bounds| bounds.lower.as_ref());
    Distribution { name, key, meaning, summary: upper(bounds), lower }
}

/// A statistic of a distribution.
pub struct Statistic {
    /// Name as printed.
    pub name: &'static str,
    /// Value, µs.
    pub get: fn(&Summary) -> Option<f64>,
}

/// The statistics shown in tables of distributions.
pub const STATISTICS: [Statistic; 11] = [
    Statistic { name: "min", get: |summary| Some(summary.min) },
    Statistic { name: "p25", get: |summary| summary.p25 },
    Statistic { name: "p50", get: |summary| summary.p50 },
    Statistic { name: "p75", get: |summary| summary.p75 },
    Statistic { name: "p90", get: |summary| summary.p90 },
    Statistic { name: "p95", get: |summary| summary.p95 },
    Statistic { name: "p99", get: |summary| summary.p99 },
    Statistic { name: "p99.9", get: |summary| summary.p999 },
    Statistic { name: "max", get: |summary| Some(summary.max) },
    Statistic { name: "mean", get: |summary| Some(summary.mean) },
    Statistic { name: "stddev", get: |summary| Some(summary.stddev) },
];

/// ` (70 % arrived)` where messages are missing, which have no latency; otherwise empty. `share` of the wanted deliveries
/// arrived.
pub fn share_arrived(share: Option<f64>) -> String {
    let of_some = share.filter(|share| *share < 1.0);
    of_some.map_or_else(String::new, |share| format!(" ({} arrived)", percentage(Some(share))))
}

/// The main finding about latency, in one sentence. `share` of the wanted deliveries arrived.
pub fn latency_finding(summary: Option<&Summary>, share: Option<f64>) -> String {
    let Some(summary) = summary else { return "No latency was measured.".to_string() };
    let time = |value| crate::numbers::time(Some(value));
    let mut parts: Vec<String> = Vec::new();
    if let Some(p50) = summary.p50 {
        let half = match share {
            Some(share) if share < 1.0 => {
                format!("{} of the messages arrived: half of these within", percentage(Some(share)))
            }
            _ => "half of the messages arrive within".to_string(),
        };
        parts.push(format!("{half} {}", time(p50)));
    }
    if let Some(p99) = summary.p99 {
        parts.push(format!("99 % within {}", time(p99)));
    }
    let mut text = parts.join(", ");
    let slowest = format!("the slowest of {} took {}", count(summary.count), time(summary.max));
    text = if text.is_empty() { slowest } else { format!("{text}; {slowest}") };
    sentence(&text)
}

/// The text with a capital first letter and a full stop.
pub fn sentence(text: &str) -> String {
    format!("{}.", capitalised(text))
}

/// The text with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}
