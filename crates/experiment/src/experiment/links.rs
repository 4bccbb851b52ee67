//! Links of experiments for a user without root privileges: all runs are in one user namespace.

use std::path::Path;

use pubmark_model::experiment::Experiment;
use pubmark_runner::target::CheckedTarget;
use pubmark_runner::{CheckedRun, Host, RunError, linked};

use super::planning::{self, Cell};
use crate::machines::Machines;

/// Lets a user without root privileges create the links of experiments, as [`pubmark_runner::RunSpec::claim_links`] does for one run:
/// from then on this process is in a separate network namespace, in which all runs are made. Call it before any thread is started;
/// it does nothing for root, and for experiments without links that this machine creates. Paths of the definitions are relative to
/// `folder`.
///
/// # Errors
/// What this machine lacks, or a cell that needs the network that the process would leave.
pub fn claim(
    experiments: &[Experiment],
    folder: Option<&Path>,
    host: Host,
    machines: &Machines,
) -> Result<Host, RunError> {
    if !linked::leaves_network() {
        return Ok(host);
    }
    let folder = planning::absolute(folder)?;
    let mut cells = vec![];
    for experiment in experiments {
        // An experiment that cannot be planned is refused by its plan, with the reason.
        cells.extend(planning::specified(experiment, &folder, &host, machines).unwrap_or_default());
    }
    match claiming(&cells)? {
        Some(run) => run.spec.claim_links(&run.workload, host),
        None => Ok(host),
    }
}

/// The run that claims the links for all; `None` if no cell is behind links of this machine. One to an endpoint starts the relay as well.
fn claiming(cells: &[Cell<Box<CheckedRun>>]) -> Result<Option<&CheckedRun>, RunError> {
    let runs = cells.iter().filter_map(|cell| Some((cell.planned.label.as_str(), cell.run.as_deref().ok()?)));
    let (behind_links, others): (Vec<_>, Vec<_>) =
        runs.partition(|(_, run)| linked::are_here(&run.spec, &run.workload));
    let Some((_, first)) = behind_links.first() else { return Ok(None) };
    if let Some((label, why)) = others.iter().find_map(|(label, run)| Some((label, needs_network(run)?))) {
        return Err(RunError::unsupported(format!(
            "without root, runs with links leave this machine's network, and `{label}` needs it: {why}"
        ))
        .hint("as root; or make the runs with links and those without in separate calls"));
    }
    let to_endpoint = behind_links.iter().find(|(_, run)| run.spec.target.endpoint.is_some());
    Ok(Some(to_endpoint.map_or(*first, |(_, run)| *run)))
}

/// Why a run without links needs this machine's network; `None` if it does not.
fn needs_network(run: &CheckedRun) -> Option<&'static str> {
    match &run.wanted {
        CheckedTarget::External { .. } => Some("its system is at an endpoint"),
        CheckedTarget::Brokerless { .. } => Some("its clients look for each other there"),
        _ if run.spec.nodes.nodes.is_some() || run.spec.target.node.is_some() => Some("machines join it"),
        CheckedTarget::Started { definition, options } => {
            // One without an engine is refused by its plan.
            let is_in_container = options.runs_in_container(definition) && run.check_installed().is_ok();
            is_in_container.then_some("its system runs in a container")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::definition;

    /// Endpoint of the run that claims the links of an experiment with these axes; empty for a system that is started.
    fn claimed(axes: &str) -> Result<Option<String>, RunError> {
        let text = format!("{{name: t, workload: hello, duration: 1s, warmup: 0s, axes: {{{axes}}}}}");
        let experiment = definition::parse(&text, Path::new("")).unwrap();
        let (host, machines) = (Host::with_program("pubmark"), Machines::default());
        let cells = planning::specified(&experiment, Path::new(""), &host, &machines).unwrap();
        Ok(claiming(&cells)?.map(|run| run.spec.target.endpoint.clone().unwrap_or_default()))
    }

    #[test]
    fn an_experiment_claims_the_links_of_any_cell_and_the_relay_of_an_endpoint() {
        let endpoint = "mqtt://127.0.0.1:9";
        let ours = format!("{{label: ours, endpoint: '{endpoint}'}}");
        assert_eq!(claimed("system: builtin, qos: [0, 1]").unwrap(), None);
        assert_eq!(claimed("system: builtin, link: [none, lte]").unwrap().as_deref(), Some(""));
        let both = claimed(&format!("system: [builtin, {ours}], link: lte")).unwrap();
        assert_eq!(both.as_deref(), Some(endpoint));
        assert_eq!(claimed(&format!("system: {ours}, qos: [0, 1]")).unwrap(), None);
        let error = claimed(&format!("system: [builtin, {ours}], link: [none, lte]")).unwrap_err().to_string();
        assert!(error.contains("needs it: its system is at an endpoint"), "{error}");
    }
}
