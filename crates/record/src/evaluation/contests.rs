//! Decides which cell is better, and how certain that is.
//!
//! A winner is named if the best mean is better than every other beyond the noise. For each pair, this requires all of:
//!
//! 1. three repetitions on either side;
//! 2. Welch's test, with a lower limit for the spread (`smallest_spread`), p < 0.01 after Holm's correction over every
//!    pair of every judged figure of the experiment, not only over those that are shown;
//! 3. a rank test that agrees (`ranks_agree`), whatever the distribution of the noise;
//! 4. a difference of at least 1 %, and above the measurement's resolution.
//!
//! None of this tells a difference of the cells from one of the machine where the runs of the two were not interleaved, as
//! when a system was installed before an experiment was resumed. If the times of their runs are as far apart as the rank
//! test requires of values (`are_apart_in_time`), there is no winner, and the grade is at most [`Grade::Likely`].
//!
//! A latency is that of the messages that arrived. A cell with better latencies that lost more of its messages than the other does
//! not win, and nothing is shown: the lost ones may be those that would have been late ([`Duel::survivors`]). One that lost less wins
//! all the same, because each lost message can only make the other worse.
//!
//! Nor is anything shown against the rate or the share delivered of a flood that pubmark or the machine may have limited
//! ([`Entrant::may_be_higher`]).
//!
//! For latencies, and for the share delivered, of which both bounds are known, all of this is required for the smallest difference that
//! the bounds permit ([`Pair`]).
//!
//! How often this is wrong, and how large a difference it finds, was simulated: `docs/explanation/comparing.md`.

use std::collections::BTreeMap;

pub use super::pair::{CHANCE_OF_ERROR, Pair, SMALLEST_EFFECT};
use super::pair::{Sample, ranks_agree};
use crate::experiment::{Contest, Duel, Grade};
use crate::figures::{Better, Figure, is_fewer};
use crate::statistics::description::mean_on;
use crate::statistics::{FEWEST_REPETITIONS, Scale, holm};

/// Values of one cell in one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// Id of the cell.
    pub cell: String,
    /// One value per run; upper bounds of a latency and of the share delivered; values not measured are left out.
    pub values: Vec<f64>,
    /// Lower bounds in the same order; equal to the values where there are no bounds.
    pub lower: Vec<f64>,
    /// When its runs began, RFC 3339, UTC; empty where runs are known to be interleaved.
    pub started_at: Vec<String>,
    /// Share of the wanted messages that were delivered, mean of its runs; `None` if it is not known, or if the figure is one of other
    /// messages, too.
    pub delivered: Option<f64>,
    /// Its values are rates or shares of floods that may be higher by any amount, as pubmark or the machine may have limited them.
    pub may_be_higher: bool,
}

impl Entrant {
    /// An entrant whose values have no bounds.
    pub fn exact(cell: &str, values: Vec<f64>) -> Entrant {
        let (cell, lower) = (cell.to_owned(), values.clone());
        Entrant { cell, values, lower, started_at: vec![], delivered: None, may_be_higher: false }
    }

    fn sample(&self) -> Sample<'_> {
        Sample { lower: &self.lower, upper: &self.values }
    }
}

/// Cells that are compared by one figure.
#[derive(Clone, Debug)]
pub struct Match {
    /// The axis in which they differ.
    pub axis: String,
    /// Common settings of the cells.
    pub among: BTreeMap<String, String>,
    /// The figure.
    pub figure: &'static Figure<'static>,
    /// The cells, at least two.
    pub entrants: Vec<Entrant>,
}

/// Decides all matches of an experiment together.
pub fn decide(matches: &[Match]) -> Vec<Contest> {
    let pairs: Vec<Vec<(usize, usize, Pair)>> = matches.iter().map(pairs_of).collect();
    let p_values: Vec<f64> =
        pairs.iter().flatten().filter_map(|(_, _, pair)| pair.tested.map(|found| found.p)).collect();
    let mut adjusted = holm::adjust(&p_values).into_iter();
    let judged = matches.iter().zip(pairs).map(|(one, pairs)| {
        let pairs: Vec<Judged> = pairs
            .into_iter()
            .map(|(better, worse, pair)| Judged {
                better,
                worse,
                pair,
                p_adjusted: pair.tested.and_then(|_| adjusted.next()),
            })
            .collect();
        contest(one, &pairs)
    });
    judged.collect()
}

