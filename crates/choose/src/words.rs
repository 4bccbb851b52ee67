//! Sentences and columns that the terminal, the page and the Markdown of a choice share.

use pubmark_record::by_reason::by_reason;
use pubmark_record::record::Status;
use pubmark_report::numbers::{self, counted, short, significant};
use pubmark_report::words::system_name;
use pubmark_runner::spec::text::Text;

use crate::cost::{Basis, Cost, CostAt};
use crate::headroom::growth_objective;
use crate::record::{CandidateResult, Choice, State};
use crate::requirements::Requirements;
use crate::standing::{Decision, ObjectiveStanding, Phase};

/// The states, in the order of tables.
pub const STATES: [&str; 5] = ["qualifies", "fails", "undecided", "broken", "excluded"];

/// What the columns of cost are.
pub const COST_NOTE: &str =
    "Cost in the race: mean over its runs. ≈ stands before what was estimated from other loads.";

/// The candidates in the order of tables: by state, and within one as they were given.
pub fn in_order(choice: &Choice) -> Vec<&CandidateResult> {
    let mut candidates: Vec<&CandidateResult> = choice.candidates.iter().collect();
    candidates.sort_by_key(|candidate| STATES.iter().position(|state| *state == candidate.state.word()));
    candidates
}

/// The load: devices and rate, and what else every run has.
pub fn load(choice: &Choice) -> String {
    load_of(&choice.workload, choice.devices, choice.offered_per_s, &choice.requirements)
}

/// The same before anything was run.
pub fn load_of(workload: &str, devices: u64, offered_per_s: Option<f64>, requirements: &Requirements) -> String {
    let devices = counted(devices, "device", "devices");
    let rate = match offered_per_s {
        Some(rate) => format!("{} messages/s", significant(rate)),
        None => "as many messages as they can send".to_owned(),
    };
    [workload.to_owned(), devices, rate].into_iter().chain(conditions(requirements)).collect::<Vec<_>>().join(", ")
}

