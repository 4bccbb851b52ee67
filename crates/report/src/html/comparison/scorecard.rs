//! The scorecard of single runs. One run of each system proves nothing, so no value has a grade; the card states what
//! the bounds of the measurement leave undecided.

use maud::{Markup, html};
use pubmark_record::comparison::{Better, ComparedFigure, Comparison, Unit};

use crate::columns::ColumnUnit;
use crate::html::scorecard::{SCORED, Score, ScoreColumn, ScoreRow, scorecard};
use crate::numbers::significant;

pub(super) fn section(comparison: &Comparison) -> Markup {
    let find = |names: &[&str]| {
        // Nothing is judged here, so the last name is as suitable as the first.
        names.last().and_then(|name| comparison.figures.iter().find(|row| row.figure.name == *name))
    };
    let scored: Vec<(&str, &ComparedFigure, Option<ColumnUnit>)> = SCORED
        .iter()
        .filter_map(|(names, head)| {
            let row = find(names)?;
            let values = || row.values.iter().flatten().copied();
            let ends = values().reduce(f64::min).zip(values().reduce(f64::max));
            let unit = ends.map(|(smallest, largest)| ColumnUnit::between(row.figure.unit, smallest, largest));
            Some((*head, row, unit))
        })
        .collect();
    let columns: Vec<ScoreColumn> = scored
        .iter()
        .map(|(head, row, unit)| ScoreColumn {
            head,
            unit: unit.map_or_else(String::new, |unit| ScoreColumn::unit_of(row.figure.name, unit)),
            grade: None,
        })
        .collect();
    let rows: Vec<ScoreRow> = comparison
        .runs
        .iter()
        .enumerate()
        .map(|(run, compared)| ScoreRow {
            name: html! { (compared.label) },
            remark: compared.not_ranked.as_ref().map(|_| "not ranked".to_string()),
            scores: Ok(scored.iter().map(|(_, row, unit)| score(comparison, run, row, *unit)).collect()),
        })
        .collect();
    html! {
        (scorecard(&columns, &rows))
        p.aside {
            "A bar is as long as its value, the pale end what lies between the bounds of a measurement; below it how many times the best "
            "ranked one that is, by these bounds alone. Bars are grey: one run each proves nothing."
        }
    }
}

fn score(comparison: &Comparison, run: usize, row: &ComparedFigure, unit: Option<ColumnUnit>) -> Score {
    let [lower, upper] = row.bounds(run);
    let is_struck = !row.figure.is_usable(comparison.runs[run].record);
    let longest = row.values.iter().flatten().copied().fold(0.0, f64::max);
    let share = |value: f64| if longest > 0.0 { value / longest } else { 0.0 };
    let Some((value, unit)) = upper.zip(unit) else { return Score::default() };
    Score {
        text: unit.bounds([lower, upper]),
        bar: Some((share(lower.unwrap_or(value)), share(value))),
        note: if is_struck { "of an invalid run".to_string() } else { distance(comparison, run, row) },
        grade: None,
        is_struck,
    }
}

/// Difference of a run from the best usable run; from the best ranked run, if there is one.
fn distance(comparison: &Comparison, run: usize, row: &ComparedFigure) -> String {
    let higher = row.figure.better == Better::Higher;
    let value = |other: usize| row.values[other].unwrap_or_default();
    let usable = |other: &usize| row.figure.is_usable(comparison.runs[*other].record) && row.values[*other].is_some();
    let is_ranked = |other: usize| comparison.runs[other].not_ranked.is_none();
    let order = |a: &usize, b: &usize| {
        let by_value = value(*a).total_cmp(&value(*b));
        is_ranked(*b).cmp(&is_ranked(*a)).then(if higher { by_value.reverse() } else { by_value })
    };
    let Some(best) = (0..comparison.runs.len()).filter(usable).min_by(order) else { return String::new() };
    if best == run {
        return if row.best == Some(run) {
            if higher { "highest" } else { "lowest" }.to_string()
        } else {
            String::new()
        };
    }
    if value(run) == value(best) {
        return "the same".to_string();
    }
    if row.figure.unit == Unit::Share {
        return format!("{} points", significant((value(run) - value(best)) * 100.0));
    }
    match (row.bounds(run), row.bounds(best)) {
        _ if value(best) <= 0.0 => String::new(),
        ([Some(lower), Some(upper)], [Some(best_lower), Some(best_upper)]) if best_lower > 0.0 => {
            let (least, most) = (lower / best_upper, upper / best_lower);
            if least <= 1.0 && most >= 1.0 {
                "bounds overlap".to_string()
            } else {
                format!("{}–{} ×", significant(least), significant(most))
            }
        }
        _ => format!("{} ×", significant(value(run) / value(best))),
    }
}
