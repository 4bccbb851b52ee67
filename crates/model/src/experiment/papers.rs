//! Figures from publications, shown beside the results of an experiment: `papers` in its file.

use std::fmt::Write as _;

use super::axis_value::quoted;
use super::cells::axes;
use super::definition::Experiment;
use super::raw::RawPaper;
use super::{Judge, Word};
use crate::load::diagnostic::{Problem, ProblemKind};
use crate::load::shape::{AnyText, Text};
use crate::load::suggest;
use crate::units;

/// One figure as a publication prints it, for some cells.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperFigures {
    /// The publication, with its table or section.
    pub source: String,
    /// Systems and versions that it measured.
    pub versions: String,
    /// The figure of the experiment that it is compared with: a name such as `latency p50`.
    pub figure: String,
    /// Why the results of the experiment differ, if known.
    pub differs: String,
    /// Axes whose values identify the cell.
    pub columns: Vec<String>,
    /// Values of the publication.
    pub rows: Vec<PaperRow>,
}

/// One value of a publication.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperRow {
    /// A value of each column.
    pub at: Vec<String>,
    /// The figure as written, with its unit: `3.94ms`, `98%`, `474`.
    pub written: String,
    /// The same figure in µs, as a share of 1, or as a plain number.
    pub value: f64,
}

/// Validates the figures against the axes of their experiment.
pub(super) fn checked(
    raw: &[RawPaper],
    experiment: &Experiment,
    judge: Judge<'_>,
) -> Result<Vec<PaperFigures>, Problem> {
    raw.iter().map(|paper| figures(paper, experiment, judge)).collect()
}

fn figures(raw: &RawPaper, experiment: &Experiment, judge: Judge<'_>) -> Result<PaperFigures, Problem> {
    judge(Word::Figure, &raw.figure.value).map_err(|objection| {
        Problem::new(ProblemKind::UnknownName, objection.message).at(raw.figure.span, "here").maybe_help(objection.hint)
    })?;
    let axes = axes(experiment);
    let mut columns = vec![];
    for column in &raw.columns {
        let Some(axis) = axes.iter().find(|axis| axis.name == column.value) else {
            let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let message = format!("`{}` is no axis of this experiment", column.value);
            return Err(Problem::new(ProblemKind::UnknownName, message)
                .at(column.span, "here")
                .help(suggest::among(&column.value, &names)));
        };
        columns.push(axis);
    }
    let row = |fields: &Vec<Text<AnyText>>| {
        let Some((last, at)) = fields.split_last().filter(|(_, at)| at.len() == columns.len()) else {
            let place = fields.first().map_or(raw.figure.span, |field| field.span);
            return Err(Problem::new(ProblemKind::WrongKind, "a row with another number of fields than columns")
                .at(place, "this row")
                .help(format!("{} fields: a value of each column, then the figure", columns.len() + 1)));
        };
        for (field, axis) in at.iter().zip(&columns) {
            if !axis.values.contains(&field.text) {
                let values: Vec<&str> = axis.values.iter().map(String::as_str).collect();
                let message = format!("`{}` is no value of the axis `{}`", field.text, axis.name);
                return Err(Problem::new(ProblemKind::UnknownName, message)
                    .at(field.span, "here")
                    .help(suggest::among(&field.text, &values)));
            }
        }
        judge(Word::FigureValue(&raw.figure.value), &last.text).map_err(|objection| {
            Problem::new(ProblemKind::WrongKind, objection.message).at(last.span, "here").maybe_help(objection.hint)
        })?;
        Ok(PaperRow {
            at: at.iter().map(|field| field.text.clone()).collect(),
            written: last.text.clone(),
            value: value(last)?,
        })
    };
    Ok(PaperFigures {
        source: raw.source.clone(),
        versions: raw.versions.clone(),
        figure: raw.figure.value.clone(),
        differs: raw.differs.clone(),
        columns: raw.columns.iter().map(|column| column.value.clone()).collect(),
        rows: raw.values.iter().map(row).collect::<Result<_, Problem>>()?,
    })
}