/// Links, delivery level, encryption, resources and nodes, where they are not as they come.
fn conditions(requirements: &Requirements) -> impl Iterator<Item = String> {
    let links: Vec<String> = requirements.load.links.iter().map(ToString::to_string).collect();
    let needs = &requirements.needs;
    let link = (!links.is_empty()).then(|| format!("link {}", links.join(" and ")));
    let qos = needs.qos.or(requirements.load.qos).map(|qos| format!("QoS {qos}"));
    let tls = needs.tls.then(|| "TLS".to_owned());
    let resources = requirements.resources.as_ref().map(Text::write);
    let nodes = requirements.nodes.map(|nodes| counted(u64::from(nodes), "node", "nodes"));
    [link, qos, tls, resources, nodes].into_iter().flatten()
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

/// Cost of this fleet: cores, memory.
pub fn cost_now(cost: Option<&Cost>) -> [String; 2] {
    let now = cost.map(|cost| (cost.cores, cost.memory_bytes)).unwrap_or_default();
    [cores(now.0), numbers::bytes(now.1)]
}

/// Cost of a multiple of the load: cores, memory; `≈` before what is estimated.
pub fn cost_at(at: Option<&CostAt>) -> [String; 2] {
    let marked = |text: String, basis: Option<Basis>| match basis {
        Some(Basis::Interpolated | Basis::Extrapolated) => format!("≈ {text}"),
        Some(Basis::Measured) | None => text,
    };
    match at {
        Some(at) => [marked(cores(at.cores), at.cores_basis), marked(numbers::bytes(at.memory_bytes), at.memory_basis)],
        None => [numbers::missing(), numbers::missing()],
    }
}

/// Where the cost of a larger load is.
pub type LargerLoad = fn(&Cost) -> Option<&CostAt>;

/// The larger loads of which the cost is given, in order: how many times this one, and where the cost is.
pub fn larger_loads(choice: &Choice) -> Vec<(String, LargerLoad)> {
    let grown: LargerLoad = |cost| cost.grown.as_ref();
    let ten: LargerLoad = |cost| Some(&cost.ten_times);
    growth(choice).map(|growth| (growth, grown)).into_iter().chain([("10 ×".to_owned(), ten)]).collect()
}

/// The growth that is required: `3 ×`; `None` where there is none.
pub fn growth(choice: &Choice) -> Option<String> {
    let growth = choice.requirements.growth;
    (growth > 1.0).then(|| format!("{growth} ×"))
}

/// What must hold, with the growth, if one is required.
pub fn must_hold(choice: &Choice) -> Vec<String> {
    let growth = growth(choice).map(|_| growth_objective(choice.requirements.growth));
    choice.objectives.iter().cloned().chain(growth).collect()
}

/// Whether the headroom covers the growth: `covered`, `—` where that was not asked.
pub fn coverage(candidate: &CandidateResult) -> String {
    candidate.growth.map_or_else(numbers::missing, |coverage| coverage.word().to_owned())
}

/// How the cost of larger loads was found, in a sentence for each of them.
fn cost_from(choice: &Choice, cost: &Cost) -> Vec<String> {
    larger_loads(choice)
        .into_iter()
        .filter_map(|(times, of)| {
            let at = of(cost)?;
            Some(format!("{times} the load: cores: {}; memory: {}", at.cores_from, at.memory_from))
        })
        .collect()
}

/// The machine: `Intel Xeon, 2 cores, 16.8 GB, load 0.4 before and 1.9 after`, and the machines that joined it.
pub fn machine(choice: &Choice) -> String {
    let machine = &choice.environment;
    let load = |value: Option<f64>| value.map_or_else(numbers::missing, short);
    let nodes = choice.nodes.as_ref().map_or_else(String::new, |nodes| format!("; with {}", nodes.in_words()));
    format!(
        "{}, {}, {}, load {} before and {} after{nodes}",
        machine.cpu,
        counted(u64::from(machine.cores), "core", "cores"),
        numbers::bytes(Some(machine.memory_bytes as f64)),
        load(machine.load_before),
        load(machine.load_after)
    )
}

/// What was run of a candidate: `mosquitto 2.0.11 over mqtt5, cpu=1`; `None` where nothing was.
pub fn what(candidate: &CandidateResult) -> Option<String> {
    let system = candidate.system.as_ref()?;
    let protocol = candidate.protocol.as_ref().map_or_else(String::new, |protocol| format!(" over {protocol}"));
    let limits = system.limits.as_ref().map_or_else(String::new, |limits| format!(", {}", limits.requested));
    Some(format!("{}{protocol}{limits}", system_name(system)))
}

/// How sure the statements are: candidates of one state with one sentence together.
pub fn how_sure(choice: &Choice) -> Vec<(String, String)> {
    let candidates = in_order(choice);
    let sure = candidates.iter().map(|one| (one.label.as_str(), (one.state.word(), confidence(choice, one))));
    by_reason(sure)
        .into_iter()
        .map(|((state, text), labels)| (format!("{}: {state}", labels.join(", ")), text))
        .collect()
}

/// How the costs of larger loads were found: candidates with one sentence together.
pub fn costs_from(choice: &Choice) -> Vec<(String, Vec<String>)> {
    let candidates = in_order(choice);
    let costs = candidates.iter().filter_map(|one| Some((one.label.as_str(), cost_from(choice, one.cost.as_ref()?))));
    by_reason(costs).into_iter().map(|(sentences, labels)| (labels.join(", "), sentences)).collect()
}

/// How sure the statement about a candidate is.
fn confidence(choice: &Choice, candidate: &CandidateResult) -> String {
    let percent = |share: f64| format!("{} %", short(share * 100.0));
    match &candidate.state {
        State::Qualifies => format!(
            "each objective held in at least {} more runs than it was missed; a system that misses one in 9 of 10 runs would be called \
             so in at most {} of races{}{}",
            choice.rule.lead,
            percent(choice.rule.wrong_pass),
            never_missed(candidate).map_or_else(String::new, |share| format!(
                "; with 95 % confidence it misses an objective in less than {} of its runs",
                percent(share)
            )),
            growth(choice).map_or_else(String::new, |growth| format!(
                "; this is of the load of today: {growth} that load held in two or more trials of the search for headroom, of which \
                 no error is stated"
            ))
        ),
        State::Fails { objective, .. } if *objective == growth_objective(choice.requirements.growth) => {
            "the load was missed in two trials of the search for headroom, or in one in which less than 95 % of the messages arrived in \
             time; no error is stated"
                .to_owned()
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
        "An objective holds while at least {0} more runs met it than missed it, and is missed when {0} more runs missed it than met it; a \
         run whose interval contains the limit, or that is invalid, counts for neither. A system that noise makes miss an objective in at most \
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::nodes::JoinedMachines;

    use super::*;
    use crate::sample;

    #[test]
    fn the_error_of_the_race_is_not_that_of_growth() {
        let sure = |choice: &Choice| how_sure(choice).remove(0).1;
        let text = sure(&sample::choice(1));
        assert!(text.starts_with("each objective held in at least 3 more runs than it was missed;"), "{text}");
        assert!(!text.contains("headroom"), "no growth is required: {text}");
        let mut grown = sample::grown();
        let text = sure(&grown);
        assert!(
            text.contains("3 × that load held in two or more trials") && text.ends_with("no error is stated"),
            "{text}"
        );
        let objective = growth_objective(grown.requirements.growth);
        grown.candidates[0].state = State::Fails { objective, evidence: String::new() };
        let texts: Vec<String> = how_sure(&grown).into_iter().map(|(_, text)| text).collect();
        assert!(texts.iter().any(|text| text.starts_with("the load was missed in two trials")), "{texts:?}");
    }

    #[test]
    fn a_load_names_the_conditions_of_every_run() {
        let mut requirements = Requirements::new("fan-in");
        assert_eq!(load_of("fan-in", 2_000, Some(400.0), &requirements), "fan-in, 2,000 devices, 400 messages/s");
        requirements.load.links = vec![Text::read("publisher=lte").unwrap()];
        requirements.resources = Some(Text::read("cpu=1").unwrap());
        (requirements.needs.qos, requirements.needs.tls) = (Some(1), true);
        let text = load_of("fan-in", 1, None, &requirements);
        assert_eq!(text, "fan-in, 1 device, as many messages as they can send, link publisher=lte, QoS 1, TLS, cpu=1");
        requirements.nodes = Some(2);
        assert!(load_of("fan-in", 1, None, &requirements).ends_with(", cpu=1, 2 nodes"));
    }

    #[test]
    fn the_machine_is_named_with_those_that_joined_it() {
        let mut choice = sample::choice(1);
        assert!(machine(&choice).ends_with(" after"));
        let machines = Some("2 × (4 cores, kernel 6.1)".to_owned());
        choice.nodes = Some(JoinedMachines { nodes: 2, machines, system_node: None });
        let expected = " after; with 2 nodes on 2 × (4 cores, kernel 6.1)";
        assert!(machine(&choice).ends_with(expected), "{}", machine(&choice));
        for page in [crate::html(&choice), crate::markdown::markdown(&choice)] {
            assert!(page.contains(expected), "{page}");
        }
    }
}
