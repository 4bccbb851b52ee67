//! `--dry-run` of an experiment: its plan and its duration; nothing is started.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubmark_experiment::Machines;
use pubmark_experiment::experiment::outline::{self, Outline};
use pubmark_experiment::experiment::pace::about;
use pubmark_experiment::experiment::planning::{Cell, Plan};
use pubmark_experiment::experiment::quiet;
use pubmark_model::placement::NodeLabels;
use pubmark_model::plan::{Plan as RunPlan, PlanOptions};
use pubmark_runner::progress_text::seconds;
use pubmark_runner::{ClientNeeds, PreparedRun, RunError};

use super::{images, run};

/// Duration of the probes of a run's links.
const PROBING: Duration = Duration::from_secs(2);

/// The plan as text, without measurements.
pub fn text(plan: &Plan, machines: &Machines) -> String {
    outline(plan, machines, None) + "\n" + &cells(plan) + &cautions(plan)
}

/// The plan as text, with the load of this machine and whether it can generate the loads of the plan; each measurement takes
/// a second.
///
/// # Errors
/// This machine cannot be measured.
pub fn on_this_machine(plan: &Plan, machines: &Machines, stop: &AtomicBool) -> Result<String, RunError> {
    // Must be measured before anything else uses the machine.
    let share = quiet::share(stop);
    let runs = plan.cells.iter().filter_map(|cell| cell.run.as_deref().ok());
    let images = images::lines(runs);
    Ok(outline(plan, machines, share) + "\n" + &cells(plan) + &images + &machine(plan, machines)? + &cautions(plan))
}

/// `share` is the share of this machine's CPU time that other processes use, if known.
fn outline(plan: &Plan, machines: &Machines, share: Option<f64>) -> String {
    let outline = Outline {
        experiment: &plan.experiment,
        reading: plan.reading(),
        machines: machines.count(),
        cells: plan.cells.len(),
        refused: plan.cells.iter().filter(|cell| cell.run.is_err()).count(),
        runs: plan.runs().count() as u32,
        time: format!("about {}{}{}", about(least(plan)), busy(plan, share), waiting(plan)),
    };
    outline.rows().iter().map(|(name, value)| format!("  {name:<12}{value}\n")).collect()
}

fn cells(plan: &Plan) -> String {
    let line = |cell: &Cell| {
        let label = &cell.planned.label;
        match &cell.run {
            Ok(run) => format!("✓ {label:<54}schedule {}\n", run.schedule.hash),
            Err(refusal) => format!("✗ {label}\n  {}: {}\n", refusal.kind.words(), refusal.text),
        }
    };
    plan.cells.iter().map(line).collect()
}

fn cautions(plan: &Plan) -> String {
    plan.cautions.iter().map(|caution| format!("\n{caution}\n")).collect()
}

/// Time of all runs if no sent message is missing; for runs behind links it includes their probes.
pub fn least(plan: &Plan) -> Duration {
    outline::least(&plan.experiment, plan.runs().count() as u32) + PROBING * linked_runs(plan)
}

/// Additional time, once, if the machine is busy.
fn busy(plan: &Plan, share: Option<f64>) -> String {
    let asked = &plan.experiment.quiet_machine;
    match share {
        Some(share) if share > asked.below && !asked.within.is_zero() => {
            let used = (share * 100.0).round();
            format!(", and up to {} once: others use {used} % of the machine now", seconds(asked.within))
        }
        _ => String::new(),
    }
}

/// Possible additional time: behind links the drain lasts its full length if messages are missing.
fn waiting(plan: &Plan) -> String {
    let more = plan.experiment.drain * linked_runs(plan);
    if more.is_zero() {
        return String::new();
    }
    format!(", up to {} more if messages stay missing behind links", about(more))
}

/// Number of runs of cells that have a group behind a link.
fn linked_runs(plan: &Plan) -> u32 {
    let linked = |cell: &usize| plan.cells[*cell].run.as_ref().is_ok_and(|run| !run.workload.links_in_use().is_empty());
    plan.runs().map(|turn| turn.cell).filter(linked).count() as u32
}

/// The first run of each load, with its cell's label. Connections, ports and memory depend on the protocol and on how many nodes share
/// them, too, and the largest packet on the system.
fn loads(plan: &Plan) -> Vec<(&str, &PreparedRun)> {
    let mut seen = BTreeSet::new();
    plan.cells
        .iter()
        .filter_map(|cell| Some((cell.planned.label.as_str(), &**cell.run.as_ref().ok()?)))
        .filter(|(_, run)| {
            let pair = run.protocol_pair;
            let protocols = [pair.publish, pair.subscribe].map(|protocol| protocol.capabilities.name);
            let load = (run.schedule.hash.clone(), run.fleet.devices().len(), run.spec.node_count());
            seen.insert((load, protocols, run.wanted.is_encrypted(), run.wanted.packet_limit_bytes()))
        })
        .collect()
}

/// Whether this machine can generate each load; cells with the same load are checked once.
fn machine(plan: &Plan, machines: &Machines) -> Result<String, RunError> {
    let runs = loads(plan);
    if runs.is_empty() {
        return Ok("\n  nothing of it can be run here\n".to_owned());
    }
    let machine = run::this_machine()?;
    let mut text = String::from("\n");
    for (label, run) in runs {
        let options = PlanOptions {
            nodes: run.spec.node_count(),
            labels: run.spec.node_labels(),
            warmup: run.spec.window.warmup,
            duration: plan.experiment.duration,
            tls: run.wanted.is_encrypted(),
            second_connection: run.protocol_pair.second_connection(),
            packet_limit_bytes: run.wanted.packet_limit_bytes(),
        };
        let nodes = NodeLabels { nodes: options.nodes, labels: &options.labels };
        let needs = ClientNeeds::of(&run.spec, &run.workload, nodes, &run.wanted, run.protocol_pair);
        let who = match machines.count() {
            Some(_) if options.nodes > 1 => format!("{} nodes like this machine", options.nodes),
            _ => "this machine".to_owned(),
        };
        let verdicts = run::verdicts(RunPlan::new(&run.workload, &options), &needs, &machine);
        let missing: Vec<&str> = verdicts.iter().filter(|verdict| !verdict.ok).map(|verdict| &*verdict.what).collect();
        text.push_str(&match missing.is_empty() {
            true => format!("  {who} can carry the load of `{label}`, as far as can be told\n"),
            false => format!("  {who} cannot carry the load of `{label}`: {}\n", missing.join(", ")),
        });
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use pubmark_experiment::experiment::definition;
    use pubmark_runner::Host;

    use super::*;

    #[test]
    fn a_load_is_checked_once_over_each_protocol() {
        let planned = |axes: &str| {
            let text = format!("{{name: t, workload: hello, duration: 1s, axes: {{system: builtin, {axes}}}}}");
            let experiment = definition::parse(&text, Path::new("")).unwrap();
            Plan::new(experiment, Path::new(""), &Host::with_program("pubmark"), &Machines::default()).unwrap()
        };
        let labels = |plan: &Plan| loads(plan).iter().map(|(label, _)| (*label).to_owned()).collect::<Vec<_>>();
        assert_eq!(labels(&planned("qos: [0, 1]")), ["builtin, QoS 0"]);
        let of_each = ["builtin, mqtt311, QoS 0", "builtin, mqtt5, QoS 0"];
        assert_eq!(labels(&planned("protocol: [mqtt311, mqtt5], qos: [0, 1]")), of_each);
        assert_eq!(labels(&planned("nodes: [1, 2]")).len(), 2, "each of two nodes has half of the clients");
    }
}
