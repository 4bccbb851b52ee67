//! What does it cost: CPU for a million messages, memory at its peak and for each connection.

use super::{CELLS, Member, View, bar, rows};
use crate::charts::{Chart, Picture};
use crate::columns::ColumnUnit;
use crate::experiment::Conclusion;
use crate::numbers::short;
use crate::plot::Axis;
use crate::plot::rows::{RowPanel, Rows};

/// Figures shown: name, head of the panel.
const SHOWN: [(&str, &str); 3] = [
    ("system CPU a million", "CPU for a million messages"),
    ("system memory", "memory at its peak"),
    ("memory per connection", "memory for a connection"),
];

pub(super) fn draw(view: &View) -> Option<Chart> {
    let shown: Vec<(&str, &str, ColumnUnit)> =
        SHOWN.iter().filter_map(|(name, head)| Some((*name, *head, view.unit(name)?))).collect();
    if shown.is_empty() {
        return None;
    }
    let panels: Vec<RowPanel> = shown
        .iter()
        .map(|(name, head, unit)| {
            let ends = view.members().filter_map(|member| member.figure(name)?.interval.as_ref().map(|i| i.high));
            let means = view.members().filter_map(|member| member.mean(name));
            let largest = ends.chain(means).fold(0.0, f64::max);
            RowPanel { name: (*head).to_string(), axis: Axis::from_zero(unit.scaled(largest), unit.symbol, short) }
        })
        .collect();
    let contents = |member: &Member| shown.iter().map(|(name, _, unit)| bar(member.figure(name), *unit)).collect();
    Some(Chart {
        title: "What does it cost?",
        finding: finding(&view.conclusions()),
        notes: vec!["mean over the repetitions with its 95 % interval".to_string(), "lower is better".to_string()],
        csv: CELLS,
        picture: Picture::Rows(Rows { groups: rows(view, contents, panels.len()), panels }),
    })
}

fn finding(conclusions: &[Conclusion]) -> String {
    let shown = conclusions.iter().filter(|conclusion| SHOWN.iter().any(|(name, _)| *name == conclusion.figure));
    let sentences: Vec<String> = shown.map(Conclusion::sentence).collect();
    if sentences.is_empty() { "Costs are shown, not judged.".to_string() } else { sentences.join(" ") }
}
