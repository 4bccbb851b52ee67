//! First screens of comparisons, experiments and searches: colours show the certainty of a difference.

use pubmark_record::comparison::compare;
use pubmark_record::evaluation::contests::{Entrant, Match, decide};
use pubmark_record::experiment::{ExperimentRecord, Grade};
use pubmark_record::figures::figure;
use pubmark_record::sample_experiment::{self, Grid};
use pubmark_report::experiment::View;
use pubmark_report::html;

use crate::fixtures;

const SCORED: [&str; 5] = ["delivered", "latency p50", "latency p99", "system CPU a million", "system memory"];

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let rest = page.split(&format!(" id=\"{id}\"")).nth(1).unwrap_or_else(|| panic!("no #{id}"));
    rest.split("</section>").next().unwrap()
}

/// Number of cells of the scorecard by the grade of their difference from the best; the best cell has the lowest grade
/// of its duels.
fn grades(record: &ExperimentRecord, wanted: Grade) -> usize {
    let contests = record.contests.iter().filter(|contest| SCORED.contains(&contest.figure.as_str()));
    contests
        .filter_map(|contest| {
            let others = contest.duels.iter().filter(|duel| duel.grade() == wanted).count();
            let best = contest.duels.iter().map(|duel| duel.grade()).min()?;
            Some(others + usize::from(best == wanted))
        })
        .sum()
}

#[test]
fn the_colour_of_each_bar_is_the_grade_of_its_distance_from_the_best() {
    let record = sample_experiment::experiment();
    let page = html::experiment(&record);
    let scorecard = section(&page, "scorecard");
    for (grade, class) in [(Grade::Proven, "g-proven"), (Grade::Likely, "g-likely"), (Grade::NotShown, "g-not-shown")] {
        assert_eq!(scorecard.matches(&format!("class=\"bar {class}\"")).count(), grades(&record, grade), "{class}");
    }
    assert!(grades(&record, Grade::Proven) > 0 && grades(&record, Grade::NotShown) > 0);
    assert!(page.contains("<section class=\"g-proven\" id=\"verdict\">"));
}

#[test]
fn where_nothing_is_shown_no_colour_says_otherwise() {
    let record = sample_experiment::no_winner();
    let page = html::experiment(&record);
    let scorecard = section(&page, "scorecard");
    let bars = |class: &str| scorecard.matches(&format!("class=\"bar {class}\"")).count();
    assert_eq!(bars("g-proven"), grades(&record, Grade::Proven));
    assert_eq!(bars("g-likely"), grades(&record, Grade::Likely));
    assert!(page.contains("<section class=\"g-not-shown\" id=\"verdict\">"));
}

#[test]
fn a_share_that_is_lower_is_not_the_same_although_pubmark_may_have_dropped_the_rest() {
    let mut record = sample_experiment::experiment_over(&Grid { systems: 2, ..Grid::default() });
    let contest = record.contests.iter_mut().find(|contest| contest.figure == "delivered").unwrap();
    let (axis, among, ids) = (contest.axis.clone(), contest.among.clone(), contest.ranking.clone());
    let lossy = Entrant { lower: vec![0.9; 5], ..Entrant::exact(&ids[1], vec![1.0; 5]) };
    let entrants = vec![Entrant::exact(&ids[0], vec![1.0; 5]), lossy];
    *contest = decide(&[Match { axis, among, figure: figure("delivered").unwrap(), entrants }]).remove(0);
    let cell = record.cells.iter_mut().find(|cell| cell.id == ids[1]).unwrap();
    let delivered = cell.figures.iter_mut().find(|figure| figure.figure == "delivered").unwrap();
    (delivered.values, delivered.mean) = (vec![Some(0.9); 5], Some(0.9));
    let page = html::experiment(&record);
    let scorecard = section(&page, "scorecard");
    assert!(scorecard.contains("−10.0 points") && !scorecard.contains("the same"), "{scorecard}");
    let conclusions = View::of(&record).conclusions();
    let text = &conclusions.iter().find(|found| found.figure == "delivered").unwrap().text;
    assert!(text.contains(": 10.0 points (") && text.ends_with("the bounds of what was measured overlap"), "{text}");
}

#[test]
fn single_runs_prove_nothing_and_the_built_in_broker_is_no_yardstick() {
    let records = fixtures::compared();
    let page = html::comparison(&compare(&records).unwrap());
    let scorecard = section(&page, "scorecard");
    assert_eq!(scorecard.matches("class=\"bar ").count(), 15);
    assert_eq!(scorecard.matches("class=\"bar g-none\"").count(), 15);
    let row = |name: &str| {
        scorecard.split("<tr>").find(|row| row.contains(&format!("<th scope=\"row\">{name}"))).unwrap().to_string()
    };
    // By p50 the second system is the best that is ranked; the built-in one is faster.
    assert!(row("betamq").contains("lowest"), "{}", row("betamq"));
    assert!(row("builtin").contains("not ranked") && !row("builtin").contains("lowest"), "{}", row("builtin"));
}

#[test]
fn a_figure_without_values_keeps_its_column() {
    let mut record = sample_experiment::no_winner();
    record.contests.retain(|contest| contest.figure != "latency p99");
    record.cells.iter_mut().for_each(|cell| cell.figures.retain(|figure| figure.figure != "latency p99"));
    let page = html::experiment(&record);
    let scorecard = section(&page, "scorecard");
    assert!(scorecard.contains("<th>p99</th>"), "{scorecard}");
    assert_eq!(scorecard.matches(">—</div>").count(), record.cells.len());
}

#[test]
fn a_search_shows_both_loads_and_the_headroom() {
    let page = html::capacity(&sample_experiment::capacity());
    assert!(section(&page, "result").contains("11.5 ×"));
    let charts = page.matches("<figure id=").count();
    assert_eq!(page.matches("class=\"post written\"").count(), 2 * charts);
    assert_eq!(page.matches("class=\"post answer\"").count(), 2 * charts);
    let mut nothing = sample_experiment::capacity();
    nothing.result.holds_per_s = None;
    let page = html::capacity(&nothing);
    assert!(section(&page, "result").matches("—").count() >= 3 && !page.contains("post answer\""), "nothing held");
}