/// Whether one of two cells was run before the other, as far as the rank test tells: the runs of an experiment are interleaved.
/// With fewer than [`FEWEST_REPETITIONS`] runs it tells nothing: one run is always before the other. The arguments are the times
/// at which their runs began, RFC 3339, UTC.
pub fn are_apart_in_time(first: &[String], second: &[String]) -> bool {
    if first.len().min(second.len()) < FEWEST_REPETITIONS {
        return false;
    }
    let mut all: Vec<&String> = first.iter().chain(second).collect();
    all.sort();
    let place = |start: &String| all.partition_point(|other| *other < start) as f64;
    let places = |starts: &[String]| starts.iter().map(place).collect::<Vec<f64>>();
    ranks_agree(&places(first), &places(second))
}

/// A pair with its corrected p value; entrants are given by their index in the match.
struct Judged {
    better: usize,
    worse: usize,
    pair: Pair,
    p_adjusted: Option<f64>,
}

/// Indices of the entrants, the best mean of what was measured first; equal means retain their order. The scale is that of both bounds, as
/// for their pairs.
fn ranking(one: &Match) -> Vec<usize> {
    let values = one.entrants.iter().flat_map(|entrant| entrant.values.iter().chain(&entrant.lower));
    let scale = one.figure.scale.for_values(values);
    let measured = |entrant: &Entrant| mean_on(scale, entrant.sample().measured(one.figure));
    let means: Vec<f64> = one.entrants.iter().map(|entrant| measured(entrant).unwrap_or(f64::NAN)).collect();
    let mut order: Vec<usize> = (0..means.len()).collect();
    match one.figure.better {
        Better::Higher => order.sort_by(|a, b| means[*b].total_cmp(&means[*a])),
        Better::Lower | Better::Neither => order.sort_by(|a, b| means[*a].total_cmp(&means[*b])),
    }
    order
}

/// Every pair of a match, the better one first: pairs of the best entrant come first, in order of the ranking.
fn pairs_of(one: &Match) -> Vec<(usize, usize, Pair)> {
    let order = ranking(one);
    let mut pairs = Vec::new();
    for (place, better) in order.iter().enumerate() {
        for worse in &order[place + 1..] {
            let sample = |entrant: usize| one.entrants[entrant].sample();
            pairs.push((*better, *worse, Pair::between(one.figure, sample(*better), sample(*worse))));
        }
    }
    pairs
}

/// Delivered shares of the cell with the lower latency and of the other one, if the first is that of fewer messages.
fn survivors(better: &Entrant, worse: &Entrant) -> Option<[f64; 2]> {
    let shares = [better.delivered?, worse.delivered?];
    is_fewer(shares[0], shares[1]).then_some(shares)
}

/// Whether the first of a pair, which has the better mean on the scale of the match, has the worse one on that of the pair: the values of
/// a third one, of which some have no logarithm, decide the scale of the match.
fn is_reversed(figure: &Figure, pair: &Pair) -> bool {
    let nothing = if pair.scale == Scale::Logarithm { 1.0 } else { 0.0 };
    match figure.better {
        Better::Higher => pair.difference > nothing,
        Better::Lower | Better::Neither => pair.difference < nothing,
    }
}

