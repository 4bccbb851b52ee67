//! A choice for tests of what is made from one: a candidate in each state.

use pubmark_record::capacity::CapacityLimit;
use pubmark_record::record::{Status, VerdictStatus};
use pubmark_record::sample;

use crate::cost::{Cost, LoadCost, RunCost};
use crate::headroom::Headroom;
use crate::record::{CHOICE_SCHEMA_VERSION, CandidateResult, Choice, ChoiceRun, Recommendation, RuleFigures, State};
use crate::requirements::Requirements;
use crate::rule::{NOISE, Rule};
use crate::standing::{Phase, Standing};

/// A choice with the given number of candidates in each state. Each candidate has its own label.
pub fn choice(count: usize) -> Choice {
    let states = [
        ("small", State::Qualifies),
        (
            "capped",
            State::Fails {
                objective: "p99<50ms".to_owned(),
                evidence: "p99<50ms missed in 3 of 3 runs (61 ms, 62 ms, 61 ms)".to_owned(),
            },
        ),
        (
            "noisy",
            State::Undecided { would_decide: "p99<50ms held in 1, was missed in 1 and undecided in 0 runs".to_owned() },
        ),
        ("absent", State::Broken { reason: "it | did not start".to_owned() }),
        ("plain", State::Excluded { reason: "`plain` has no retained messages over <mqtt5>".to_owned() }),
    ];
    let name =
        |word: &str, number: usize| if number == 0 { word.to_owned() } else { format!("{word} ({})", number + 1) };
    let candidates = (0..count)
        .flat_map(|number| states.iter().map(move |(word, state)| candidate(&name(word, number), state.clone())))
        .collect();
    let record = sample::record();
    Choice {
        schema_version: CHOICE_SCHEMA_VERSION,
        pubmark_version: "0.1.0".to_owned(),
        name: "20260301-090507-choose-smart-home".to_owned(),
        command: vec!["pubmark".to_owned(), "choose".to_owned(), "requirements.yaml".to_owned()],
        started_at: "2026-03-01T09:05:07Z".to_owned(),
        took_s: 1_200.0,
        status: Status::Complete,
        requirements: Requirements::new("smart-home"),
        objectives: vec!["stays up".to_owned(), "p99<50ms".to_owned()],
        workload: "smart-home".to_owned(),
        devices: 20,
        offered_per_s: Some(17.3),
        rule: RuleFigures { lead: 3, noise: NOISE, wrong_failure: 0.004_7, wrong_pass: 0.001_4 },
        candidates,
        recommendation: Recommendation {
            candidate: (count > 0).then(|| "small".to_owned()),
            grade: None,
            text: "small is the only candidate that is known to qualify".to_owned(),
        },
        contests: vec![],
        not_tested: vec!["networks: no link was emulated (`--link`)".to_owned()],
        environment: record.environment,
        nodes: None,
    }
}

/// One with growth, which the first candidate covers.
pub fn grown() -> Choice {
    let mut choice = choice(1);
    choice.requirements.growth = 3.0;
    let first = &mut choice.candidates[0];
    let carried = LoadCost { times: 3.0, cores: Some(0.0369), memory_bytes: Some(8.9e6) };
    first.cost = Cost::new(&[COST; 3], &[carried], 3.0);
    first.growth = Some(first.headroom.coverage(3.0));
    choice
}

/// Cost of a run.
const COST: RunCost = RunCost {
    started_at: String::new(),
    cores: Some(0.0123),
    cpu_per_million: Some(711.0),
    memory_bytes: Some(8.9e6),
    bytes_per_connection: None,
    connections: 21,
};

fn candidate(label: &str, state: State) -> CandidateResult {
    let was_run = !matches!(state, State::Excluded { .. });
    let run = ChoiceRun {
        phase: Phase::Race,
        number: 1,
        folder: Some("runs/1-small-race-1".to_owned()),
        verdict: Some(VerdictStatus::Valid),
        failure: None,
        objectives: vec![],
    };
    CandidateResult {
        label: label.to_owned(),
        system: was_run.then(|| sample::record().system),
        protocol: was_run.then(|| "mqtt5".to_owned()),
        objectives: Standing::new(Rule { lead: 3 }, &["stays up".to_owned(), "p99<50ms".to_owned()], None).objectives,
        runs: if was_run { vec![run] } else { vec![] },
        cost: (state == State::Qualifies).then(|| Cost::new(&[COST; 3], &[], 1.0)).flatten(),
        headroom: Headroom {
            holds_factor: Some(4.2),
            confirmed_factor: Some(4.2),
            fails_factor: Some(4.5),
            system_fails_factor: Some(4.5),
            limit: Some(CapacityLimit::System),
            text: "p99<50ms holds up to 73 msg/s".to_owned(),
            folder: Some("headroom/1-small".to_owned()),
        },
        growth: None,
        state,
    }
}
