//! The publications that come with pubmark: the files in `papers/`, embedded.

use std::collections::BTreeMap;

use serde::Deserialize;

/// File name (without `.yaml`) and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// A publication: the experiments that repeat it, and the layout of its tables.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name on the command line.
    pub name: String,
    /// Title of the page, one line.
    pub title: String,
    /// Authors, title, venue and year.
    pub citation: String,
    /// Its tables and figures, in its order. Their experiments are run in this order, too.
    pub tables: Vec<Table>,
    /// Figures over time.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Its conclusions, as comparisons of figures.
    #[serde(default)]
    pub statements: Vec<Statement>,
    /// The tables that help to choose a system.
    #[serde(default)]
    pub guidelines: Vec<Guideline>,
    /// Parts of the publication that are not repeated.
    #[serde(default)]
    pub not_repeated: Vec<NotRepeated>,
}

/// A table or a figure: one measured figure of an experiment's record, by some of its axes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Number and caption, as in the publication.
    pub title: String,
    /// A built-in experiment.
    pub experiment: String,
    /// Name in [`pubmark_record::comparison::FIGURES`].
    pub figure: String,
    /// Axes whose values form the rows.
    pub rows: Vec<String>,
    /// Axes whose values form the columns.
    pub columns: Vec<String>,
    /// Whether the publication prints the figure in the unit of our measurement.
    #[serde(default = "yes")]
    pub comparable: bool,
}

fn yes() -> bool {
    true
}

/// A figure over time: messages in flight at some seconds of a run, or the latency of the messages due between them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Number and caption, as in the publication.
    pub title: String,
    /// A built-in experiment.
    pub experiment: String,
    /// Values of the axes that form neither rows nor columns.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
    /// What is shown.
    #[serde(default)]
    pub figure: SeriesFigure,
    /// Axis whose values form the columns.
    pub columns: String,
    /// Seconds since the start of the measured window, ascending. A latency is that of the messages due from one of them to the
    /// next.
    pub seconds: Vec<f64>,
    /// The publication's values, one for each of [`Series::spans`], by column: messages, or µs.
    #[serde(default)]
    pub printed: BTreeMap<String, Vec<f64>>,
    /// Whether measured values may be divided by printed ones.
    #[serde(default = "yes")]
    pub comparable: bool,
    /// Why our results differ, if the reason is known.
    #[serde(default)]
    pub differs: String,
}

/// What a figure over time shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum SeriesFigure {
    /// Messages that were sent and had not arrived.
    #[default]
    #[serde(rename = "messages under way")]
    UnderWay,
    /// Median of the latency.
    #[serde(rename = "latency p50")]
    Median,
    /// Longest latency.
    #[serde(rename = "latency max")]
    Longest,
}

impl SeriesFigure {
    /// Name of the figure, for a latency in [`pubmark_record::comparison::FIGURES`].
    pub fn name(self) -> &'static str {
        match self {
            SeriesFigure::UnderWay => "messages under way",
            SeriesFigure::Median => "latency p50",
            SeriesFigure::Longest => "latency max",
        }
    }
}

impl Series {
    /// Start and end of the time to which each row of the table refers, seconds since the start of the measured window.
    pub fn spans(&self) -> Vec<(f64, f64)> {
        match self.figure {
            SeriesFigure::UnderWay => self.seconds.iter().map(|second| (0.0, *second)).collect(),
            SeriesFigure::Median | SeriesFigure::Longest => {
                self.seconds.iter().zip(self.seconds.iter().skip(1)).map(|(from, to)| (*from, *to)).collect()
            }
        }
    }
}

/// A conclusion: a figure is larger in some cells than in others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The publication's conclusion, in one sentence.
    pub conclusion: String,
    /// Where in the publication.
    pub source: String,
    /// Name in [`pubmark_record::comparison::FIGURES`].
    pub figure: String,
    /// Axes whose values are judged separately, one case for each.
    #[serde(default)]
    pub each: Vec<String>,
    /// Cells where the figure should be larger.
    pub larger: Side,
    /// Cells where the figure should be smaller.
    pub smaller: Side,
}

/// Selects cells of an experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// A built-in experiment.
    pub experiment: String,
    /// Values of axes.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
}

/// A comparison of systems that helps to choose one for a requirement.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guideline {
    /// The requirement.
    pub need: Need,
    /// Title of one of the publication's tables.
    pub table: String,
    /// The axis whose values are compared.
    #[serde(default = "system")]
    pub compare: String,
    /// Values that select cells by the table's other axes.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
    /// Which values are better.
    pub better: Better,
    /// Title of the table of shares delivered, with the same axes: low latency or cost does not count if a system loses
    /// messages.
    #[serde(default)]
    pub delivered: Option<String>,
}

fn system() -> String {
    "system".to_owned()
}

