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
    let mut notes = vec![
        "a point a run, a stroke at the median, a box from the first to the third quartile".to_string(),
        "lower is better".to_string(),
    ];
    if view.members().any(|member| SHOWN.iter().any(|(name, _)| lacks_runs(member, name))) {
        notes.push("without what the verdicts of invalid runs exclude".to_string());
    }
    Some(Chart {
        picture: panels(view, &shown(view, &SHOWN), axis, content)?,
        title: "How much do repetitions differ?",
        finding: finding(view),
        notes,
        csv: CELLS,
    })
}

/// Whether runs that measured the figure are left out, because their verdict excludes it.
fn lacks_runs(member: &Member, name: &str) -> bool {
    let measured = member.figure(name).map_or(0, |figure| figure.values.iter().flatten().count());
    member.usable_values(name).iter().flatten().count() < measured
}

fn spread(member: &Member, name: &str, unit: ColumnUnit) -> Content {
    let Some(figure) = member.figure(name) else { return Content::Words("not measured".to_string()) };
    let usable = member.usable_values(name);
    let values: Vec<f64> = usable.iter().flatten().copied().collect();
    let Some(median) = figure.median.filter(|_| !values.is_empty()) else {
        return Content::Words("not measured".to_string());
    };
    let box_text = figure.quartiles.map_or_else(String::new, |(low, high)| {
        format!(", quartiles {} and {}", unit.number(low), unit.with_symbol(high))
    });
    let all = usable.iter().map(|value| value.map_or_else(|| MISSING.to_string(), |value| unit.number(value)));
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
        let values: Vec<f64> = member.usable_values("latency p99").into_iter().flatten().collect();
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

#[cfg(test)]
mod tests {
    use pubmark_record::record::VerdictStatus;
    use pubmark_record::sample_experiment::experiment;

    use super::*;

    #[test]
    fn times_of_a_run_that_must_not_be_used_are_not_drawn_and_not_compared() {
        let mut record = experiment();
        let cell = &mut record.cells[0];
        cell.runs[2].verdict = VerdictStatus::Invalid;
        for figure in cell.figures.iter_mut().filter(|figure| figure.figure.starts_with("latency")) {
            figure.values[2] = figure.values[2].map(|value| value * 1_000.0);
        }
        let mut without = record.clone();
        let p99 = without.cells[0].figures.iter_mut().find(|figure| figure.figure == "latency p99");
        p99.expect("measured").values[2] = None;
        let view = View::of(&record);
        let member = view.members().next().expect("the first cell");
        let points = |name: &str| match spread(member, name, view.unit(name).expect("measured")) {
            Content::Spread(spread) => spread.values.len(),
            _ => 0,
        };
        assert_eq!(
            (points("latency p99"), points("system CPU a million")),
            (4, 5),
            "its counts and its CPU time count"
        );
        assert_eq!(finding(&view), finding(&View::of(&without)));
        let chart = draw(&view).expect("a chart");
        assert!(chart.notes.iter().any(|note| note.contains("invalid")), "{:?}", chart.notes);
        // Where there are no others they are shown.
        let mut record = experiment();
        record.cells[0].runs.iter_mut().for_each(|run| run.verdict = VerdictStatus::Invalid);
        record.cells[0].figures.iter_mut().for_each(|figure| figure.shown_only = true);
        let view = View::of(&record);
        assert_eq!(
            view.members().next().expect("the first cell").usable_values("latency p99").iter().flatten().count(),
            5
        );
    }
}
