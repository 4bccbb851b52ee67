//! Figures of publications compared with the results of the experiment.

use pubmark_record::experiment::{CellFigure, PaperFigures};

use super::{Member, View, is_unusable};
use crate::columns::{ColumnUnit, figure};
use crate::numbers::{MISSING, short};

/// A figure of a publication and of the experiment, in the same unit.
pub struct Beside<'a> {
    /// Unit of both.
    pub unit: ColumnUnit,
    /// One row per value of the publication, for cells that were planned.
    pub rows: Vec<Row<'a>>,
    /// Systems and versions that the experiment measured, in the order of the rows; empty without any.
    pub versions_here: String,
}

/// One value.
pub struct Row<'a> {
    /// Label of the cell.
    pub label: &'a str,
    /// Value of the publication.
    pub printed: f64,
    /// Mean of the experiment; `None` if it was not measured.
    pub here: Option<f64>,
    /// Lower bound of the mean, if it has one.
    pub here_lower: Option<f64>,
    /// The verdicts of all runs exclude the mean.
    pub is_unusable: bool,
    /// Interval of the mean, lower bound included.
    pub interval: Option<(f64, f64)>,
    /// Why there is no mean.
    pub failed: Option<&'static str>,
}

impl<'a> Beside<'a> {
    /// Compares both. A name that is not a figure is shown without a unit.
    pub fn of(view: &View<'a>, paper: &'a PaperFigures) -> Beside<'a> {
        let rows: Vec<Row> = paper
            .values
            .iter()
            .filter_map(|value| {
                let member = view.members().find(|member| member.cell.id == value.cell)?;
                Some(row(member, value.value, &paper.figure))
            })
            .collect();
        let largest = rows.iter().flat_map(|row| [Some(row.printed), row.here]).flatten().fold(0.0, f64::max);
        let unit = figure(&paper.figure).map_or(pubmark_record::comparison::Unit::Count, |figure| figure.unit);
        let versions_here = versions(view, paper);
        Beside { unit: ColumnUnit::of(unit, largest), rows, versions_here }
    }
}

/// Each system of the publication's cells once, with its version if known.
fn versions(view: &View<'_>, paper: &PaperFigures) -> String {
    let mut found: Vec<String> = vec![];
    for value in &paper.values {
        let member = view.members().find(|member| member.cell.id == value.cell);
        let Some(system) = member.and_then(|member| member.cell.system.as_ref()) else { continue };
        let words = match &system.version {
            Some(version) => format!("{} {version}", system.name),
            None => system.name.clone(),
        };
        if !found.contains(&words) {
            found.push(words);
        }
    }
    found.join(", ")
}

fn row<'a>(member: &Member<'a>, printed: f64, name: &str) -> Row<'a> {
    let ours: Option<&CellFigure> = member.figure(name);
    Row {
        label: &member.cell.label,
        printed,
        here: ours.and_then(|figure| figure.mean),
        is_unusable: ours.is_some_and(is_unusable),
        here_lower: ours.and_then(|figure| figure.mean_bounds()[0]),
        interval: ours.and_then(CellFigure::whole_interval).filter(|(low, high)| low < high),
        failed: member.failed(),
    }
}

impl Row<'_> {
    /// The experiment's value as a multiple of the publication's; `—` if one of them is missing or zero.
    pub fn times(&self) -> String {
        match self.here {
            Some(here) if self.printed != 0.0 => format!("{} ×", short(here / self.printed)),
            _ => MISSING.to_string(),
        }
    }
}
