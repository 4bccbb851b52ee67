//! Who is better, and how sure that is.
//!
//! A winner is named where the best mean is better than every other beyond the noise. For each pair that takes all of:
//!
//! 1. three repetitions on either side;
//! 2. Welch's test, with a floor under the spread (`smallest_spread`), p < 0.01 after Holm's correction over every pair of
//!    every judged figure of the experiment, not only over those that are shown;
//! 3. a rank test that agrees (`ranks_agree`), whatever the noise looks like;
//! 4. a difference of at least 1 %, and of more than the measurement's resolution.
//!
//! How often that is wrong, and how large a difference it finds, was simulated: `docs/explanation/comparing.md`.

use std::collections::BTreeMap;

use crate::experiment::{Contest, Duel};
use crate::figures::{Better, Figure};
use crate::statistics::description::mean_on;
use crate::statistics::welch::{self, Tested};
use crate::statistics::{Scale, holm, rank};

/// Chance of naming a winner where there is none, over all duels of an experiment.
pub const CHANCE_OF_ERROR: f64 = 0.01;
/// Smallest difference worth a winner, as a share: less than the ports, addresses and places in memory of two processes
/// make, and less than anybody decides by.
pub const SMALLEST_EFFECT: f64 = 0.01;
/// Repetitions from which the spread seen may be as small as [`SMALLEST_EFFECT`]; with fewer, twice that.
const ENOUGH_FOR_SPREAD: usize = 5;

/// Values of one cell in one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// Id of the cell.
    pub cell: String,
    /// One value a run; those not measured are left out.
    pub values: Vec<f64>,
}

/// Cells that are to be judged by one figure.
#[derive(Clone, Debug)]
pub struct Match {
    /// The axis in which they differ.
    pub axis: String,
    /// What they have in common.
    pub among: BTreeMap<String, String>,
    /// The figure.
    pub figure: &'static Figure,
    /// The cells, two at least.
    pub entrants: Vec<Entrant>,
}

/// How two samples of one figure compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Scale on which they were compared.
    pub scale: Scale,
    /// Welch's test; `None` where repetitions are too few.
    pub tested: Option<Tested>,
    /// Second's mean over the first's by ratio, their difference otherwise.
    pub difference: f64,
    /// The difference is large enough to matter, the rank test agrees, and Welch's test alone would see it: what is left
    /// to ask is its p value after correction.
    pub is_candidate: bool,
}

impl Pair {
    /// Compares two samples, neither of them empty.
    pub fn of(figure: &Figure, first: &[f64], second: &[f64]) -> Pair {
        let scale = figure.scale.for_values(first.iter().chain(second));
        let floor = smallest_spread(figure, scale, first, second);
        let tested = welch::test(first, second, scale, floor);
        let mean = |values| scale.onto(mean_on(scale, values).unwrap_or(f64::NAN));
        let difference = mean(second) - mean(first);
        let is_large = difference.abs() > smallest_difference(figure, scale, first, second);
        let is_seen = tested.is_some_and(|found| found.p < CHANCE_OF_ERROR);
        Pair {
            scale,
            tested,
            difference: scale.back(difference),
            is_candidate: is_large && is_seen && ranks_agree(first, second),
        }
    }

    /// Is it a difference beyond the noise, given its p value after correction?
    pub fn is_significant(&self, p_adjusted: Option<f64>) -> bool {
        self.is_candidate && p_adjusted.is_some_and(|p| p < CHANCE_OF_ERROR)
    }
}

/// The smallest standard deviation that is believed: the figure's resolution, or 1 % of it, 2 % below five repetitions.
/// Few values that agree by luck say little about the next ones.
fn smallest_spread(figure: &Figure, scale: Scale, first: &[f64], second: &[f64]) -> f64 {
    let times = if first.len().min(second.len()) < ENOUGH_FOR_SPREAD { 2.0 } else { 1.0 };
    match (scale, figure.scale) {
        (Scale::Logarithm, _) => figure.resolution.max(times * SMALLEST_EFFECT),
        (Scale::Plain, Scale::Plain) => times * figure.resolution,
        // A figure that should be positive and was 0 in some run: shares of the larger mean stand in.
        (Scale::Plain, Scale::Logarithm) => figure.resolution.max(times * SMALLEST_EFFECT) * larger_mean(first, second),
    }
}

