//! An experiment arranged for its reports: cells in groups that differ only in the compared axis, columns with one unit
//! each, and conclusions in sentences.
//!
//! Start with [`View::of`]. Every report of an experiment is made from a [`View`], so all reports agree.

mod conclusions;
mod custom;
mod papers;

use std::collections::BTreeMap;

use pubmark_model::experiment::axis_words;
use pubmark_record::experiment::{Axis, Cell, CellFigure, Contest, ExperimentRecord};
use pubmark_record::record::VerdictStatus;

use crate::columns::{ColumnUnit, EXPERIMENT_COLUMNS, ExperimentColumn, figure};
use crate::numbers::counted;
use crate::plot::MOST_LINES;
use crate::words::UNUSABLE;

pub use conclusions::{Conclusion, grade_of, headline, probability, ratio};
pub use custom::CustomTable;
pub use papers::Beside;

/// An experiment arranged for reports.
pub struct View<'a> {
    /// The record.
    pub record: &'a ExperimentRecord,
    /// Name of the axis whose values are compared.
    pub compared: &'a str,
    /// Groups of cells that differ only in the compared axis, in order of the other axes.
    pub groups: Vec<Group<'a>>,
    /// Figures that at least one cell has, with the unit of their column.
    pub columns: Vec<(&'static ExperimentColumn, ColumnUnit)>,
}

/// Cells that differ in the compared axis only.
pub struct Group<'a> {
    /// Settings that distinguish the group from others; empty if there is one group.
    pub label: String,
    /// The same settings by axis.
    pub among: BTreeMap<&'a str, &'a str>,
    /// The cells in order of the compared axis.
    pub members: Vec<Member<'a>>,
}

/// A cell of a group.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Value on the compared axis.
    pub name: &'a str,
    /// Number of the colour, dashes and mark of that value in all charts, 1 to [`MOST_LINES`].
    pub style: usize,
}

/// Whether a figure has a mean that the verdicts of all runs exclude.
pub fn is_unusable(figure: &CellFigure) -> bool {
    figure.shown_only && figure.mean.is_some()
}

impl Member<'_> {
    /// Finds a figure of the cell by name.
    pub fn figure(&self, name: &str) -> Option<&CellFigure> {
        self.cell.figures.iter().find(|figure| figure.figure == name)
    }

    /// Values of a figure by run, without those that the verdict of their run excludes, unless it excludes all: the values
    /// that the median and the mean are computed from.
    pub fn usable_values(&self, name: &str) -> Vec<Option<f64>> {
        let Some((found, figure)) = self.figure(name).zip(figure(name)) else { return vec![] };
        let is_left_out = |run: usize| !found.shown_only && found.is_excluded(figure, &self.cell.runs, run);
        found.values.iter().enumerate().map(|(run, value)| value.filter(|_| !is_left_out(run))).collect()
    }

    /// The mean of a figure, where it was measured.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.figure(name).and_then(|figure| figure.mean)
    }

    /// Name with the version of the system that ran.
    pub fn name_with_version(&self) -> String {
        let version = self.cell.system.as_ref().and_then(|system| system.version.as_ref());
        match version {
            Some(version) if self.cell.system.as_ref().is_some_and(|system| system.name == self.name) => {
                format!("{} {version}", self.name)
            }
            _ => self.name.to_string(),
        }
    }

    /// Why the cell has no figures, in a few words; `None` if it has some.
    pub fn failed(&self) -> Option<&'static str> {
        if !self.cell.runs.is_empty() {
            return None;
        }
        Some(self.cell.failures.first().map_or("not run", |failure| failure.kind.words()))
    }

    /// Whether it may win a contest. The built-in broker may not.
    pub fn is_ranked(&self) -> bool {
        self.cell.system.as_ref().is_none_or(|system| system.ranked)
    }

    /// Whether it has the mean of a figure, or of a user-defined metric, that the verdicts of all its runs exclude.
    pub fn has_unusable(&self) -> bool {
        let own = self.cell.custom.iter().map(|metric| &metric.figure);
        self.cell.figures.iter().chain(own).any(is_unusable)
    }

    /// Name in a chart of these figures, with a sign if the verdicts of all runs exclude the mean of one.
    pub fn name_in_chart(&self, figures: &[&str]) -> String {
        let is_marked = figures.iter().any(|name| self.figure(name).is_some_and(is_unusable));
        if is_marked { format!("{} {UNUSABLE}", self.name) } else { self.name.to_string() }
    }

    /// Number of fully usable runs.
    pub fn whole_runs(&self) -> usize {
        self.cell.runs.len() - self.runs_without_times()
    }

    /// Number of runs that are usable except for their times.
    pub fn runs_without_times(&self) -> usize {
        self.cell.runs.iter().filter(|run| run.verdict == VerdictStatus::Invalid).count()
    }

    /// Number of runs executed, whatever their outcome; 0 for a cell that was refused.
    pub fn runs_made(&self) -> usize {
        self.cell.runs.len() + self.cell.failures.iter().filter(|failure| failure.folder.is_some()).count()
    }

    /// Number of suspect runs.
    pub fn suspect_runs(&self) -> usize {
        self.cell.runs.iter().filter(|run| run.verdict == VerdictStatus::Suspect).count()
    }
}

