//! Simulates how often a winner is named where there is none, and how large a difference is found. Simulation is needed
//! because the conditions of the textbook (normal noise, independent runs) do not hold on a real machine. The tables
//! are in `docs/explanation/comparing.md`; the tests fail if they differ from that page.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use pubmark_model::random::Stream;

use super::contests::{Entrant, Match, decide};
use crate::experiment::{Contest, Grade};
use crate::figures::{FIGURES, Figure, ShownOf};

/// Comparisons simulated for each entry of the table of false winners.
const COMPARISONS: u64 = 2_000;
/// Experiments simulated for each difference of the table of detected differences.
const EXPERIMENTS: u64 = 300;

/// Noise around 1 for repetition number `order` of `of` (in order of execution).
type Noise = fn(draws: Stream, order: usize, of: usize) -> f64;

/// Kinds of noise, by name.
const NOISES: [(&str, Noise); 8] = [
    ("normal on logarithms, 5 %", |draws, order, _| spread(draws, order, 0.05)),
    ("normal on logarithms, 50 %", |draws, order, _| spread(draws, order, 0.5)),
    ("heavy tail (Student's t with 2 degrees, 20 %)", |draws, order, _| libm::exp(0.2 * heavy(draws, order))),
    ("one run in five disturbed, 3 to 10 times as high", disturbed),
    ("drift by a third over the experiment, 5 %", |draws, order, of| {
        spread(draws, order, 0.05) * (1.0 + order as f64 / of as f64 / 3.0)
    }),
    ("spells: each run half like the one before, 20 %", |draws, order, _| libm::exp(0.2 * spell(draws, order))),
    ("few steps of 2 %", |draws, order, _| 1.0 + 0.02 * (draws.unit(order as u64) * 3.0).floor()),
    ("one of two values, 10 % apart", |draws, order, _| if draws.unit(order as u64) < 0.5 { 1.0 } else { 1.1 }),
];

fn spread(draws: Stream, order: usize, deviation: f64) -> f64 {
    libm::exp(deviation * draws.normal(order as u64))
}

/// Student's t with two degrees of freedom, whose variance is infinite.
fn heavy(draws: Stream, order: usize) -> f64 {
    let normal = draws.normal(order as u64);
    normal / libm::sqrt(draws.exponential(1_000 + order as u64))
}

fn disturbed(draws: Stream, order: usize, _: usize) -> f64 {
    let place = 1_000 + order as u64;
    let factor = if draws.unit(place) < 0.2 { 3.0 + 7.0 * draws.unit(place + 1_000) } else { 1.0 };
    factor * spread(draws, order, 0.05)
}

fn spell(draws: Stream, order: usize) -> f64 {
    (0..=order).fold(0.0, |before, run| 0.5 * before + 0.866 * draws.normal(run as u64))
}

/// Judges an experiment with `cells` systems; `value` returns a figure of a run by figure, cell and position in the
/// order of runs. Runs are executed in rounds, with the cells of a round in random order.
fn contests(
    cells: usize,
    repetitions: usize,
    seed: u64,
    value: impl Fn(usize, &Figure, usize, usize) -> f64,
) -> Vec<Contest> {
    let order = Stream::new(seed, 17);
    let rounds: Vec<Vec<usize>> = (0..repetitions)
        .map(|round| {
            let mut round_order: Vec<usize> = (0..cells).collect();
            round_order.sort_by_key(|cell| order.bits((round * cells + cell) as u64));
            round_order
        })
        .collect();
    let judged = FIGURES.iter().filter(|figure| is_usual(figure));
    let matches: Vec<Match> = judged
        .enumerate()
        .map(|(number, figure)| {
            let values = |cell: usize| {
                let place = |(round, cells_of_round): (usize, &Vec<usize>)| {
                    round * cells + cells_of_round.iter().position(|other| *other == cell).unwrap()
                };
                rounds.iter().enumerate().map(place).map(|place| value(number, figure, cell, place)).collect()
            };
            let entrants = (0..cells).map(|cell| Entrant::exact(&cell.to_string(), values(cell))).collect();
            Match { axis: "system".into(), among: BTreeMap::new(), figure, entrants }
        })
        .collect();
    decide(&matches)
}

/// Whether a figure is judged in every open-loop comparison. Comparisons of client programs have one more figure.
fn is_usual(figure: &Figure) -> bool {
    figure.judged.applies(false) && figure.shown_of == ShownOf::All
}

/// Value of a figure for noise around 1: delivered shares are reduced by up to a hundredth, and by nothing in half of
/// the runs.
fn figure_value(figure: &Figure, noise: f64) -> f64 {
    if figure.name == "delivered" { 1.0 - ((noise - 1.0) * 0.01).clamp(0.0, 1.0) } else { 100.0 * noise }
}

/// A comparison of equal systems.
fn of_equals(noise: Noise, cells: usize, repetitions: usize, comparison: u64) -> Vec<Contest> {
    contests(cells, repetitions, comparison, |number, figure, _, place| {
        let draws = Stream::new(comparison, 100 + number as u64);
        figure_value(figure, noise(draws, place, cells * repetitions))
    })
}

/// Number of comparisons of equal systems, of [`COMPARISONS`], that name a winner by any figure.
fn false_winners(noise: Noise, cells: usize, repetitions: usize) -> u64 {
    let has_winner = |comparison: &u64| {
        of_equals(noise, cells, repetitions, *comparison).iter().any(|contest| contest.winner.is_some())
    };
    (0..COMPARISONS).filter(has_winner).count() as u64
}