fn contest(one: &Match, pairs: &[Judged]) -> Contest {
    let id = |entrant: usize| one.entrants[entrant].cell.clone();
    let ranking = ranking(one);
    let best = ranking.first().copied();
    let duels: Vec<Duel> = pairs
        .iter()
        .filter(|judged| Some(judged.better) == best)
        .map(|judged| {
            let [better, worse] = [judged.better, judged.worse].map(|entrant| &one.entrants[entrant]);
            let is_interleaved = !are_apart_in_time(&better.started_at, &worse.started_at);
            let shown = judged.pair.grade(judged.p_adjusted);
            // What is not shown anyway needs no further reason.
            let survivors = survivors(better, worse).filter(|_| shown > Grade::NotShown);
            let is_open = survivors.is_some() || worse.may_be_higher || is_reversed(one.figure, &judged.pair);
            let most = match (is_open, is_interleaved) {
                (true, _) => Grade::NotShown,
                (false, true) => Grade::Proven,
                (false, false) => Grade::Likely,
            };
            Duel {
                better: better.cell.clone(),
                worse: worse.cell.clone(),
                difference: judged.pair.difference,
                is_ratio: judged.pair.scale == Scale::Logarithm,
                measured: Some(judged.pair.measured),
                interval: judged.pair.interval,
                p: judged.pair.tested.map(|found| found.p),
                p_adjusted: judged.p_adjusted,
                is_significant: judged.pair.is_significant(judged.p_adjusted) && most == Grade::Proven,
                survivors,
                grade: Some(shown.min(most)),
            }
        })
        .collect();
    let is_won =
        one.figure.better != Better::Neither && !duels.is_empty() && duels.iter().all(|duel| duel.is_significant);
    Contest {
        axis: one.axis.clone(),
        among: one.among.clone(),
        figure: one.figure.name.to_owned(),
        winner: best.filter(|_| is_won).map(id),
        ranking: ranking.into_iter().map(id).collect(),
        duels,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::figures::figure;

    fn one(name: &str, entrants: &[&[f64]]) -> Contest {
        let entrant = |(place, values): (usize, &&[f64])| Entrant::exact(&place.to_string(), values.to_vec());
        let entrants = entrants.iter().enumerate().map(entrant).collect();
        let found = Match { axis: "system".into(), among: BTreeMap::new(), figure: figure(name).unwrap(), entrants };
        decide(&[found]).remove(0)
    }

    #[test]
    fn a_clear_difference_has_a_winner() {
        let contest = one("latency p99", &[&[200.0, 210.0, 190.0], &[100.0, 105.0, 95.0]]);
        assert_eq!(contest.winner.as_deref(), Some("1"));
        assert_eq!(contest.ranking, ["1", "0"]);
        let duel = &contest.duels[0];
        assert!(duel.is_ratio && (duel.difference - 2.0).abs() < 0.01 && duel.interval.unwrap().0 > 1.5, "{duel:?}");
    }

    #[test]
    fn more_is_better_where_the_table_says_so() {
        let contest = one("delivered", &[&[0.9, 0.91, 0.9, 0.9, 0.91], &[1.0; 5]]);
        assert_eq!(contest.winner.as_deref(), Some("1"));
        assert!(!contest.duels[0].is_ratio && contest.duels[0].difference < -0.09);
    }

    #[test]
    fn the_ranking_is_by_the_means_that_are_compared() {
        let unsteady = vec![1.0, 1.0, 100.0];
        let entrants = vec![
            Entrant { lower: vec![0.0; 3], ..Entrant::exact("unsteady", unsteady) },
            Entrant::exact("steady", vec![10.0; 3]),
        ];
        let found =
            Match { axis: "system".into(), among: BTreeMap::new(), figure: figure("latency p99").unwrap(), entrants };
        let contest = decide(&[found]).remove(0);
        assert_eq!(contest.ranking, ["steady", "unsteady"], "34 is above 10, and its bound of 0 has no logarithm");
        assert!(!contest.duels[0].is_ratio && contest.duels[0].difference > 0.0, "{contest:?}");
    }

    #[test]
    fn runs_that_were_not_interleaved_prove_nothing() {
        let times = |minutes: &[u32]| -> Vec<String> {
            minutes.iter().map(|minute| format!("2026-03-01T{:02}:{:02}:00Z", minute / 60, minute % 60)).collect()
        };
        let found = |fast: &[u32], slow: &[u32]| {
            let entrant = |cell: &str, value: f64, started: &[u32]| Entrant {
                started_at: times(started),
                ..Entrant::exact(cell, (0..started.len()).map(|run| value + run as f64).collect())
            };
            let entrants = vec![entrant("fast", 100.0, fast), entrant("slow", 300.0, slow)];
            let one = Match {
                axis: "system".into(),
                among: BTreeMap::new(),
                figure: figure("latency p50").unwrap(),
                entrants,
            };
            let contest = decide(&[one]).remove(0);
            (contest.winner, contest.duels[0].grade(), contest.duels[0].is_significant)
        };
        let proven = (Some("fast".to_owned()), Grade::Proven, true);
        assert_eq!(found(&[1, 3, 5], &[2, 4, 6]), proven);
        assert_eq!(found(&[1, 3, 5], &[1, 3, 5]), proven, "on several machines at once");
        assert_eq!(found(&[1, 2, 5], &[3, 4, 6]), proven, "two runs of the second were made again");
        assert_eq!(found(&[1, 2, 3], &[64, 65, 66]), (None, Grade::Likely, false), "installed before `--resume`");
        assert_eq!(
            found(&[4, 5, 6, 7, 8, 9, 13], &[10, 11, 12, 14, 15, 16, 17]).1,
            Grade::Likely,
            "one of seven interleaved"
        );
    }

    #[test]
    fn latencies_of_fewer_messages_do_not_win() {
        let found_at = |slow_us: f64, fast: f64, slow: f64| {
            let entrant = |cell: &str, value: f64, delivered: f64| Entrant {
                delivered: Some(delivered),
                ..Entrant::exact(cell, vec![value, value * 1.01, value * 0.99])
            };
            let entrants = vec![entrant("fast", 100.0, fast), entrant("slow", slow_us, slow)];
            let one = Match {
                axis: "system".into(),
                among: BTreeMap::new(),
                figure: figure("latency p99").unwrap(),
                entrants,
            };
            let contest = decide(&[one]).remove(0);
            (contest.winner, contest.duels[0].grade(), contest.duels[0].survivors)
        };
        let found = |fast: f64, slow: f64| found_at(300.0, fast, slow);
        let proven = (Some("fast".to_owned()), Grade::Proven, None);
        assert_eq!(found(1.0, 1.0), proven);
        assert_eq!(found(0.9, 1.0), (None, Grade::NotShown, Some([0.9, 1.0])), "the late ones may be lost");
        assert_eq!(found(1.0, 0.9), proven, "a lost message can only make the other worse");
        assert_eq!(found(0.9, 0.9), proven, "both lost as many");
        assert_eq!(found(0.99999, 1.0), proven, "a stray message");
        assert_eq!(found_at(100.5, 0.9, 1.0), (None, Grade::NotShown, None), "within the noise, whatever was lost");
    }

    #[test]
    fn means_in_another_order_on_the_scale_of_the_pair_show_nothing() {
        let wild: Vec<f64> = (0..15).map(|run| if run == 0 { 300.0 } else { 1.0 }).collect();
        let pair = || vec![Entrant::exact("steady", vec![10.0; 15]), Entrant::exact("wild", wild.clone())];
        let of = |entrants: Vec<Entrant>| {
            let figure = figure("latency p99").unwrap();
            decide(&[Match { axis: "system".into(), among: BTreeMap::new(), figure, entrants }]).remove(0)
        };
        let alone = of(pair());
        assert_eq!((alone.winner.as_deref(), alone.duels[0].grade()), (Some("wild"), Grade::Proven));
        let unbounded = Entrant { lower: vec![0.0; 15], ..Entrant::exact("unbounded", vec![1_000.0; 15]) };
        let contest = of([pair(), vec![unbounded]].concat());
        assert_eq!(contest.ranking, ["steady", "wild", "unbounded"], "by arithmetic means");
        let duel = &contest.duels[0];
        assert_eq!((duel.worse.as_str(), duel.grade(), duel.is_significant), ("wild", Grade::NotShown, false));
    }

    #[test]
    fn two_repetitions_name_no_winner() {
        let contest = one("latency p99", &[&[200.0, 201.0], &[100.0, 100.1]]);
        assert_eq!((contest.winner, contest.duels[0].p, contest.duels[0].p_adjusted), (None, None, None));
        assert!((contest.duels[0].difference - 2.0).abs() < 0.01, "what was seen is still told");
    }

    #[test]
    fn the_best_has_to_beat_every_other() {
        let contest = one("latency p50", &[&[100.0, 101.0, 99.0], &[100.5, 101.0, 99.5], &[300.0, 310.0, 290.0]]);
        assert_eq!(contest.winner, None);
        assert!(contest.duels.iter().any(|duel| duel.is_significant), "the third is worse for sure");
    }

    #[test]
    fn values_without_spread_win_only_by_more_than_the_resolution() {
        let same = |value: f64| vec![value; 5];
        let winner = |first: f64, second: f64| one("system memory", &[&same(first), &same(second)]).winner;
        assert_eq!(winner(6.0e6, 6.1e6), None, "one step of the allocator");
        assert_eq!(winner(6.0e6, 7.0e6).as_deref(), Some("0"));
        assert_eq!(winner(6.0e6, 6.0e6), None);
        assert_eq!(one("delivered", &[&[1.0; 5], &[0.99995; 5]]).winner, None, "a stray message");
        assert_eq!(one("delivered", &[&[1.0; 5], &[0.995; 5]]).winner.as_deref(), Some("0"));
    }

    #[test]
    fn a_single_wild_run_does_not_decide() {
        let contest = one("latency p99", &[&[100.0, 102.0, 98.0, 101.0, 99.0], &[100.0, 101.0, 99.0, 98.0, 9_000.0]]);
        assert_eq!(contest.winner, None);
    }

    /// Normally distributed random numbers with a standard deviation of 1, from a seed (Box and Muller).
    struct Noise(u64);

    impl Noise {
        fn even(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (-2.0 * self.even().ln()).sqrt() * (std::f64::consts::TAU * self.even()).cos()
        }
    }

    /// A/A test: of 2,000 experiments that compare a system with itself by four figures, at most 1 % may name a winner,
    /// plus a tolerance for chance (three standard deviations of a binomial distribution).
    #[test]
    fn a_system_seldom_wins_against_itself() {
        let (experiments, figures) = (2_000, ["latency p50", "latency p99", "system memory", "system CPU a million"]);
        let most = 20 + 13;
        let mut noise = Noise(1);
        for (repetitions, spread) in [(3, 0.03), (3, 0.3), (5, 0.03), (5, 0.3), (8, 0.3)] {
            let mut entrant = |cell: &str| {
                Entrant::exact(cell, (0..repetitions).map(|_| 1e6 * (spread * noise.normal()).exp()).collect())
            };
            let mut experiment = || {
                let one = |name: &&str| Match {
                    axis: "system".into(),
                    among: BTreeMap::new(),
                    figure: figure(name).unwrap(),
                    entrants: vec![entrant("one"), entrant("other")],
                };
                decide(&figures.iter().map(one).collect::<Vec<_>>()).iter().any(|contest| contest.winner.is_some())
            };
            let wrong = (0..experiments).filter(|_| experiment()).count();
            assert!(wrong <= most, "{wrong} of {experiments}, {repetitions} repetitions with a spread of {spread}");
        }
    }

    #[test]
    fn a_figure_that_is_zero_somewhere_is_compared_by_difference() {
        let contest = one("system CPU a million", &[&[0.0, 0.0, 0.1], &[5.0, 5.1, 4.9]]);
        assert!(!contest.duels[0].is_ratio && contest.duels[0].difference.is_finite());
    }

    #[test]
    fn more_matches_make_each_harder_to_win() {
        let entrants =
            vec![Entrant::exact("a", vec![100.0, 104.0, 96.0]), Entrant::exact("b", vec![133.0, 138.0, 128.0])];
        let alone = Match {
            axis: "system".into(),
            among: BTreeMap::new(),
            figure: figure("latency p50").unwrap(),
            entrants: entrants.clone(),
        };
        let even = Match {
            entrants: vec![
                Entrant { cell: "a".into(), ..entrants[0].clone() },
                Entrant { cell: "b".into(), ..entrants[0].clone() },
            ],
            ..alone.clone()
        };
        assert!(decide(std::slice::from_ref(&alone))[0].winner.is_some());
        let many: Vec<Match> = std::iter::once(alone).chain(std::iter::repeat_n(even, 200)).collect();
        assert!(decide(&many)[0].winner.is_none());
    }
}
