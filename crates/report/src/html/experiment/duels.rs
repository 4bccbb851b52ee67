//! All duels: the best cell by a figure compared with each other cell.

use maud::{Markup, html};
use pubmark_model::experiment::axis_words;
use pubmark_record::experiment::{Contest, Duel, Grade};

use crate::columns::EXPERIMENT_COLUMNS;
use crate::experiment::{View, probability};
use crate::html::scorecard::badge;
use crate::numbers::{MISSING, significant};

/// Most duels that are shown unfolded.
const UNFOLDED: usize = 24;

pub(super) fn section(view: &View) -> Markup {
    let mut contests: Vec<&Contest> = view.record.contests.iter().filter(|contest| !contest.duels.is_empty()).collect();
    let place = |contest: &Contest| EXPERIMENT_COLUMNS.iter().position(|column| column.figure == contest.figure);
    // Sorted by figure first, in the order of the columns, so that all settings of a figure are together.
    contests.sort_by_key(|contest| place(contest).unwrap_or(usize::MAX));
    let count: usize = contests.iter().map(|contest| contest.duels.len()).sum();
    if count == 0 {
        return html! { p.missing { "Nothing could be compared: fewer than two cells that may be ranked have figures." } };
    }
    let is_told = count <= UNFOLDED;
    html! {
        p {
            "The best by its mean against each other cell. A ratio is the other's mean over the best's. p is the probability of a "
            "difference as large if both were the same; Holm's p is corrected for the number of all comparisons."
        }
        details open[is_told] {
            summary { (count) " comparisons" }
            div.scroll { table.sortable.duels {
                thead { tr {
                    @if view.groups.len() > 1 { th { "setting" } }
                    th { "figure" } th { "best" } th { "other" } th.number { "other over best" }
                    th.number { "95 % interval" } th.number { "p" } th.number { "p, Holm" } th { "difference" }
                } }
                tbody { @for contest in contests { @for duel in &contest.duels { (row(view, contest, duel)) } } }
            } }
        }
    }
}

fn row(view: &View, contest: &Contest, duel: &Duel) -> Markup {
    let print = |value: f64| {
        if duel.is_ratio { format!("{} ×", significant(value)) } else { view.plain_difference(&contest.figure, value) }
    };
    let among: Vec<String> = contest.among.iter().map(|(name, value)| axis_words(name, value)).collect();
    let p = |value: Option<f64>| probability(value).trim_start_matches("p ").to_string();
    html! {
        tr.none[duel.grade() == Grade::NotShown] {
            @if view.groups.len() > 1 { td { (among.join(", ")) } }
            th scope="row" { (contest.figure) }
            td { (view.name_of(&duel.better)) }
            td { (view.name_of(&duel.worse)) }
            td.number data-sort=(duel.difference) { (print(duel.difference)) }
            td.number data-sort=(duel.interval.map_or(-1.0, |(low, _)| low)) {
                @match duel.interval { Some((low, high)) => { (print(low)) " – " (print(high)) } None => (MISSING) }
            }
            td.number data-sort=(duel.p.unwrap_or(2.0)) { (p(duel.p)) }
            td.number data-sort=(duel.p_adjusted.unwrap_or(2.0)) { (p(duel.p_adjusted)) }
            td data-sort=(duel.grade() as u8) { (badge(duel.grade())) }
        }
    }
}
