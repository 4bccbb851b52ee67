//! Faults of a run: their times, validation, injection, and figures in the record.

mod conductor;
mod figures;
mod progress;

use std::sync::Arc;
use std::time::Duration;

use pubmark_engine::faults::{BreakConnections, PlannedFault};
use pubmark_model::fault::{self, Fault, FaultKind, Occurrence, Scope};
use pubmark_model::workload::Workload;

use crate::error::RunError;
use crate::target::CheckedTarget;
use pubmark_protocols::ProtocolPair;

pub use conductor::{FaultInjector, FaultTimes};
pub use figures::figures;
pub use progress::FaultProgress;

/// The faults of a workload in a run of this length, in order of time.
///
/// # Errors
/// They overlap, or do not fit into the window.
pub fn occurrences(workload: &Workload, seed: u64, window: Duration) -> Result<Arc<[Occurrence]>, RunError> {
    fault::occurrences(&workload.faults, seed, window).map(Into::into).map_err(|why| {
        RunError::input(why).hint("`--fault KIND:at=TIME,for=TIME` in place of the workload's, or `--fault none`")
    })
}

/// The same in the engine's form.
pub fn planned(workload: &Workload, occurrences: &[Occurrence]) -> Arc<[PlannedFault]> {
    let plan = |occurrence: &Occurrence| {
        let fault = &workload.faults[occurrence.fault];
        let breaks = fault.kind.scope() == Scope::Connections;
        PlannedFault {
            at_ns: occurrence.at_ns,
            length_ns: occurrence.length_ns,
            connections: breaks.then(|| BreakConnections {
                silent: fault.kind == FaultKind::Cut,
                share: fault.share,
                group: fault.group.clone(),
            }),
        }
    };
    occurrences.iter().map(plan).collect()
}

/// Refuses faults that a run cannot have, before anything starts.
///
/// # Errors
/// A system that pubmark does not start, clients whose connections belong to a library, or a group without a link.
pub fn validate(workload: &Workload, protocol_pair: ProtocolPair, wanted: &CheckedTarget) -> Result<(), RunError> {
    workload.faults.iter().try_for_each(|fault| match fault.kind.scope() {
        Scope::System => of_system(fault, wanted),
        Scope::Connections => of_connections(fault, protocol_pair),
        Scope::Links => of_links(fault, workload),
    })
}

fn of_system(fault: &Fault, wanted: &CheckedTarget) -> Result<(), RunError> {
    let kind = fault.kind.as_str();
    let refused = |why: String, hint: &str| Err(RunError::unsupported(why).hint(hint));
    match wanted {
        CheckedTarget::External { .. } => refused(
            format!("`{kind}` of a system that pubmark did not start is not pubmark's to do"),
            "`--system NAME` in place of `--endpoint`; `reset` and `cut` break connections to any system",
        ),
        CheckedTarget::Brokerless { .. } => refused(
            format!("`{kind}` breaks a broker, and there is none: clients meet without one"),
            "a system with a broker (`pubmark list systems`)",
        ),
        CheckedTarget::Started { options, .. } => {
            let servers = options.topology.brokers.max(1);
            match fault.server {
                Some(number) if number > servers => refused(
                    format!("there is no server {number}: the system has {servers}"),
                    "leave `server` out for all",
                ),
                _ => Ok(()),
            }
        }
    }
}

fn of_connections(fault: &Fault, protocol_pair: ProtocolPair) -> Result<(), RunError> {
    match [protocol_pair.publish, protocol_pair.subscribe].into_iter().find(|side| !side.breaks) {
        None => Ok(()),
        Some(side) => Err(RunError::unsupported(format!(
            "`{}` breaks connections of pubmark's own, and clients over {} have none",
            fault.kind.as_str(),
            side.capabilities.title
        ))
        .hint("faults of the system (`kill`, `restart`, `pause`) and of links go with every protocol")),
    }
}

fn of_links(fault: &Fault, workload: &Workload) -> Result<(), RunError> {
    let in_use = workload.links_in_use();
    if let Some(link) = &fault.link {
        return match in_use.iter().any(|(known, _)| known.name == *link) {
            true => Ok(()),
            false => Err(RunError::unsupported(format!("no group is behind a link `{link}` that could go down"))
                .hint(format!("`link: {link}` in a group of the workload, or `--link GROUP={link}`"))),
        };
    }
    let group = fault.group.as_deref().unwrap_or_default();
    let devices = workload.devices.iter().map(|found| (&found.name, &found.client, &found.link));
    let all = devices.chain(workload.subscribers.iter().map(|found| (&found.name, &found.client, &found.link)));
    let mut meant = all.filter(|(name, client, _)| *name == group || client.as_deref() == Some(group));
    match meant.any(|(_, _, link)| link.is_some()) {
        true => Ok(()),
        false => Err(RunError::unsupported(format!("`{group}` is not behind a link, so nothing can cut it off"))
            .hint(format!("`link: NAME` in the group, or `--link {group}=NAME` (`pubmark list links`)"))),
    }
}