/// Share of the figures of pairs of equal systems whose difference is graded *likely*.
fn falsely_likely(noise: Noise, repetitions: usize) -> f64 {
    let (mut all, mut likely) = (0, 0);
    for comparison in 0..COMPARISONS {
        for duel in of_equals(noise, 2, repetitions, comparison).iter().flat_map(|contest| &contest.duels) {
            all += 1;
            likely += u64::from(duel.grade() == Grade::Likely);
        }
    }
    likely as f64 / all as f64
}

fn table_of_likely() -> (String, Vec<f64>) {
    let mut table =
        String::from("| noise of a run | 3 repetitions | 5 repetitions | 10 repetitions |\n|---|---|---|---|\n");
    let mut shares = Vec::new();
    for (name, noise) in NOISES {
        table.push_str(&format!("| {name} |"));
        for repetitions in [3, 5, 10] {
            let share = falsely_likely(noise, repetitions);
            table.push_str(&format!(" {:.1} % |", share * 100.0));
            shares.push(share);
        }
        table.push('\n');
    }
    (table, shares)
}

/// Columns of the first table: systems, repetitions.
const PLANS: [(usize, usize); 5] = [(2, 3), (2, 5), (2, 10), (4, 3), (4, 5)];

fn table_of_false_winners() -> (String, Vec<(String, u64)>) {
    let mut table = String::from("| noise of a run |");
    PLANS.iter().for_each(|(cells, repetitions)| table.push_str(&format!(" {cells} × {repetitions} |")));
    table.push_str(&format!("\n|---|{}\n", "---|".repeat(PLANS.len())));
    let mut counts = Vec::new();
    for (name, noise) in NOISES {
        table.push_str(&format!("| {name} |"));
        for (cells, repetitions) in PLANS {
            let count = false_winners(noise, cells, repetitions);
            table.push_str(&format!(" {:.2} % |", count as f64 * 100.0 / COMPARISONS as f64));
            counts.push((format!("{name}, {cells} systems, {repetitions} repetitions"), count));
        }
        table.push('\n');
    }
    (table, counts)
}

/// Simulated differences: the median latency of the second system over that of the first.
const RATIOS: [f64; 14] = [1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0];

/// The smallest ratio for which the better of two systems is named by that figure in four of five experiments.
fn ratio_found(deviation: f64, repetitions: usize) -> Option<f64> {
    let is_found = |ratio: &f64| {
        let right = |experiment: &u64| {
            let found = contests(2, repetitions, *experiment, |number, figure, cell, place| {
                let noise = spread(Stream::new(*experiment, 200 + number as u64), place, deviation);
                let is_slower = cell == 1 && figure.name == "latency p50";
                figure_value(figure, if is_slower { noise * ratio } else { noise })
            });
            let place = FIGURES.iter().filter(|figure| is_usual(figure));
            let place = place.take_while(|figure| figure.name != "latency p50").count();
            found[place].winner.as_deref() == Some("0")
        };
        (0..EXPERIMENTS).filter(right).count() as u64 * 5 >= EXPERIMENTS * 4
    };
    RATIOS.into_iter().find(is_found)
}

fn table_of_power() -> String {
    let mut table = String::from("| noise | 3 repetitions | 5 repetitions | 10 repetitions |\n|---|---|---|---|\n");
    for deviation in [0.02, 0.05, 0.2] {
        table.push_str(&format!("| {:.0} % |", deviation * 100.0));
        for repetitions in [3, 5, 10] {
            let found = ratio_found(deviation, repetitions);
            table.push_str(&found.map_or_else(|| " — |".to_owned(), |ratio| format!(" × {ratio} |")));
        }
        table.push('\n');
    }
    table
}

fn assert_page_has(table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/comparing.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains(table.trim_end()), "docs/explanation/comparing.md has other figures than\n{table}");
}

#[test]
fn a_system_compared_with_itself_wins_against_itself_in_about_one_of_a_hundred_comparisons_at_most() {
    let (table, counts) = table_of_false_winners();
    println!("{table}");
    for (what, count) in &counts {
        // 1 % of 2,000, plus three standard deviations of such a count.
        assert!(*count <= 33, "{what}: {count} of {COMPARISONS} name a winner");
    }
    // Target of the project: of 40 comparisons with five repetitions, at most two name a winner.
    for (what, count) in counts.iter().filter(|(what, _)| what.ends_with("2 systems, 5 repetitions")) {
        let chance = *count as f64 / COMPARISONS as f64;
        let exactly = |winners: i32, ways: f64| ways * chance.powi(winners) * (1.0 - chance).powi(40 - winners);
        let kept = exactly(0, 1.0) + exactly(1, 40.0) + exactly(2, 780.0);
        assert!(kept > 0.99, "{what}: kept in {kept:.4} of all cases");
    }
    assert_page_has(&table);
}

#[test]
fn a_difference_between_equal_systems_is_called_likely_as_often_as_the_page_says() {
    let (table, shares) = table_of_likely();
    println!("{table}");
    // 5 % of 10,000 figures, plus three standard deviations of such a share.
    assert!(shares.iter().all(|share| *share < 0.057), "{shares:?}");
    assert_page_has(&table);
}

#[test]
fn differences_are_found_that_the_page_promises() {
    let table = table_of_power();
    println!("{table}");
    assert_page_has(&table);
}
