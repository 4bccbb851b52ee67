//! Spread of repetitions: a box plot of each cell for the most important figures.

use super::{CELLS, Member, Shown, View, all_values, panels, shown};
use crate::charts::Chart;
use crate::columns::ColumnUnit;
use crate::numbers::{MISSING, short};
use crate::plot::Axis;
use crate::plot::rows::{Content, Spread};
use crate::words::sentence;

/// Figures shown: name, head of the panel.
const SHOWN: [(&str, &str); 3] = [
    ("latency p50", "latency p50"),
    ("latency p99", "latency p99"),
    ("system CPU a million", "CPU for a million messages"),
];

pub(super) fn draw(view: &View) -> Option<Chart> {
    let axis = |shown: &Shown| Axis::fitting(&all_values(view, shown.name, shown.unit), shown.unit.symbol, short);
    let content = |member: &Member, shown: &Shown| spread(member, shown.name, shown.unit);
    Some(Chart {
        picture: panels(view, &shown(view, &SHOWN), axis, content)?,
        title: "How much do repetitions differ?",
        finding: finding(view),
        notes: vec![
            "a point a run, a stroke at the median, a box from the first to the third quartile".to_string(),
            "lower is better".to_string(),
        ],
        csv: CELLS,
    })
}

fn spread(member: &Member, name: &str, unit: ColumnUnit) -> Content {
    let Some(figure) = member.figure(name) else { return Content::Words("not measured".to_string()) };
    let values: Vec<f64> = figure.values.iter().flatten().copied().collect();
    let Some(median) = figure.median.filter(|_| !values.is_empty()) else {
        return Content::Words("not measured".to_string());
    };
    let box_text = figure.quartiles.map_or_else(String::new, |(low, high)| {
        format!(", quartiles {} and {}", unit.number(low), unit.with_symbol(high))
    });
    let all = figure.values.iter().map(|value| value.map_or_else(|| MISSING.to_string(), |value| unit.number(value)));
    Content::Spread(Spread {
        text: format!(
            "{}: median {}{box_text}; runs: {} {}",
            member.cell.label,
            unit.with_symbol(median),
            all.collect::<Vec<String>>().join(", "),
            unit.symbol
        ),
        values: values.iter().map(|value| unit.scaled(*value)).collect(),
        median: unit.scaled(median),
        quartiles: figure.quartiles.map(|(low, high)| (unit.scaled(low), unit.scaled(high))),
    })
}

/// The cell whose p99 varies most between runs.
fn finding(view: &View) -> String {
    let ratio = |member: &Member| {
        let values: Vec<f64> = member.figure("latency p99")?.values.iter().flatten().copied().collect();
        let (low, high) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        (low > 0.0 && values.len() > 1).then(|| (high / low, member.cell.label.clone()))
    };
    match view.members().filter_map(ratio).max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((ratio, label)) => sentence(&format!(
            "from run to run, p99 differs most with {label}: its largest is {} times its smallest",
            crate::numbers::significant(ratio)
        )),
        None => "There are too few repetitions with a p99 to see how they differ.".to_string(),
    }
}