/// A requirement by which a system is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Low latency.
    LatencyBound,
    /// Many messages a second.
    ThroughputBound,
    /// Many clients.
    ManyConnections,
    /// Low memory use.
    MemoryBound,
    /// A link with packet loss, or one that is slow at times.
    LossyLink,
    /// Recovery after connections break.
    AfterACrash,
}

impl Need {
    /// All requirements, in the order of the guidelines.
    pub const ALL: [Need; 6] = [
        Need::LatencyBound,
        Need::ThroughputBound,
        Need::ManyConnections,
        Need::MemoryBound,
        Need::LossyLink,
        Need::AfterACrash,
    ];

    /// The requirement as a heading.
    pub fn title(self) -> &'static str {
        match self {
            Need::LatencyBound => "Latency-bound",
            Need::ThroughputBound => "Throughput-bound",
            Need::ManyConnections => "Many connections",
            Need::MemoryBound => "Memory-bound",
            Need::LossyLink => "Lossy link",
            Need::AfterACrash => "After a crash",
        }
    }
}

/// Which of two values is better.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// The smaller one.
    Smaller,
    /// The larger one.
    Larger,
    /// For shares delivered along this numeric axis: complete delivery up to a larger number is better.
    Further(String),
}

/// A part of the publication that cannot be repeated here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotRepeated {
    /// The part.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl Paper {
    /// Titles of the tables, in their order.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        let over_time = self.series.iter().map(|series| series.title.as_str());
        self.tables.iter().map(|table| table.title.as_str()).chain(over_time)
    }

    /// The experiments, each once: first those of the tables, in their order, then those of the statements.
    pub fn experiments(&self) -> Vec<&str> {
        let of_tables = self.tables.iter().map(|table| table.experiment.as_str());
        let of_series = self.series.iter().map(|series| series.experiment.as_str());
        let sides = self.statements.iter().flat_map(|statement| [&statement.larger, &statement.smaller]);
        let mut found: Vec<&str> = vec![];
        for name in of_tables.chain(of_series).chain(sides.map(|side| side.experiment.as_str())) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
        found
    }
}

/// Names of all publications.
pub fn names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).collect()
}

