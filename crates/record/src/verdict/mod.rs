//! Judges whether a run's figures can be trusted. [`judge`] uses only the figures: the same record always gets the same
//! verdict.
//!
//! The rules are in one table, [`rules::RULES`]; each is a function from the figures to a [`Finding`].

mod books;
mod client_programs;
mod connections;
mod content;
mod faults;
mod generator;
pub(crate) mod limits;
mod links;
mod nodes;
mod pairs;
mod requests;
pub mod rules;
mod samples;
mod steal;
pub mod subscriptions;
mod system;
#[cfg(test)]
mod tests;
pub mod usable;

use crate::content::ContentRow;
use crate::cost::{Contention, HostUsage, LimitEffect, Usage};
use crate::delivery::DueTimeAudit;
use crate::faults::FaultFigures;
use crate::latency::upper;
use crate::links::LinkFigures;
use crate::nodes::{LostWorker, NodeRow};
use crate::record::{
    Check, CheckLimits, CheckUnit, Connections, Delivery, Environment, LeftAtEnd, OwnDrops, PairCounts, ReactionCounts,
    Reason, Record, Settings, ShardHealth, Status, Summary, SystemInfo, Verdict, VerdictStatus, WorkloadInfo,
};
use crate::requests::RequestFigures;
use crate::tables::{PairRow, TypeRow};
use crate::warnings::warnings;
use rules::Blame;

/// Prefix of a reason that makes a run invalid because pubmark was too slow.
pub const GENERATOR_LIMITED: &str = "generator-limited";

/// The figures on which a verdict is based.
#[derive(Clone, Copy, Debug)]
pub struct VerdictInput<'a> {
    /// Whether the run was completed.
    pub status: Status,
    /// Settings of the run.
    pub settings: &'a Settings,
    /// Length of the measured window, s: less than that of the settings in a run that ended early.
    pub window_s: f64,
    /// The workload: what was sent, and by which clients.
    pub workload: &'a WorkloadInfo,
    /// Connections and subscriptions.
    pub connections: &'a Connections,
    /// Messages by what made them due.
    pub reactions: Option<&'a ReactionCounts>,
    /// The system under test.
    pub system: &'a SystemInfo,
    /// CPU and memory of the system, where pubmark can observe them.
    pub system_usage: Option<&'a Usage>,
    /// Competition for CPU on the machine of this process.
    pub contention: Option<&'a Contention>,
    /// Effects of the system's resource limits.
    pub limits: Option<&'a LimitEffect>,
    /// Message accounting.
    pub delivery: &'a Delivery,
    /// Of the refused messages, those larger than the system accepts.
    pub too_large: u64,
    /// Of the foreign messages, those that no publisher sent and that are in the run's figures; `None` if not counted.
    pub never_sent: Option<u64>,
    /// Due times that messages carried, compared with the schedule's; `None` in older records.
    pub due_times: Option<DueTimeAudit>,
    /// Data that was still in transit when the run ended.
    pub at_end: &'a LeftAtEnd,
    /// What pubmark itself dropped on arrival.
    pub own_drops: OwnDrops,
    /// Messages by device type.
    pub by_type: &'a [TypeRow],
    /// Delivery − due.
    pub latency: Option<&'a Summary>,
    /// Delivery − write start.
    pub service_latency: Option<&'a Summary>,
    /// Ready − due.
    pub scheduler_lag: Option<&'a Summary>,
    /// Upper bound of the time between arrival at our socket and our read.
    pub receive_lateness: Option<&'a Summary>,
    /// A client library writes to the sockets of the devices.
    pub writes_by_library: bool,
    /// A client library reads the sockets of the subscribers.
    pub reads_by_library: bool,
    /// Outcomes of requests.
    pub requests: Option<&'a RequestFigures>,
    /// Emulated links.
    pub links: Option<&'a LinkFigures>,
    /// Faults.
    pub faults: Option<&'a FaultFigures>,
    /// Nodes of the run; empty without nodes.
    pub nodes: &'a [NodeRow],
    /// Worker processes that were lost in a run without nodes.
    pub lost_workers: &'a [LostWorker],
    /// Writer–reader pairs, in a system without a broker.
    pub pairs: Option<PairCounts>,
    /// What subscribers filtered by content.
    pub content: &'a [ContentRow],
    /// Rows by pair of nodes.
    pub by_pair: &'a [PairRow],
    /// Threads of pubmark.
    pub threads: &'a [ShardHealth],
    /// CPU and memory of pubmark.
    pub generator_usage: Option<&'a Usage>,
    /// CPU and memory of the client programs.
    pub program_usage: Option<&'a Usage>,
    /// The machine of this process.
    pub environment: &'a Environment,
    /// The machine of a system that runs elsewhere.
    pub host: Option<&'a HostUsage>,
}

