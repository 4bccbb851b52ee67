//! The record of a choice from its candidates: who costs least, and what was not tested.

use std::time::Duration;

use pubmark_experiment::capacity::trial::Trials;
use pubmark_model::workload::Workload;
use pubmark_record::nodes::JoinedMachines;
use pubmark_record::record::{Environment, Status};
use pubmark_report::numbers;
use pubmark_runner::command_line;

use crate::candidate::{Runs, first, secret_parameters};
use crate::entry::Entry;
use crate::evidence::recovery_limit;
use crate::folder::ChoiceFolder;
use crate::race::Race;
use crate::ranking::{self, Qualified};
use crate::record::{CHOICE_SCHEMA_VERSION, Choice, RuleFigures, State};
use crate::requirements::Requirements;
use crate::rule::NOISE;

/// The record.
pub fn choice(
    race: &Race<'_>,
    folder: &ChoiceFolder,
    entries: &[Entry<'_>],
    stopped: &str,
    status: Status,
    took: Duration,
    environment: Environment,
) -> Choice {
    let requirements = race.requirements;
    let results: Vec<_> = entries.iter().map(|entry| entry.result(requirements.growth, stopped)).collect();
    let qualified: Vec<Qualified> = entries
        .iter()
        .zip(&results)
        .filter(|(_, result)| result.state == State::Qualifies)
        .map(|(entry, result)| Qualified::of(&result.label, entry.is_ranked(), &entry.costs))
        .collect();
    let contests = ranking::contests(&qualified);
    let secrets = secret_parameters(race.candidates);
    let runs = first(race.candidates);
    let mut objectives = race.limits();
    objectives.extend(requirements.recovery.map(recovery_limit));
    let rule = race.rule();
    Choice {
        schema_version: CHOICE_SCHEMA_VERSION,
        pubmark_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: folder.folder.name().to_owned(),
        command: command_line::shown(race.host.command.clone(), &secrets),
        started_at: folder.started_at().to_owned(),
        took_s: took.as_secs_f64(),
        status,
        requirements: requirements.without_secrets(&secrets),
        rule: RuleFigures {
            lead: rule.lead,
            noise: NOISE,
            wrong_failure: rule.chance_of_wrong_failure(objectives.len(), NOISE),
            wrong_pass: rule.chance_of_wrong_pass(1.0 - NOISE),
        },
        objectives,
        workload: runs.map_or(requirements.workload.name(), |runs| &runs.race.workload.name).to_owned(),
        devices: runs.map_or(0, |runs| runs.race.fleet.device_count() as u64),
        offered_per_s: runs.and_then(|runs| Trials::offered_per_s(&runs.race.workload)),
        recommendation: ranking::recommend(&qualified, &contests),
        contests,
        not_tested: not_tested(requirements, runs, &results),
        candidates: results,
        environment,
        nodes: JoinedMachines::new(requirements.nodes, requirements.system_node.as_deref()),
    }
}

/// What was required or is usual and was not tested.
fn not_tested(
    requirements: &Requirements,
    runs: Option<&Runs>,
    results: &[crate::record::CandidateResult],
) -> Vec<String> {
    let mut sentences = vec![];
    let unused = runs.map(|runs| untried(requirements, &runs.race.workload)).unwrap_or_default();
    if !unused.is_empty() {
        sentences.push(format!(
            "{}: candidates were chosen by what their definitions say; the workload does not use it",
            unused.join(", ")
        ));
    }
    if requirements.recovery.is_none() {
        sentences.push("what happens when a system is killed: `recovery` in the requirements tests it".to_owned());
    }
    if runs.is_some_and(|runs| runs.race.workload.links_in_use().is_empty()) {
        sentences.push("networks: no link was emulated (`--link`)".to_owned());
    }
    for result in results.iter().filter(|result| result.state == State::Qualifies && result.headroom.limit.is_none()) {
        sentences.push(format!("headroom of {}: {}", result.label, result.headroom.text));
    }
    if results.iter().any(|result| result.cost.is_some()) {
        sentences.push("ten times the fleet: its cost is estimated from other loads".to_owned());
    }
    if requirements.growth > 1.0 {
        sentences.push(format!(
            "more devices: the load of {} × came from the devices of this fleet, which sent more often",
            requirements.growth
        ));
    }
    let these = if requirements.nodes.is_some() || requirements.system_node.is_some() { "these" } else { "this one" };
    sentences.push(format!(
        "runs longer than {}, and other machines than {these}",
        numbers::seconds(requirements.window.duration.as_secs_f64())
    ));
    sentences
}

/// Needs that the workload does not use.
fn untried(requirements: &Requirements, workload: &Workload) -> Vec<&'static str> {
    use pubmark_model::workload::SessionKind::Persistent;
    let needs = &requirements.needs;
    let has_persistent = workload.devices.iter().any(|group| group.session == Persistent)
        || workload.subscribers.iter().any(|group| group.session == Persistent);
    let needed = [
        ("retained messages", needs.retained, workload.devices.iter().any(|group| group.retain)),
        (
            "shared subscriptions",
            needs.shared_subscriptions,
            workload.subscribers.iter().any(|group| group.shared.is_some()),
        ),
        ("persistent sessions", needs.persistent_sessions, has_persistent),
    ];
    needed.into_iter().filter(|(_, is_needed, is_used)| *is_needed && !is_used).map(|(what, ..)| what).collect()
}
