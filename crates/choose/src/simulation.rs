//! Races without systems: how often the rule is wrong. The figures stand in `docs/explanation/comparing.md`.

use pubmark_model::random::Stream;
use pubmark_record::objectives::{Objective, ObjectiveOutcome};
use pubmark_record::threshold::{Judged, MeasuredFigure, Objectives};

use crate::ranking::{Qualified, contests, recommend};
use crate::rule::{ERROR, NOISE, Rule};
use crate::standing::{Phase, Standing};

/// Races of each simulation.
const RACES: u64 = 10_000;

/// How a race ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Qualifies,
    Fails,
    Undecided,
}

/// Simulates the race of a candidate with `objectives` objectives in the race and one in runs with a kill. `outcome` returns the outcome of
/// one objective in one run; its arguments are the numbers of the run and of the objective.
fn race(objectives: usize, outcome: impl Fn(u64, u64) -> ObjectiveOutcome) -> (Ended, u32) {
    let rule = Rule::for_objectives(objectives + 1);
    let limits: Vec<String> = (0..objectives).map(|number| format!("objective {number}")).collect();
    let mut standing = Standing::new(rule, &limits, Some("recovery"));
    let mut run = 0;
    for phase in [Phase::Screening, Phase::Race, Phase::Recovery] {
        while standing.wants(phase) {
            let judged = if phase == Phase::Recovery { objectives..objectives + 1 } else { 0..objectives };
            let outcomes: Vec<ObjectiveOutcome> = judged.map(|objective| outcome(run, objective as u64)).collect();
            standing.add(phase, &outcomes);
            run += 1;
        }
    }
    let ended = match (standing.missed().is_some(), standing.holds()) {
        (true, _) => Ended::Fails,
        (false, true) => Ended::Qualifies,
        (false, false) => Ended::Undecided,
    };
    (ended, run as u32)
}

/// Shares of races that ended in each way, and the mean number of runs, where a run misses an objective with a chance of its own.
fn shares(chances: &[f64; 4]) -> ([f64; 3], f64) {
    let (mut counts, mut runs) = ([0; 3], 0);
    for seed in 0..RACES {
        let draws = Stream::new(seed, 0x63_686f_6f73);
        let (ended, made) =
            race(3, |run, objective| match draws.unit(run * 4 + objective) < chances[objective as usize] {
                true => ObjectiveOutcome::Missed,
                false => ObjectiveOutcome::Passed,
            });
        counts[ended as usize] += 1;
        runs += u64::from(made);
    }
    (counts.map(|count| f64::from(count) / RACES as f64), runs as f64 / RACES as f64)
}

/// Three standard deviations of a share that is estimated from `RACES` races.
fn margin(share: f64) -> f64 {
    3.0 * (share * (1.0 - share) / RACES as f64).sqrt()
}

#[test]
fn a_qualifying_candidate_rarely_fails() {
    for (noise, stated) in [(0.0, 0.0), (0.05, 0.001_1), (NOISE, ERROR)] {
        let ([qualifies, fails, undecided], runs) = shares(&[noise; 4]);
        assert!(fails <= stated + margin(stated), "noise {noise}: {fails} fail");
        assert!(qualifies > 0.98 && undecided < 0.01, "noise {noise}: {qualifies} qualify, {undecided} are undecided");
        assert!(runs < 10.0, "noise {noise}: {runs} runs");
    }
}

#[test]
fn a_failing_candidate_rarely_qualifies() {
    for objective in 0..4 {
        let mut chances = [NOISE; 4];
        chances[objective] = 1.0 - NOISE;
        let ([qualifies, fails, undecided], runs) = shares(&chances);
        assert!(qualifies <= 0.001_4 + margin(0.001_4), "objective {objective}: {qualifies} qualify");
        assert!(fails > 0.98 && undecided < 0.01, "objective {objective}: {fails} fail, {undecided} are undecided");
        assert!(runs < 10.0, "objective {objective}: {runs} runs");
    }
}

#[test]
fn runs_that_decide_nothing_make_no_decision() {
    for seed in 0..100 {
        let draws = Stream::new(seed, 7);
        let (ended, runs) = race(3, |run, objective| match draws.unit(run * 4 + objective) < 0.5 {
            true => ObjectiveOutcome::Undecided,
            false => ObjectiveOutcome::NotMeasured,
        });
        assert_eq!(ended, Ended::Undecided);
        assert!(runs <= 1 + Rule::for_objectives(4).most_runs(), "{runs} runs");
    }
}

/// p99 of a run in µs: its noise is normal on logarithms, a share of it is pubmark's own, and one run in twenty is disturbed.
fn p99(draws: Stream, run: u64, median_us: f64) -> MeasuredFigure {
    let disturbed = if draws.unit(1_000 + run) < 0.05 { 3.0 } else { 1.0 };
    let upper = median_us * disturbed * (0.2 * draws.normal(2_000 + run)).exp();
    let lower = upper * (1.0 - 0.2 * draws.unit(3_000 + run));
    MeasuredFigure::within([lower, upper])
}

#[test]
fn latencies_with_noise_and_intervals_are_placed_right() {
    let objectives = Objectives::parse("p99<50ms").unwrap();
    let clause = &objectives.clauses()[0];
    // The median of the runs' p99, and how the race may not end in more than a share of all cases.
    for (median_us, wrong) in [(30_000.0, Ended::Fails), (90_000.0, Ended::Qualifies)] {
        let count = (0..RACES)
            .filter(|seed| {
                let draws = Stream::new(*seed, 0x70_3939);
                let outcome = |run: u64, objective: u64| {
                    if objective > 0 {
                        return ObjectiveOutcome::Passed;
                    }
                    let figure = Some(p99(draws, run, median_us));
                    Objective::from(&Judged { clause, figure, outcome: clause.judge(figure) }).outcome
                };
                race(1, outcome).0 == wrong
            })
            .count();
        let share = count as f64 / RACES as f64;
        assert!(share <= ERROR, "{median_us}: {share}");
    }
}

#[test]
fn two_candidates_that_are_equal_are_seldom_ranked() {
    // Noise of the CPU time and of memory from run to run, and runs of each candidate.
    for (cpu_noise, memory_noise, runs) in [(0.05, 0.01, 3), (0.2, 0.05, 3), (0.05, 0.0, 5), (0.3, 0.1, 12)] {
        let recommended = (0..RACES)
            .filter(|seed| {
                let candidate = |number: u64| {
                    let draws = Stream::new(*seed, 100 + number);
                    let of = |middle: f64, noise: f64, from: u64| {
                        (0..runs).map(|run| middle * (noise * draws.normal(from + run)).exp()).collect()
                    };
                    let (cpu_per_million, memory_bytes) = (of(5.0, cpu_noise, 0), of(9e6, memory_noise, 50));
                    let (label, started_at) = (format!("{number}"), vec![]);
                    Qualified { label, ranked: true, started_at, cpu_per_million, memory_bytes }
                };
                let both = [candidate(1), candidate(2)];
                recommend(&both, &contests(&both)).candidate.is_some()
            })
            .count();
        let share = recommended as f64 / RACES as f64;
        assert!(share <= ERROR + margin(ERROR), "{cpu_noise}, {memory_noise}, {runs} runs: {share}");
    }
}