/// The publication with this name; `None` if there is none.
pub fn find(name: &str) -> Option<Paper> {
    let (_, text) = EMBEDDED.iter().find(|(known, _)| *known == name)?;
    Some(serde_saphyr::from_str(text).expect("a test reads every embedded file"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::experiment::{Experiment, axes, cells, load};
    use pubmark_report::columns::figure;

    use super::*;

    fn experiment(name: &str) -> Experiment {
        load(name, |_, _, _| Ok(())).unwrap().experiment
    }

    #[test]
    fn every_publication_names_experiments_axes_and_figures_that_there_are() {
        for (name, text) in EMBEDDED {
            let paper: Paper = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(*name, paper.name);
            for table in &paper.tables {
                assert!(figure(&table.figure).is_some(), "{name}: {}", table.figure);
                let experiment = experiment(&table.experiment);
                let known: Vec<String> = axes(&experiment).into_iter().map(|axis| axis.name).collect();
                let laid_out: Vec<&String> = table.rows.iter().chain(&table.columns).collect();
                assert!(laid_out.iter().all(|axis| known.contains(axis)), "{name}: {}: {known:?}", table.title);
                // Every varied axis must form rows or columns, or two cells would have the same position.
                let varied = axes(&experiment).into_iter().filter(|axis| axis.values.len() > 1);
                for axis in varied {
                    assert!(laid_out.contains(&&axis.name), "{name}: {}: {}", table.title, axis.name);
                }
            }
        }
    }

    #[test]
    fn every_printed_value_of_an_experiment_is_in_a_table() {
        let papers: Vec<Paper> = names().into_iter().map(|name| find(name).unwrap()).collect();
        let mut values = 0;
        for name in pubmark_model::experiment::names() {
            let planned = cells(&experiment(name));
            for printed in &experiment(name).papers {
                let source = &printed.source;
                let mut tables = papers.iter().flat_map(|paper| &paper.tables);
                let is_there = tables.any(|table| table.experiment == name && table.figure == printed.figure);
                assert!(is_there, "no publication has a table of `{}` of {name}: {source}", printed.figure);
                for row in &printed.rows {
                    let here = planned.iter().filter(|cell| {
                        let mut at = printed.columns.iter().zip(&row.at);
                        at.all(|(axis, value)| cell.values.get(axis) == Some(value))
                    });
                    assert!(here.count() > 0, "{name}: {source}: no cell at {:?}", row.at);
                    values += 1;
                }
            }
        }
        assert!(values > 500, "{values} are all of them");
    }

    #[test]
    fn rates_of_psmark_are_those_of_one_node() {
        let rates = find("psmark").unwrap().tables.into_iter().filter(|table| table.figure == "delivered rate");
        for table in rates {
            let nodes = cells(&experiment(&table.experiment))[0].values["nodes"].clone();
            assert_eq!(nodes, "1", "{}: `received per node` is what it counts", table.title);
        }
    }

    #[test]
    fn a_figure_over_time_has_one_cell_a_column_and_a_value_a_second() {
        for name in names() {
            for series in find(name).unwrap().series {
                let mut columns: Vec<String> = vec![];
                for cell in cells(&experiment(&series.experiment)) {
                    if series.at.iter().all(|(axis, value)| cell.values.get(axis) == Some(value)) {
                        columns.push(cell.values[&series.columns].clone());
                    }
                }
                let mut once = columns.clone();
                once.dedup();
                assert!(!columns.is_empty() && once == columns, "{name}: {}: {columns:?}", series.title);
                assert!(series.seconds.is_sorted(), "{name}: {}", series.title);
                // Counts under way are near 0, and links drop other messages here than there.
                assert!(!series.comparable, "{name}: {}: ratios mean nothing", series.title);
                let is_latency = series.figure != SeriesFigure::UnderWay;
                assert_eq!(is_latency, figure(series.figure.name()).is_some(), "{name}: {}", series.title);
                for (column, values) in &series.printed {
                    assert!(columns.contains(column), "{name}: {}: {column}", series.title);
                    assert_eq!(values.len(), series.spans().len(), "{name}: {}: {column}", series.title);
                }
            }
        }
    }

    #[test]
    fn a_latency_over_time_is_that_of_the_time_between_two_seconds() {
        let text = "{title: t, experiment: e, figure: latency max, columns: system, seconds: [0, 20, 50]}";
        let series: Series = serde_saphyr::from_str(text).unwrap();
        assert_eq!((series.figure, series.spans()), (SeriesFigure::Longest, vec![(0.0, 20.0), (20.0, 50.0)]));
        let under_way = Series { figure: SeriesFigure::default(), ..series };
        assert_eq!(under_way.spans(), [(0.0, 0.0), (0.0, 20.0), (0.0, 50.0)]);
    }

    #[test]
    fn a_guideline_compares_one_cell_a_system_of_a_table_that_there_is() {
        for name in names() {
            let paper = find(name).unwrap();
            for guideline in &paper.guidelines {
                let of_title = |title: &str| paper.tables.iter().find(|table| table.title == title);
                let table = of_title(&guideline.table).unwrap_or_else(|| panic!("{name}: {}", guideline.table));
                let mut axes: Vec<&String> = table.rows.iter().chain(&table.columns).collect();
                axes.retain(|axis| **axis != guideline.compare && !guideline.at.contains_key(*axis));
                if let Better::Further(along) = &guideline.better {
                    assert_eq!(table.figure, "delivered", "{name}: {}", guideline.table);
                    axes.retain(|axis| *axis != along);
                }
                assert!(axes.is_empty(), "{name}: {}: no value of {axes:?}", guideline.table);
                let planned = cells(&experiment(&table.experiment));
                for (axis, value) in &guideline.at {
                    let is_there = planned.iter().any(|cell| cell.values.get(axis) == Some(value));
                    assert!(is_there, "{name}: {}: {axis}={value}", guideline.table);
                }
                // Low latency or cost of a system that loses messages is no reason to choose it.
                let is_of_deliveries = ["delivered", "lost"].contains(&table.figure.as_str());
                assert!(is_of_deliveries || guideline.delivered.is_some(), "{name}: {}: no shares", guideline.table);
                if let Some(title) = &guideline.delivered {
                    let delivered = of_title(title).unwrap_or_else(|| panic!("{name}: {title}"));
                    assert_eq!(delivered.figure, "delivered", "{name}: {title}");
                    assert_eq!((&delivered.rows, &delivered.columns), (&table.rows, &table.columns), "{name}: {title}");
                }
            }
        }
    }

    #[test]
    fn each_case_of_a_statement_is_one_cell_on_either_side() {
        for name in names() {
            for statement in find(name).unwrap().statements {
                assert!(figure(&statement.figure).is_some(), "{name}: {}", statement.figure);
                for side in [&statement.larger, &statement.smaller] {
                    let mut seen: Vec<Vec<Option<String>>> = vec![];
                    for cell in cells(&experiment(&side.experiment)) {
                        if side.at.iter().all(|(axis, value)| cell.values.get(axis) == Some(value)) {
                            let case: Vec<Option<String>> =
                                statement.each.iter().map(|axis| cell.values.get(axis).cloned()).collect();
                            assert!(!seen.contains(&case), "{name}: {}: {case:?} twice", statement.conclusion);
                            assert!(case.iter().all(Option::is_some), "{name}: {}: {case:?}", statement.conclusion);
                            seen.push(case);
                        }
                    }
                    assert!(!seen.is_empty(), "{name}: {}: no cell at {:?}", statement.conclusion, side.at);
                }
            }
        }
    }
}
