//! The scorecards of an experiment: one per setting, with the grade of each difference.

use maud::{Markup, html};
use pubmark_record::comparison::Better;
use pubmark_record::experiment::{Contest, Duel, Grade};

use super::systems::key;
use super::winners::contest;
use crate::columns::{ColumnUnit, figure};
use crate::experiment::{Group, Member, View, grade_of, ratio};
use crate::html::scorecard::{SCORED, Score, ScoreColumn, ScoreRow, scorecard};

/// Most settings that have a scorecard each; with more, only the table is shown.
const MOST_SETTINGS: usize = 6;

pub(super) fn section(view: &View) -> Markup {
    if view.groups.len() > MOST_SETTINGS {
        return html! { p.aside { "More than " (MOST_SETTINGS) " settings: the table below has them all." } };
    }
    html! {
        @for group in &view.groups {
            @if !group.label.is_empty() { h3 { (group.label) } }
            (of_group(view, group))
        }
        p.aside {
            "A bar is as long as its value, the pale end what lies between the bounds of a measurement; below it how many times the "
            "best that is, with the 95 % interval. The colour says how well that is known: "
            @for grade in [Grade::Proven, Grade::Likely, Grade::NotShown] { (crate::html::scorecard::badge(grade)) " " }
        }
    }
}

/// A figure of the scorecard in one setting.
struct Scored<'a> {
    name: &'static str,
    unit: Option<ColumnUnit>,
    contest: Option<&'a Contest>,
}

fn of_group(view: &View, group: &Group) -> Markup {
    let mut columns = Vec::new();
    let mut scored: Vec<Scored> = Vec::new();
    for (names, head) in SCORED {
        let judged = names.iter().find(|name| contest(view, group, name).is_some());
        let Some(name) = judged.or(names.last()).copied() else { continue };
        // A figure that no cell has keeps its column, to show that it is missing.
        let unit = view.unit(name);
        let contest = contest(view, group, name);
        let grade = contest.filter(|contest| !contest.duels.is_empty()).map(grade_of);
        let symbol = unit.map_or_else(String::new, |unit| ScoreColumn::unit_of(name, unit));
        columns.push(ScoreColumn { head, unit: symbol, grade });
        scored.push(Scored { name, unit, contest });
    }
    let rows: Vec<ScoreRow> = group.members.iter().map(|member| row(view, group, member, &scored)).collect();
    scorecard(&columns, &rows)
}

fn row(view: &View, group: &Group, member: &Member, scored: &[Scored]) -> ScoreRow {
    let scores = match member.failed() {
        Some(why) => Err(why.to_string()),
        None => Ok(scored.iter().map(|one| score(view, group, member, one)).collect()),
    };
    ScoreRow {
        name: html! { span.key { (key(member.style)) } (member.name_with_version()) },
        remark: (!member.is_ranked()).then(|| "not ranked".to_string()),
        scores,
    }
}

fn score(view: &View, group: &Group, member: &Member, scored: &Scored) -> Score {
    let found = member.figure(scored.name).filter(|figure| figure.mean.is_some());
    let Some((found, unit)) = found.zip(scored.unit) else { return Score::default() };
    let [lower, upper] = found.mean_bounds();
    let longest = group.members.iter().filter_map(|other| other.mean(scored.name)).fold(0.0, f64::max);
    let share = |value: f64| if longest > 0.0 { value / longest } else { 0.0 };
    let (note, grade) = distance(view, member, scored);
    Score {
        text: unit.bounds([lower, upper]),
        bar: upper.map(|upper| (share(lower.unwrap_or(upper)), share(upper))),
        note,
        grade,
        is_struck: found.shown_only,
    }
}

/// The difference of equal values.
fn nothing(duel: &Duel) -> f64 {
    if duel.is_ratio { 1.0 } else { 0.0 }
}

/// Difference of a cell from the best of its contest, and its certainty.
fn distance(view: &View, member: &Member, scored: &Scored) -> (String, Option<Grade>) {
    let Some(contest) = scored.contest else { return (String::new(), None) };
    if contest.ranking.first() == Some(&member.cell.id) {
        if contest.duels.iter().all(|duel| duel.difference == nothing(duel)) {
            return (String::new(), (!contest.duels.is_empty()).then(|| grade_of(contest)));
        }
        let word = match figure(scored.name).map(|figure| figure.better) {
            Some(Better::Higher) => "highest",
            _ => "lowest",
        };
        return (word.to_string(), (!contest.duels.is_empty()).then(|| grade_of(contest)));
    }
    let Some(duel) = contest.duels.iter().find(|duel| duel.worse == member.cell.id) else {
        return (String::new(), None);
    };
    if duel.difference == nothing(duel) {
        return ("the same".to_string(), Some(duel.grade()));
    }
    let print = |value: f64| if duel.is_ratio { ratio(value) } else { view.plain_difference(scored.name, value) };
    let sign = if duel.is_ratio { " ×" } else { "" };
    let range = match duel.interval {
        Some((low, high)) if duel.is_ratio => format!(" ({}–{})", print(low), print(high)),
        _ => String::new(),
    };
    (format!("{}{sign}{range}", print(duel.difference)), Some(duel.grade()))
}
