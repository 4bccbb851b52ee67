//! Resources of the system: CPU per million messages, peak memory, memory per connection.

use super::{CELLS, Shown, View, bar, panels, shown};
use crate::charts::Chart;
use crate::experiment::Conclusion;
use crate::numbers::short;
use crate::plot::Axis;

/// Figures shown: name, head of the panel.
const SHOWN: [(&str, &str); 3] = [
    ("system CPU a million", "CPU for a million messages"),
    ("system memory", "memory at its peak"),
    ("memory per connection", "memory for a connection"),
];

pub(super) fn draw(view: &View) -> Option<Chart> {
    let axis = |shown: &Shown| {
        let ends =
            view.members().filter_map(|member| member.figure(shown.name)?.whole_interval()).map(|(_, high)| high);
        let means = view.members().filter_map(|member| member.mean(shown.name));
        Axis::from_zero(shown.unit.scaled(ends.chain(means).fold(0.0, f64::max)), shown.unit.symbol, short)
    };
    Some(Chart {
        picture: panels(view, &shown(view, &SHOWN), axis, |member, shown| bar(member.figure(shown.name), shown.unit))?,
        title: "What does it cost?",
        finding: finding(&view.conclusions()),
        notes: vec!["mean over the repetitions with its 95 % interval".to_string(), "lower is better".to_string()],
        csv: CELLS,
    })
}

fn finding(conclusions: &[Conclusion]) -> String {
    let shown = conclusions.iter().filter(|conclusion| SHOWN.iter().any(|(name, _)| *name == conclusion.figure));
    let sentences: Vec<String> = shown.map(Conclusion::sentence).collect();
    if sentences.is_empty() { "Costs are shown, not judged.".to_string() } else { sentences.join(" ") }
}
