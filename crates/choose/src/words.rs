//! Sentences and columns that the terminal, the page and the Markdown of a choice share.

use pubmark_record::record::Status;
use pubmark_report::numbers::{self, counted, short, significant};

use crate::cost::Cost;
use crate::headroom::growth_objective;
use crate::record::{CandidateResult, Choice, State};
use crate::standing::{Decision, ObjectiveStanding, Phase};

/// The states, in the order of tables.
pub const STATES: [&str; 5] = ["qualifies", "fails", "undecided", "broken", "excluded"];

/// The candidates in the order of tables: by state, and within one as they were given.
pub fn in_order(choice: &Choice) -> Vec<&CandidateResult> {
    let mut candidates: Vec<&CandidateResult> = choice.candidates.iter().collect();
    candidates.sort_by_key(|candidate| STATES.iter().position(|state| *state == candidate.state.word()));
    candidates
}

/// The load: devices and rate.
pub fn load(choice: &Choice) -> String {
    let devices = counted(choice.devices, "device", "devices");
    match choice.offered_per_s {
        Some(rate) => format!("{}, {devices}, {} messages/s", choice.workload, significant(rate)),
        None => format!("{}, {devices}, as many messages as they can send", choice.workload),
    }
}

/// How many candidates are in each state: `2 qualify, 1 fails`.
pub fn counts(choice: &Choice) -> String {
    let word = |state: &str, count: usize| match (state, count) {
        ("qualifies", 1) => "qualifies".to_owned(),
        ("qualifies", _) => "qualify".to_owned(),
        ("fails", 1) => "fails".to_owned(),
        ("fails", _) => "fail".to_owned(),
        (state, 1) => format!("is {state}"),
        (state, _) => format!("are {state}"),
    };
    let parts: Vec<String> = STATES
        .iter()
        .filter_map(|state| {
            let count = choice.candidates.iter().filter(|candidate| candidate.state.word() == *state).count();
            (count > 0).then(|| format!("{count} {}", word(state, count)))
        })
        .collect();
    if parts.is_empty() { "no candidate".to_owned() } else { parts.join(", ") }
}

/// Cores: `0.012`, or `—`.
pub fn cores(value: Option<f64>) -> String {
    value.map_or_else(numbers::missing, significant)
}

/// Cost now and for ten times the fleet: cores, memory, cores, memory.
pub fn cost_columns(cost: Option<&Cost>) -> [String; 4] {
    let now = cost.map(|cost| (cost.cores, cost.memory_bytes)).unwrap_or_default();
    let then = cost.map(|cost| (cost.ten_times.cores, cost.ten_times.memory_bytes)).unwrap_or_default();
    [cores(now.0), numbers::bytes(now.1), cores(then.0), numbers::bytes(then.1)]
}

/// How sure the statement about a candidate is.
pub fn confidence(choice: &Choice, candidate: &CandidateResult) -> String {
    let percent = |share: f64| format!("{} %", short(share * 100.0));
    match &candidate.state {
        State::Qualifies => format!(
            "each objective held in {} more runs than it was missed; a system that misses one in 9 of 10 runs would be called so in at \
             most {} of races{}",
            choice.rule.lead,
            percent(choice.rule.wrong_pass),
            never_missed(candidate).map_or_else(String::new, |share| format!(
                "; with 95 % confidence it misses an objective in less than {} of its runs",
                percent(share)
            ))
        ),
        State::Fails { objective, .. } if *objective == growth_objective(choice.requirements.growth) => {
            "the search for its capacity tried the load again before it was called too high".to_owned()
        }
        State::Fails { .. } => format!(
            "a system that meets all objectives, each in 9 of 10 runs, would be called so in at most {} of races",
            percent(choice.rule.wrong_failure)
        ),
        State::Undecided { .. } => "nothing is claimed".to_owned(),
        State::Excluded { .. } => "as its definition, or its protocol, says; nothing was run".to_owned(),
        State::Broken { .. } => "it was started twice".to_owned(),
    }
}

/// Upper end of the exact one-sided 95 % interval of the share of runs that miss an objective, where none did: 1 − 0.05^(1/n).
fn never_missed(candidate: &CandidateResult) -> Option<f64> {
    let is_whole = |one: &&ObjectiveStanding| one.missed + one.undecided == 0;
    let held: Vec<u32> = candidate.objectives.iter().filter(is_whole).map(|one| one.held).collect();
    let fewest = held.iter().min().filter(|fewest| **fewest > 0 && held.len() == candidate.objectives.len())?;
    Some(1.0 - 0.05_f64.powf(1.0 / f64::from(*fewest)))
}

/// An objective of a candidate in a cell: `holds 3/3`, `missed 3/4`, `open 1/2`.
pub fn objective_cell(objective: &ObjectiveStanding) -> String {
    let all = objective.held + objective.missed + objective.undecided;
    match (objective.decision, all) {
        (Decision::Missed, 0) => format!("missed {0}/{0} (short)", objective.screening_missed),
        (_, 0) => numbers::missing(),
        (Decision::Holds, _) => format!("holds {}/{all}", objective.held),
        (Decision::Missed, _) => format!("missed {}/{all}", objective.missed),
        (Decision::Open, _) => format!("open {}/{all}", objective.held),
    }
}

/// The rule in two sentences.
pub fn rule(choice: &Choice) -> String {
    let rule = &choice.rule;
    format!(
        "An objective holds when {0} more runs met it than missed it, and is missed when {0} more runs missed it than met it; a run whose \
         interval contains the limit, or that is invalid, counts for neither. A system that noise makes miss an objective in at most \
         {1} % of its runs is called failing in at most {2} % of races.",
        rule.lead,
        short(rule.noise * 100.0),
        short(rule.wrong_failure * 100.0)
    )
}

/// When it began, how long it took, and how many runs it was.
pub fn took(choice: &Choice) -> String {
    let runs: usize = choice.candidates.iter().map(|candidate| candidate.runs.len()).sum();
    let ended = if choice.status == Status::Interrupted { "interrupted after" } else { "took" };
    format!("{}, {ended} {}", counted(runs as u64, "run", "runs"), numbers::duration(choice.took_s))
}

/// What a run said, for a table.
pub fn run_says(run: &crate::record::ChoiceRun) -> String {
    if let Some(failure) = &run.failure {
        return failure.clone();
    }
    let judged = run.objectives.iter().filter(|one| one.metric != "up");
    let parts: Vec<String> = judged
        .map(|one| match &one.measured {
            Some(measured) => format!("{} {} ({measured})", one.limit, one.outcome.word()),
            None => format!("{} {}", one.limit, one.outcome.word()),
        })
        .collect();
    parts.join(", ")
}

/// Name of a phase with the number of a run.
pub fn run_name(phase: Phase, number: u32) -> String {
    format!("{} {number}", phase.word())
}