/// The smallest difference that matters, on the scale.
fn smallest_difference(figure: &Figure, scale: Scale, first: &[f64], second: &[f64]) -> f64 {
    let share = figure.resolution.max(SMALLEST_EFFECT);
    match (scale, figure.scale) {
        (Scale::Logarithm, _) => libm::log1p(share),
        (Scale::Plain, Scale::Plain) => figure.resolution,
        (Scale::Plain, Scale::Logarithm) => share * larger_mean(first, second),
    }
}

fn larger_mean(first: &[f64], second: &[f64]) -> f64 {
    let mean = |values| mean_on(Scale::Plain, values).unwrap_or(0.0).abs();
    mean(first).max(mean(second))
}

/// Would the order of the values be as clear in at most 1 % of all ways to deal them out? With fewer than five repetitions
/// nothing is that clear; then each value of one side has to be beyond each of the other.
fn ranks_agree(first: &[f64], second: &[f64]) -> bool {
    rank::are_apart(first, second) || rank::exact_p(first, second) <= CHANCE_OF_ERROR
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

/// A pair with its corrected p value; entrants by their place in the match.
struct Judged {
    better: usize,
    worse: usize,
    pair: Pair,
    p_adjusted: Option<f64>,
}

/// Places of the entrants, best mean first; equal ones stay in order.
fn ranking(one: &Match) -> Vec<usize> {
    let scale = one.figure.scale.for_values(one.entrants.iter().flat_map(|entrant| &entrant.values));
    let means: Vec<f64> =
        one.entrants.iter().map(|entrant| mean_on(scale, &entrant.values).unwrap_or(f64::NAN)).collect();
    let mut order: Vec<usize> = (0..means.len()).collect();
    match one.figure.better {
        Better::Higher => order.sort_by(|a, b| means[*b].total_cmp(&means[*a])),
        Better::Lower | Better::Neither => order.sort_by(|a, b| means[*a].total_cmp(&means[*b])),
    }
    order
}

/// Every pair of a match, the better one first: those of the best entrant come first, in order of the ranking.
fn pairs_of(one: &Match) -> Vec<(usize, usize, Pair)> {
    let order = ranking(one);
    let mut pairs = Vec::new();
    for (place, better) in order.iter().enumerate() {
        for worse in &order[place + 1..] {
            let values = |entrant: usize| &one.entrants[entrant].values;
            pairs.push((*better, *worse, Pair::of(one.figure, values(*better), values(*worse))));
        }
    }
    pairs
}

fn contest(one: &Match, pairs: &[Judged]) -> Contest {
    let id = |entrant: usize| one.entrants[entrant].cell.clone();
    let ranking = ranking(one);
    let best = ranking.first().copied();
    let duels: Vec<Duel> = pairs
        .iter()
        .filter(|judged| Some(judged.better) == best)
        .map(|judged| Duel {
            better: id(judged.better),
            worse: id(judged.worse),
            difference: judged.pair.difference,
            is_ratio: judged.pair.scale == Scale::Logarithm,
            interval: judged.pair.tested.map(|found| found.interval()),
            p: judged.pair.tested.map(|found| found.p),
            p_adjusted: judged.p_adjusted,
            is_significant: judged.pair.is_significant(judged.p_adjusted),
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
        let entrant = |(place, values): (usize, &&[f64])| Entrant { cell: format!("{place}"), values: values.to_vec() };
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

    /// Numbers from a seed, normally distributed with a standard deviation of 1 (Box and Muller).
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

    /// A/A: of 2,000 experiments that compare a system with itself by four figures, at most 1 % may name a winner, and by chance
    /// a few more (three standard deviations of a binomial distribution).
    #[test]
    fn a_system_seldom_wins_against_itself() {
        let (experiments, figures) = (2_000, ["latency p50", "latency p99", "system memory", "system CPU a million"]);
        let most = 20 + 13;
        let mut noise = Noise(1);
        for (repetitions, spread) in [(3, 0.03), (3, 0.3), (5, 0.03), (5, 0.3), (8, 0.3)] {
            let mut entrant = |cell: &str| Entrant {
                cell: cell.to_owned(),
                values: (0..repetitions).map(|_| 1e6 * (spread * noise.normal()).exp()).collect(),
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
        let entrants = vec![
            Entrant { cell: "a".into(), values: vec![100.0, 104.0, 96.0] },
            Entrant { cell: "b".into(), values: vec![133.0, 138.0, 128.0] },
        ];
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
