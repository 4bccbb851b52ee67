//! The charts of an experiment, in the order of the page. A new chart is a file in `charts/experiment/` and a row in
//! [`EXPERIMENT_CHARTS`].

mod boxes;
mod cost;
mod load;
mod loss;
mod spread;
mod tails;

use pubmark_record::experiment::CellFigure;

use super::{Chart, Picture};
use crate::columns::ColumnUnit;
use crate::experiment::{Member, View};
use crate::plot::Axis;
use crate::plot::rows::{Content, Row, RowGroup, RowPanel, Rows};

/// File with the figures of all cells, relative to the page.
const CELLS: &str = "csv/cells.csv";

/// A chart on the page of an experiment.
pub struct ExperimentChartRow {
    /// Anchor in the page.
    pub id: &'static str,
    /// Draws the chart; `None` if it does not apply to the experiment.
    pub draw: fn(&View) -> Option<Chart>,
}

/// All charts.
pub const EXPERIMENT_CHARTS: [ExperimentChartRow; 6] = [
    ExperimentChartRow { id: "spread", draw: spread::draw },
    ExperimentChartRow { id: "load", draw: load::draw },
    ExperimentChartRow { id: "boxes", draw: boxes::draw },
    ExperimentChartRow { id: "tails", draw: tails::draw },
    ExperimentChartRow { id: "loss", draw: loss::draw },
    ExperimentChartRow { id: "cost", draw: cost::draw },
];

/// One row for each cell, in its group, for a chart of these figures; a cell without figures has the reason in every panel.
fn rows(view: &View, figures: &[&str], contents: impl Fn(&Member) -> Vec<Content>, panels: usize) -> Vec<RowGroup> {
    let row = |member: &Member| {
        let contents = match member.failed() {
            Some(why) => vec![Content::Words(why.to_string()); panels],
            None => contents(member),
        };
        Row { name: member.name_in_chart(figures), style: member.style, contents }
    };
    let group = |group: &crate::experiment::Group| RowGroup {
        name: group.label.clone(),
        rows: group.members.iter().map(row).collect(),
    };
    view.groups.iter().map(group).collect()
}

/// A figure with a separate panel.
struct Shown {
    /// Name in records.
    name: &'static str,
    /// Head of the panel.
    head: &'static str,
    unit: ColumnUnit,
}

/// Those of these figures (name, head) that the experiment has.
fn shown(view: &View, figures: &[(&'static str, &'static str)]) -> Vec<Shown> {
    figures.iter().filter_map(|&(name, head)| Some(Shown { name, head, unit: view.unit(name)? })).collect()
}

/// A chart with panels side by side and a row for each cell; `None` without figures.
fn panels(
    view: &View,
    shown: &[Shown],
    axis: impl Fn(&Shown) -> Axis,
    content: impl Fn(&Member, &Shown) -> Content,
) -> Option<Picture> {
    let panels: Vec<RowPanel> =
        shown.iter().map(|shown| RowPanel { name: shown.head.to_string(), axis: axis(shown) }).collect();
    let contents = |member: &Member| shown.iter().map(|shown| content(member, shown)).collect();
    let figures: Vec<&str> = shown.iter().map(|shown| shown.name).collect();
    (!panels.is_empty()).then(|| Picture::Rows(Rows { groups: rows(view, &figures, contents, panels.len()), panels }))
}

/// All usable values of a figure over all cells, in the unit of its column.
fn all_values(view: &View, name: &str, unit: ColumnUnit) -> Vec<f64> {
    let values = view.members().flat_map(|member| member.usable_values(name));
    values.flatten().map(|value| unit.scaled(value)).collect()
}

/// Mean of a figure as a bar with its interval, that of both bounds together.
fn bar(figure: Option<&CellFigure>, unit: ColumnUnit) -> Content {
    let Some((figure, mean)) = figure.and_then(|figure| figure.mean.map(|mean| (figure, mean))) else {
        return Content::Words("not measured".to_string());
    };
    Content::Bar {
        value: unit.scaled(mean),
        interval: figure.whole_interval().map(|(low, high)| (unit.scaled(low).max(0.0), unit.scaled(high))),
        text: unit.bounds_with_symbol(figure.mean_bounds()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::comparison::Unit;
    use pubmark_record::sample_experiment::experiment;

    use super::*;

    #[test]
    fn a_whisker_begins_at_the_interval_of_the_lower_bounds() {
        let record = experiment();
        let figure = record.cells[0].figures.iter().find(|figure| figure.figure == "latency p99").unwrap();
        let (lower, upper) =
            (figure.lower.as_ref().unwrap().interval.as_ref().unwrap(), figure.interval.as_ref().unwrap());
        assert!(lower.low < upper.low);
        let Content::Bar { interval, .. } = bar(Some(figure), ColumnUnit::of(Unit::Microseconds, 1.0)) else {
            panic!("it was measured")
        };
        assert_eq!(interval, Some((lower.low, upper.high)));
    }

    #[test]
    fn a_row_is_marked_in_the_charts_of_the_figures_that_must_not_be_used() {
        let mut record = experiment();
        for figure in record.cells[0].figures.iter_mut().filter(|figure| figure.figure.starts_with("latency")) {
            figure.shown_only = true;
        }
        let view = View::of(&record);
        let marked = |figures: &[&str]| -> Vec<String> {
            let groups = rows(&view, figures, |_| vec![], 0);
            let names = groups.into_iter().flat_map(|group| group.rows).map(|row| row.name);
            names.filter(|name| name.ends_with(" ✗")).collect()
        };
        assert_eq!(marked(&["system memory", "latency p99"]).len(), 1);
        assert!(marked(&["delivered"]).is_empty(), "its messages were counted");
    }
}