impl<'a> View<'a> {
    /// Arranges an experiment.
    pub fn of(record: &'a ExperimentRecord) -> View<'a> {
        let compared = compared_axis(record);
        let mut groups: Vec<Group> = Vec::new();
        for cell in &record.cells {
            let among: BTreeMap<&str, &str> = varied_axes(record)
                .filter(|axis| axis.name != compared)
                .filter_map(|axis| Some((axis.name.as_str(), cell.settings.get(&axis.name)?.as_str())))
                .collect();
            let member = member(record, compared, cell);
            match groups.iter_mut().find(|group| group.among == among) {
                Some(group) => group.members.push(member),
                None => groups.push(Group { label: group_label(record, &among), among, members: vec![member] }),
            }
        }
        let mut view = View { record, compared, groups, columns: Vec::new() };
        view.columns = EXPERIMENT_COLUMNS
            .iter()
            // In an open loop, the delivered rate follows from the load.
            .filter(|column| column.figure != "delivered rate" || view.contests("delivered rate").next().is_some())
            .filter_map(|column| Some((column, view.unit(column.figure)?)))
            .collect();
        view
    }

    /// All cells.
    pub fn members(&self) -> impl Iterator<Item = &Member<'a>> {
        self.groups.iter().flat_map(|group| &group.members)
    }

    /// Unit of a figure's column; `None` if no cell measured it.
    pub fn unit(&self, name: &str) -> Option<ColumnUnit> {
        let means = || self.members().filter_map(|member| member.mean(name));
        let (smallest, largest) = (means().reduce(f64::min)?, means().reduce(f64::max)?);
        Some(ColumnUnit::between(figure(name)?.unit, smallest, largest))
    }

    /// The contests by a figure.
    pub fn contests(&self, name: &str) -> impl Iterator<Item = &'a Contest> {
        self.record.contests.iter().filter(move |contest| contest.figure == name)
    }

    /// Whether this cell is the winner of a contest by this figure, along the compared axis.
    pub fn wins(&self, cell: &Cell, name: &str) -> bool {
        let mut along = self.contests(name).filter(|contest| contest.axis == self.compared);
        along.any(|contest| contest.winner.as_deref() == Some(&cell.id))
    }

    /// Whether a mean is shown that the verdicts of all its runs exclude.
    pub fn has_unusable(&self) -> bool {
        self.members().any(Member::has_unusable)
    }

    /// Name of a cell in a sentence about one group.
    pub fn name_of(&self, id: &'a str) -> &'a str {
        self.members().find(|member| member.cell.id == id).map_or(id, |member| member.name)
    }

    /// Settings that are the same in all cells: axes with one value.
    pub fn common(&self) -> Vec<String> {
        let single = self.record.axes.iter().filter(|axis| axis.values.len() == 1);
        single.filter_map(|axis| axis.values.first().map(|value| axis_words(&axis.name, value))).collect()
    }

    /// The experiment in one line.
    pub fn what_ran(&self) -> String {
        let record = self.record;
        let runs = self.members().map(Member::whole_runs).sum::<usize>();
        // Runs that are not fully usable are repeated, so there may be more folders than usable runs.
        let made = self.members().map(Member::runs_made).sum::<usize>();
        let more = if made > runs { format!(", {made} made") } else { String::new() };
        let mut parts = vec![
            record.workload_words(),
            counted(record.cells.len() as u64, "cell", "cells"),
            format!(
                "{} of {} after {} each",
                counted(u64::from(record.repetitions), "repetition", "repetitions"),
                crate::numbers::seconds(record.duration_s),
                crate::numbers::seconds(record.warmup_s)
            ),
            format!("{runs} of {} runs count{more}", record.cells.len() * record.repetitions as usize),
        ];
        parts.extend(self.common());
        parts.join(", ")
    }
}

/// The axis of the contests; otherwise the system if several were measured, otherwise the first axis that was varied.
fn compared_axis(record: &ExperimentRecord) -> &str {
    let of_contests = record.contests.first().map(|contest| contest.axis.as_str());
    let system = || varied_axes(record).find(|axis| axis.name == "system").map(|axis| axis.name.as_str());
    let first = || varied_axes(record).next().map(|axis| axis.name.as_str());
    of_contests.or_else(system).or_else(first).unwrap_or("system")
}

fn varied_axes(record: &ExperimentRecord) -> impl Iterator<Item = &Axis> {
    record.axes.iter().filter(|axis| axis.values.len() > 1)
}

fn member<'a>(record: &'a ExperimentRecord, compared: &str, cell: &'a Cell) -> Member<'a> {
    let name = cell.settings.get(compared).unwrap_or(&cell.label);
    let values = record.axes.iter().find(|axis| axis.name == compared).map_or(&[][..], |axis| &axis.values[..]);
    let place = values.iter().position(|value| value == name).unwrap_or(0);
    Member { cell, name, style: place % MOST_LINES + 1 }
}

/// Common settings of a group's cells, in order of the axes.
fn group_label(record: &ExperimentRecord, among: &BTreeMap<&str, &str>) -> String {
    let settings = varied_axes(record).filter_map(|axis| among.get(axis.name.as_str()).map(|value| (axis, value)));
    settings.map(|(axis, value)| axis_words(&axis.name, value)).collect::<Vec<String>>().join(", ")
}
