//! Machines that join the runs of a choice. They join once, before the first run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_experiment::{Machines, Observer};
use pubmark_runner::spec::Nodes;
use pubmark_runner::{JoinedNodes, RunError};

use crate::candidate::{Candidate, Runs};
use crate::requirements::Requirements;

impl Requirements {
    /// The machines that these runs need; they join where `at` says.
    pub fn machines(&self, at: Machines) -> Machines {
        let nodes = Nodes { nodes: self.nodes, observers: self.observers, ..at.nodes };
        let (system_host, system_node) = (self.system_host, self.system_node.clone());
        Machines { nodes, system_host, system_node, joined: at.joined }
    }

    /// Refuses numbers of machines that are out of range, and settings of which one is too many.
    pub(crate) fn check_machines(&self) -> Result<(), RunError> {
        let pairs = [
            (("nodes", self.nodes.is_some()), ("local_nodes", self.local_nodes.is_some())),
            (("system_host", self.system_host.is_some()), ("system_node", self.system_node.is_some())),
        ];
        if let Some(((one, _), (other, _))) = pairs.into_iter().find(|((_, one), (_, other))| *one && *other) {
            return Err(
                RunError::input(format!("`{one}` and `{other}` exclude each other")).hint("leave one of them out")
            );
        }
        let ranges = [("nodes", self.nodes, 1_000), ("observers", self.observers, 100)];
        let wrong =
            |(_, count, most): &(&str, Option<u16>, u16)| count.is_some_and(|count| count == 0 || count > *most);
        match ranges.into_iter().find(wrong) {
            Some((name, count, most)) => {
                let count = count.unwrap_or_default();
                Err(RunError::input(format!("`{name}` is {count}: it takes 1 to {most}")).hint(format!("`{name}: 2`")))
            }
            None => Ok(()),
        }
    }
}

/// Waits for the machines, and lets the runs of all candidates use them; `None` if everything is on this one, or if nothing is run.
///
/// # Errors
/// Machines did not join in time, a run cannot use them, or `stop` was set.
pub fn join(
    candidates: &mut [Candidate],
    machines: &Machines,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Option<Arc<JoinedNodes>>, RunError> {
    if candidates.iter().all(|candidate| candidate.runs.is_err()) {
        return Ok(None);
    }
    let runs = candidates.iter().filter_map(|candidate| Some(candidate.runs.as_ref().ok()?.spec()));
    let Some(joined) = machines.join(runs, stop, observer)? else { return Ok(None) };
    for candidate in candidates {
        let Ok(runs) = &mut candidate.runs else { continue };
        let label = &candidate.label;
        share(runs, &joined).map_err(|error| error.during(format!("candidate `{label}` cannot be run")))?;
    }
    Ok(Some(joined))
}

fn share(runs: &mut Runs, joined: &Arc<JoinedNodes>) -> Result<(), RunError> {
    let recovery = runs.recovery.iter_mut().filter_map(|run| run.as_mut().ok());
    [&mut runs.screening, &mut runs.race].into_iter().chain(recovery).try_for_each(|run| run.use_nodes(joined))
}
