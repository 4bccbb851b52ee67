//! May a run's figures be believed? [`judge`] answers from the figures alone: the same record always gets the same verdict.
//!
//! The rules stand in one table, [`rules::RULES`]; each is a function from the figures to a [`Finding`].

mod books;
mod faults;
mod generator;
mod limits;
mod links;
mod nodes;
mod pairs;
mod requests;
pub mod rules;
mod samples;
pub mod subscriptions;
mod system;
#[cfg(test)]
mod tests;
pub mod usable;

pub use limits::Limits;

use crate::cost::{LimitEffect, Usage};
use crate::faults::FaultFigures;
use crate::links::LinkFigures;
use crate::nodes::{LostWorker, NodeRow};
use crate::record::{
    Check, Connections, Delivery, Environment, GeneratorHealth, PairCounts, ReactionCounts, Reason, Record, Settings,
    Status, Summary, SystemInfo, Verdict, VerdictStatus, WorkloadInfo,
};
use crate::requests::RequestFigures;
use crate::tables::{Breakdown, PairRow};

/// What opens a reason that makes a run invalid because our side was too slow.
pub const GENERATOR_LIMITED: &str = "generator-limited";

/// The figures that a verdict rests on.
#[derive(Clone, Copy, Debug)]
pub struct VerdictInput<'a> {
    /// Whether the run came to its end.
    pub status: Status,
    /// Settings of the run.
    pub settings: &'a Settings,
    /// What was sent by whom.
    pub workload: &'a WorkloadInfo,
    /// Connections and subscriptions.
    pub connections: &'a Connections,
    /// Messages by what made them due.
    pub reactions: Option<&'a ReactionCounts>,
    /// What was measured.
    pub system: &'a SystemInfo,
    /// Its CPU and memory, where they are ours to see.
    pub system_usage: Option<&'a Usage>,
    /// What its limits did.
    pub limits: Option<&'a LimitEffect>,
    /// [`Record::system_drain_wait_ns`].
    pub system_drain_wait_ns: Option<u64>,
    /// The books.
    pub delivery: &'a Delivery,
    /// Bytes still unsent in our sockets at the end.
    pub socket_unsent_bytes: u64,
    /// [`Record::held_bytes`].
    pub held_bytes: u64,
    /// Bytes on their way from the system when the drain was over, where that is known.
    pub system_unsent_bytes: Option<u64>,
    /// The books by device type.
    pub by_type: &'a [Breakdown],
    /// Delivery − due.
    pub latency_us: Option<&'a Summary>,
    /// Delivery − write start.
    pub service_latency_us: Option<&'a Summary>,
    /// Ready − due.
    pub scheduler_lag_us: Option<&'a Summary>,
    /// Upper bound of the time between arrival at our socket and our read.
    pub receive_lateness_us: Option<&'a Summary>,
    /// A client library reads the sockets.
    pub reads_by_library: bool,
    /// What became of requests.
    pub requests: Option<&'a RequestFigures>,
    /// Emulated links.
    pub links: Option<&'a LinkFigures>,
    /// Faults.
    pub faults: Option<&'a FaultFigures>,
    /// Nodes of the run; none where there are none.
    pub nodes: &'a [NodeRow],
    /// Worker processes that were lost in a run without nodes.
    pub lost_workers: &'a [LostWorker],
    /// Writer–reader pairs, where there is no broker.
    pub pairs: Option<PairCounts>,
    /// From node to node.
    pub by_pair: &'a [PairRow],
    /// CPU of our threads.
    pub generator: &'a GeneratorHealth,
    /// CPU and memory of pubmark.
    pub generator_usage: Option<&'a Usage>,
    /// The machine.
    pub environment: &'a Environment,
}

impl<'a> VerdictInput<'a> {
    /// The figures of a record; its own `verdict` plays no part.
    pub fn of(record: &'a Record) -> VerdictInput<'a> {
        VerdictInput {
            status: record.status,
            settings: &record.settings,
            workload: &record.workload,
            connections: &record.connections,
            reactions: record.reactions.as_ref(),
            system: &record.system,
            system_usage: record.resources.system.as_ref(),
            limits: record.resources.limits.as_ref(),
            system_drain_wait_ns: record.system_drain_wait_ns,
            delivery: &record.delivery,
            socket_unsent_bytes: record.socket_unsent_bytes,
            held_bytes: record.held_bytes,
            system_unsent_bytes: record.system_unsent_bytes,
            by_type: &record.by_type,
            latency_us: record.latency_us.as_ref(),
            service_latency_us: record.service_latency_us.as_ref(),
            scheduler_lag_us: record.scheduler_lag_us.as_ref(),
            receive_lateness_us: record.receive_lateness_us.as_ref(),
            reads_by_library: record.sent_means == "handed-over",
            requests: record.requests.as_ref(),
            links: record.links.as_ref(),
            faults: record.faults.as_ref(),
            nodes: &record.nodes,
            lost_workers: &record.lost_workers,
            pairs: record.pairs,
            by_pair: &record.by_pair,
            generator: &record.generator,
            generator_usage: record.resources.generator.as_ref(),
            environment: &record.environment,
        }
    }
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it comes to.
    pub status: VerdictStatus,
    /// Measured value with its unit, limits named.
    pub finding: String,
    /// What to do about it; empty where the rule is kept.
    pub hint: String,
}

impl Finding {
    fn valid(finding: String) -> Finding {
        Finding { status: VerdictStatus::Valid, finding, hint: String::new() }
    }

    fn new(status: VerdictStatus, finding: String, hint: &str) -> Finding {
        let hint = if status == VerdictStatus::Valid { String::new() } else { hint.to_string() };
        Finding { status, finding, hint }
    }
}

/// Applies every rule that concerns the run. The status is the worst of the findings.
pub fn judge(input: &VerdictInput) -> Verdict {
    let mut verdict = Verdict { status: VerdictStatus::Valid, reasons: Vec::new(), checks: Vec::new() };
    for rule in rules::RULES {
        let Some(found) = (rule.judge)(input) else { continue };
        verdict.status = verdict.status.max(found.status);
        if found.status != VerdictStatus::Valid {
            verdict.reasons.push(Reason {
                code: rule.code.to_string(),
                status: found.status,
                text: reason_text(rule.judges_generator, &found),
                hint: found.hint,
            });
        }
        verdict.checks.push(Check {
            code: rule.code.to_string(),
            name: rule.name.to_string(),
            status: found.status,
            finding: found.finding,
        });
    }
    // Worst first; equal ones stay in the table's order.
    verdict.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.status));
    verdict
}

fn reason_text(judges_generator: bool, found: &Finding) -> String {
    match (judges_generator, found.status) {
        (true, VerdictStatus::Invalid) => format!("{GENERATOR_LIMITED}: {}", found.finding),
        (true, _) => format!("generator in doubt: {}", found.finding),
        (false, _) => found.finding.clone(),
    }
}