/// A time in µs, a share of 1, or a plain number.
fn value(text: &Text<AnyText>) -> Result<f64, Problem> {
    // A figure that a publication gives as a limit is compared with the limit.
    let written = text.text.trim_start_matches(['<', '>']);
    let read = match written.strip_suffix('%') {
        Some(share) => share.trim().parse::<f64>().ok().map(|share| share / 100.0),
        None => written
            .parse::<f64>()
            .ok()
            .or_else(|| units::duration(written).ok().map(|time| time.as_nanos() as f64 / 1e3)),
    };
    read.filter(|value| value.is_finite()).ok_or_else(|| {
        Problem::new(ProblemKind::WrongKind, format!("`{}` is no figure", text.text))
            .at(text.span, "here")
            .help("write a time such as `3.94ms`, a share such as `98%`, or a number")
    })
}

/// Writes the figures in the format of a file.
pub(super) fn write(text: &mut String, papers: &[PaperFigures]) {
    if papers.is_empty() {
        return;
    }
    text.push_str("papers:\n");
    for paper in papers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - source: {}", quoted(&paper.source));
        for (key, value) in [("versions", &paper.versions), ("figure", &paper.figure), ("differs", &paper.differs)] {
            if !value.is_empty() {
                let _ = writeln!(text, "    {key}: {}", quoted(value));
            }
        }
        let columns: Vec<String> = paper.columns.iter().map(|column| quoted(column)).collect();
        let _ = writeln!(text, "    columns: [{}]\n    values:", columns.join(", "));
        for row in &paper.rows {
            let fields: Vec<String> = row.at.iter().chain([&row.written]).map(|field| quoted(field)).collect();
            let _ = writeln!(text, "      - [{}]", fields.join(", "));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::experiment::{Objection, Word, parse};

    const HEAD: &str = "name: t\nworkload: hello\naxes: {system: [a, b], payload: [1KB, 1MB]}\npapers:\n";

    fn read(lines: &str) -> Result<super::PaperFigures, String> {
        let objection = |message: &str| Err(Objection { message: message.to_owned(), hint: None });
        let judge = |word: Word<'_>, text: &str| match (word, text) {
            (Word::Figure, "latency p5") => objection("no figure `latency p5`"),
            (Word::FigureValue("latency p50"), "13") => objection("a time has a unit"),
            _ => Ok(()),
        };
        match parse("t.yaml", &format!("{HEAD}{lines}"), &judge) {
            Ok(mut experiment) => Ok(experiment.papers.remove(0)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn figures_of_publications_are_read_with_their_units_and_written_again() {
        let text = "  - source: Table III\n    figure: latency p50\n    columns: [system, payload]\n    values: [[a, 1KB, 3.94ms], [b, 1MB, 7%], [b, 1KB, 12]]\n";
        let paper = read(text).unwrap();
        assert_eq!(paper.rows.iter().map(|row| row.value).collect::<Vec<_>>(), [3_940.0, 0.07, 12.0]);
        assert_eq!(paper.rows[1].at, ["b", "1MB"]);
        let experiment = parse("t.yaml", &format!("{HEAD}{text}"), &|_, _| Ok(())).unwrap();
        assert_eq!(parse("t.yaml", &experiment.to_yaml(), &|_, _| Ok(())).unwrap(), experiment);
    }

    #[test]
    fn a_value_that_fits_no_cell_is_refused() {
        let with = |figure: &str, columns: &str, row: &str| {
            read(&format!("  - {{source: s, figure: {figure}, columns: [{columns}], values: [[{row}]]}}\n"))
                .unwrap_err()
        };
        assert!(with("latency p5", "system", "a, 1ms").contains("no figure"));
        assert!(with("latency p50", "sistem", "a, 1ms").contains("no axis"));
        assert!(with("latency p50", "system", "c, 1ms").contains("no value of the axis `system`"));
        assert!(with("latency p50", "system", "a").contains("number of fields"));
        assert!(with("latency p50", "system", "a, fast").contains("is no figure"));
        assert!(with("latency p50", "system", "a, 13").contains("a time has a unit"));
    }
}