impl<'a> VerdictInput<'a> {
    /// The figures of a record; its current `verdict` is not used.
    pub fn of(record: &'a Record) -> VerdictInput<'a> {
        let Record { workload, settings, connections, delivery, latency, cost, conditions, tables, .. } = record;
        VerdictInput {
            status: record.run.status,
            settings,
            window_s: record.window_s(),
            workload,
            connections,
            reactions: delivery.reactions.as_ref(),
            system: &record.system,
            system_usage: cost.system.as_ref(),
            contention: cost.contention.as_ref(),
            limits: cost.limits.as_ref(),
            delivery: &delivery.messages,
            too_large: delivery.too_large,
            never_sent: delivery.never_sent,
            due_times: delivery.due_times,
            at_end: &delivery.at_end,
            own_drops: delivery.own_drops,
            by_type: &tables.by_type,
            latency: upper(&latency.total),
            service_latency: upper(&latency.service),
            scheduler_lag: latency.scheduler_lag.as_ref(),
            receive_lateness: latency.receive_lateness.as_ref(),
            writes_by_library: record.protocol.writes_by_library(),
            reads_by_library: record.protocol.reads_by_library(),
            requests: record.requests.as_ref(),
            links: conditions.links.as_ref(),
            faults: conditions.faults.as_ref(),
            nodes: &tables.nodes,
            lost_workers: &tables.lost_workers,
            pairs: delivery.pairs,
            content: &delivery.content,
            by_pair: &tables.by_pair,
            threads: &cost.threads,
            generator_usage: cost.generator.as_ref(),
            program_usage: cost.client_programs.as_ref(),
            environment: &record.environment,
            host: cost.host.as_ref(),
        }
    }
}

/// Result of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Status that results from the rule.
    pub status: VerdictStatus,
    /// One sentence with the figures.
    pub text: String,
    /// What to do; empty where the rule is kept.
    pub hint: String,
    /// The figure that was judged, where there is one.
    pub measure: Option<Measure>,
}

/// The figure that a rule judges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Value of the figure.
    pub value: f64,
    /// Limits of the value.
    pub limits: CheckLimits,
    /// Unit of the value.
    pub unit: CheckUnit,
}

impl Measure {
    /// For a count that must be 0: `value` above 0 makes a run invalid.
    fn none_allowed(value: u64, unit: CheckUnit) -> Measure {
        Measure { value: value as f64, limits: CheckLimits { valid: 0.0, suspect: Some(0.0) }, unit }
    }

    /// For a figure that alone makes a run at most suspect.
    fn suspect_above(value: f64, valid: f64, unit: CheckUnit) -> Measure {
        Measure { value, limits: CheckLimits { valid, suspect: None }, unit }
    }
}

impl Finding {
    fn valid(text: String) -> Finding {
        Finding { status: VerdictStatus::Valid, text, hint: String::new(), measure: None }
    }

    fn new(status: VerdictStatus, text: String, hint: &str) -> Finding {
        let hint = if status == VerdictStatus::Valid { String::new() } else { hint.to_string() };
        Finding { status, text, hint, measure: None }
    }

    fn of(self, measure: Measure) -> Finding {
        Finding { measure: Some(measure), ..self }
    }
}

/// Sets the verdict and the warnings of a complete record.
pub fn assess(record: &mut Record) {
    record.verdict = judge(&VerdictInput::of(record));
    record.verdict.warnings = warnings(record);
}

/// Applies every rule that concerns the run. The status is the worst of the findings. Warnings are not included:
/// [`assess`] adds them.
pub fn judge(input: &VerdictInput) -> Verdict {
    let mut verdict = Verdict::default();
    for rule in rules::RULES {
        let Some(found) = (rule.judge)(input) else { continue };
        verdict.status = verdict.status.max(found.status);
        if found.status != VerdictStatus::Valid {
            verdict.reasons.push(Reason {
                code: rule.code.to_string(),
                status: found.status,
                text: reason_text(rule.blames, &found),
                hint: found.hint,
            });
        }
        verdict.checks.push(Check {
            code: rule.code.to_string(),
            name: rule.name.to_string(),
            status: found.status,
            value: found.measure.map(|measure| measure.value),
            limits: found.measure.map(|measure| measure.limits),
            unit: found.measure.map(|measure| measure.unit),
            text: found.text,
        });
    }
    // Worst first; the sort is stable, so equal ones remain in the order of the table.
    verdict.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.status));
    verdict
}

fn reason_text(blames: Blame, found: &Finding) -> String {
    match (blames, found.status) {
        (Blame::Generator, VerdictStatus::Invalid) => format!("{GENERATOR_LIMITED}: {}", found.text),
        (Blame::Generator, _) => format!("generator in doubt: {}", found.text),
        (Blame::Machine | Blame::Clients | Blame::System(_) | Blame::Run, _) => found.text.clone(),
    }
}
