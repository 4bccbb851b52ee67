//! Judges changes from a baseline: a regression has to exceed the noise and what the measurement alone could have caused.
//!
//! A latency is known as two bounds ([`crate::evaluation::pair`]), so a change is a regression only where the bounds of
//! both sides are nearest to each other. If it is one by the upper bounds alone or by the lower bounds alone, it is undecided: wide
//! bounds of the baseline, or a baseline that was held up, hide a regression from the upper ones. So is an outcome that favours the
//! side on which fewer messages arrived ([`Survivors`]), or the other side of a flood whose best runs may have been left out. What is
//! printed are the measured values, which are the lower bounds of a share delivered and the upper bounds of a latency
//! ([`Better::measured`]).

#[cfg(test)]
mod tests;

use crate::comparison::{NO_HASH, SAME_PAYLOAD_AS_BASELINE};
use crate::evaluation::contests::Pair;
use crate::evaluation::pair::Sample;
use crate::experiment::CellFailure;
use crate::figures::{Better, Unit};
use crate::statistics::description::mean_on;
use crate::statistics::{FEWEST_REPETITIONS, Scale, holm};
use crate::threshold::{Clause, GIVE_CPU_TIME, Limited, MeasuredFigure, change};

use super::judging::NotComparable;
use super::subject::{CellFacts, Subject};
use super::survivors::Survivors;
use super::{Kind, Outcome, Row};

/// Judges all changes from a baseline, corrected for their number.
pub(super) fn changes(subject: &Subject, baseline: &Subject, clauses: &[&Clause]) -> Result<Vec<Row>, NotComparable> {
    let mut found = Vec::new();
    for clause in clauses {
        for cell in &subject.cells {
            found.push(Change::new(cell, counterpart(cell, subject, baseline)?, clause)?);
        }
    }
    let bounded = adjusted(&found, |pairs| pairs.bounded);
    let measured = adjusted(&found, |pairs| pairs.measured);
    let other = adjusted(&found, |pairs| pairs.other);
    let rows = found.iter().zip(bounded).zip(measured.into_iter().zip(other));
    Ok(rows.map(|((one, bounded), (measured, other))| one.row(Adjusted { bounded, measured, other })).collect())
}

/// The settings in which runs or cells differ from their counterparts, besides the system, in one sentence. An id of a cell
/// does not name axes of one value.
pub(super) fn other_settings(subject: &Subject, baseline: &Subject) -> Option<String> {
    let mut found: Vec<String> = vec![];
    for cell in &subject.cells {
        let Ok(Some(other)) = counterpart(cell, subject, baseline) else { continue };
        // A run and an experiment name their settings differently.
        if cell.id.is_empty() != other.id.is_empty() {
            continue;
        }
        for difference in differing(cell, other) {
            if !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
    (!found.is_empty())
        .then(|| format!("the baseline had other settings, which may have made a change: {}", found.join("; ")))
}

/// Settings with other values. Those that one side lacks are included for cells: an axis that it does not have is as the
/// workload says. The record of a run that lacks one is of an older version.
fn differing(cell: &CellFacts, other: &CellFacts) -> Vec<String> {
    let (here, before) = (cell.settings.as_slice(), other.settings.as_slice());
    let is_of_runs = cell.id.is_empty();
    let has = |of: &[(String, String)], name: &str| of.iter().any(|(known, _)| known == name);
    let value = |of: &[(String, String)], name: &str| -> String {
        let found = of.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "not set".to_owned(), |(_, value)| value.clone())
    };
    let only_before = before.iter().filter(|(name, _)| here.iter().all(|(known, _)| known != name));
    let names = here.iter().chain(only_before).map(|(name, _)| name);
    let names = names.filter(|name| !is_of_runs || (has(here, name) && has(before, name)));
    let pairs = names.map(|name| (name, value(before, name), value(here, name)));
    let differ = pairs.filter(|(_, before, here)| before != here);
    differ.map(|(name, before, here)| format!("{name}: {before}, here {here}")).collect()
}

/// The cell of the baseline with the same settings; if both sides have one cell, these correspond.
fn counterpart<'a>(
    cell: &CellFacts,
    subject: &Subject,
    baseline: &'a Subject,
) -> Result<Option<&'a CellFacts>, NotComparable> {
    if let ([_], [other]) = (&subject.cells[..], &baseline.cells[..]) {
        return Ok(Some(other));
    }
    if subject.cells.iter().chain(&baseline.cells).any(|cell| cell.id.is_empty()) {
        let (subject, baseline) = (subject.name.clone(), baseline.name.clone());
        return Err(NotComparable::Kinds { subject, baseline });
    }
    // Ids may be equal although the axes are not: `1` is a QoS level and a factor.
    Ok(baseline.cells.iter().find(|other| other.axes == cell.axes))
}

/// Refuses cells with other loads.
fn same_load(cell: &CellFacts, before: &CellFacts) -> Result<(), NotComparable> {
    let (Some(hash), Some(hash_before)) = (&cell.schedule_hash, &before.schedule_hash) else { return Ok(()) };
    if hash != hash_before {
        return Err(NotComparable::Schedules { baseline: hash_before.clone(), subject: hash.clone() });
    }
    let differences = before.load.differences(&cell.load, SAME_PAYLOAD_AS_BASELINE);
    if hash != NO_HASH || differences.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = differences
        .iter()
        .map(|found| format!("{} {}, here {}", found.name, found.values[0], found.values[1]))
        .collect();
    Err(NotComparable::Loads { differences: words.join("; ") })
}

/// The p value of each change's pair after correction over all of them; `None` where repetitions allow no test.
fn adjusted(found: &[Change], of: fn(&Pairs) -> Pair) -> Vec<Option<f64>> {
    let p_of = |one: &Change| Some(of(one.pairs.as_ref()?).tested?.p);
    let p_values: Vec<Option<f64>> = found.iter().map(p_of).collect();
    let tested: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut corrected = holm::adjust(&tested).into_iter();
    p_values.into_iter().map(|p| p.and_then(|_| corrected.next())).collect()
}

/// Why the rate of a flood that was held up is left out, and why a change is open if runs of a flood were left out.
const LIMITED: &str = "pubmark or the machine may have limited the rate";

/// Both bounds of a figure in the runs of one side.
#[derive(Default)]
struct Bounds {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// What would bring the bounds nearer; `None` without runs.
    remedy: Option<&'static str>,
    /// Runs whose verdict excludes the figure.
    excluded: usize,
    /// Other runs of a flood, whose rate pubmark or the machine may have limited: it could have been any higher one.
    limited: usize,
    /// Runs of a flood were left out because pubmark or the machine was the limit: the rate, or what was delivered, may be any better.
    may_be_better: bool,
    /// Of how many other runs the figure is not known, and the number of these runs.
    missing: (usize, usize),
    /// Mean share of the messages, or of the requests, whose times these are; `None` for other figures, and if a run lacks it.
    arrived: Option<f64>,
}

impl Bounds {
    /// Bounds of these values of a metric, measured in the runs of a cell.
    fn of(cell: &CellFacts, metric: &Limited, measured: Vec<Option<MeasuredFigure>>) -> Bounds {
        let figure = metric.figure();
        let arrived = metric.of_arrived().map(|share| cell.measured(&share));
        let arrived_in = |run: usize| Some(arrived.as_ref()?.get(run).copied().flatten()?.interval[0]);
        // A percentile of too few samples and a metric of a part of the messages cannot be compared between runs.
        // Nor can what the verdict of its run excludes, or the rate of a flood that was held up.
        let runs = measured.into_iter().enumerate().filter_map(|(run, measured)| Some((measured?, arrived_in(run))));
        let (excluded, runs): (Vec<_>, Vec<_>) = runs.partition(|(run, _)| run.excluded);
        let is_rate = metric.unit() == Unit::PerSecond;
        let (limited, runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(run, _)| is_rate && run.held_up);
        let of_usable = cell.verdicts.len().saturating_sub(excluded.len() + limited.len());
        let (runs, shares): (Vec<MeasuredFigure>, Vec<Option<f64>>) =
            runs.into_iter().filter(|(run, _)| !run.few_samples && !run.partial).unzip();
        let shares: Option<Vec<f64>> = shares.into_iter().collect();
        // A system that was held up could have been faster by any time.
        let (lower, upper) = runs.iter().map(|run| run.reach(&figure)).map(|[lower, upper]| (lower, upper)).unzip();
        let held_up = limited.first().map(|(run, _)| run).or_else(|| runs.iter().find(|run| run.held_up));
        Bounds {
            lower,
            upper,
            remedy: held_up.or(runs.first()).map(MeasuredFigure::remedy),
            excluded: excluded.len(),
            limited: limited.len(),
            may_be_better: metric.is_worse_in_a_limited_flood()
                && cell.schedule_hash.as_deref() == Some(NO_HASH)
                && cell.failures.iter().any(CellFailure::is_limited_run),
            missing: (of_usable.saturating_sub(runs.len()), of_usable),
            arrived: shares.and_then(|shares| mean_on(Scale::Plain, &shares)),
        }
    }

    fn sample(&self) -> Sample<'_> {
        Sample { lower: &self.lower, upper: &self.upper }
    }

    /// The values that were measured, of a figure whose `better` values are better.
    fn measured(&self, better: Better) -> &[f64] {
        better.measured([self.lower.as_slice(), self.upper.as_slice()])
    }

    /// The bounds that are not the measured values.
    fn other(&self, better: Better) -> &[f64] {
        better.measured([self.upper.as_slice(), self.lower.as_slice()])
    }

    fn is_exact(&self) -> bool {
        self.lower == self.upper
    }

    /// What would bring the bounds nearer, or leave more runs.
    fn to_decide(&self) -> &'static str {
        self.remedy.unwrap_or("repeat both more often")
    }
}

/// Both sides of a change, compared.
struct Pairs {
    /// Where the difference is smallest.
    bounded: Pair,
    /// By what was measured.
    measured: Pair,
    /// As if the other bounds were the values.
    other: Pair,
}

/// The p value of each pair of a change after correction; `None` where repetitions allow no test. Each kind of pair is corrected over
/// all changes and not together with the other kinds: a regression must be proven for the bounded pairs alone, and what chance makes of
/// the others is undecided at most. Corrected together, more tests would let more regressions pass.
#[derive(Clone, Copy)]
struct Adjusted {
    bounded: Option<f64>,
    measured: Option<f64>,
    other: Option<f64>,
}

/// A change in one cell, before it is judged together with the others.
struct Change<'a> {
    cell: &'a CellFacts,
    clause: &'a Clause,
    before: Bounds,
    after: Bounds,
    /// `None` where a side was not measured.
    pairs: Option<Pairs>,
    /// `None` unless a larger share of the messages arrived on one side.
    survivors: Option<Survivors>,
}

impl<'a> Change<'a> {
    fn new(cell: &'a CellFacts, before: Option<&CellFacts>, clause: &'a Clause) -> Result<Change<'a>, NotComparable> {
        if let Some(before) = before {
            same_load(cell, before)?;
        }
        let metric = &clause.metric;
        let figure = metric.figure();
        let of = |cell: &CellFacts, measured| Bounds::of(cell, metric, measured);
        let before = before.map(|before| of(before, before.measured_as_in(cell, metric))).unwrap_or_default();
        let after = of(cell, cell.measured(metric));
        let is_measured = !before.upper.is_empty() && !after.upper.is_empty();
        let pairs = is_measured.then(|| Pairs {
            bounded: Pair::between(&figure, before.sample(), after.sample()),
            measured: Pair::of(&figure, before.measured(figure.better), after.measured(figure.better)),
            other: Pair::of(&figure, before.other(figure.better), after.other(figure.better)),
        });
        let survivors = Survivors::between(metric.of_arrived(), [before.arrived, after.arrived]);
        Ok(Change { cell, clause, before, after, pairs, survivors })
    }

    /// One scale for all means: those of lower and upper bounds on different scales could be in reverse order.
    fn scale(&self) -> Scale {
        let all = [&self.before.lower, &self.before.upper, &self.after.lower, &self.after.upper];
        self.clause.metric.figure().scale.for_values(all.into_iter().flatten())
    }

    /// Means of two samples; `None` if one is empty.
    fn means(&self, before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
        let scale = self.scale();
        mean_on(scale, before).zip(mean_on(scale, after))
    }

    /// Means of both sides where the bounds permit the smallest change to larger values, and the largest.
    fn ends(&self) -> Option<[(f64, f64); 2]> {
        let least = self.means(&self.before.upper, &self.after.lower)?;
        Some([least, self.means(&self.before.lower, &self.after.upper)?])
    }

    fn better(&self) -> Better {
        self.clause.metric.figure().better
    }

    fn is_exact(&self) -> bool {
        self.before.is_exact() && self.after.is_exact()
    }

    /// Judges the change, given the p values of its pairs after correction.
    fn row(&self, p: Adjusted) -> Row {
        let row = self.row_of_arrived(p);
        if !matches!(row.outcome, Outcome::Passed | Outcome::Failed) {
            return row;
        }
        if let Some(why) = self.by_left_out_runs(&row) {
            let detail = format!("{}, {why}", row.detail);
            return Row { outcome: Outcome::Undecided, detail, ..row };
        }
        let Some(survivors) = &self.survivors else { return row };
        let (from, to) = survivors.extreme();
        if self.clause.is_change(from, to) == (row.outcome == Outcome::Failed) {
            return row;
        }
        let detail = format!("{}, {}", row.detail, survivors.text());
        Row { outcome: Outcome::Undecided, survivors: Some(survivors.shares), detail, ..row }
    }

    /// The same as if each message that is missing were as late as those that arrived.
    fn row_of_arrived(&self, p: Adjusted) -> Row {
        let better = self.better();
        let seen = self.means(self.before.measured(better), self.after.measured(better));
        let (Some(pairs), Some((before, after)), Some(ends)) = (&self.pairs, seen, self.ends()) else {
            return self.unknown();
        };
        // A figure that only some runs have, such as a percentile of few messages, is that of the runs that had most. And few
        // that verdicts leave of many cannot tell a change from noise.
        if let Some(detail) = lacks(&self.before, " of the baseline").or_else(|| lacks(&self.after, "")) {
            return Row { value: Some(after), baseline: Some(before), ..self.plain(Outcome::Undecided, detail) };
        }
        let row = |outcome, p, detail| Row {
            value: Some(after),
            baseline: Some(before),
            change: Some(change(before, after)),
            p,
            ..self.plain(outcome, detail)
        };
        let shown = self.change_text(before, after);
        // The pairs of a figure without bounds are equal, and were corrected together with different ones.
        let [p_measured, p_other] = if self.is_exact() { [p.bounded; 2] } else { [p.measured, p.other] };
        let passed = |p_shown, detail: &str| match self.by_other_bounds(pairs, p_other) {
            Some(why) => row(Outcome::Undecided, p.bounded, format!("{shown}, {why}")),
            None => row(Outcome::Passed, p_shown, format!("{shown}{detail}")),
        };
        if !self.clause.is_change(before, after) {
            return passed(p.bounded, "");
        }
        if is_proven(&pairs.bounded, p.bounded) && ends.iter().all(|(from, to)| self.clause.is_change(*from, *to)) {
            return row(Outcome::Failed, p.bounded, format!("{shown}{}", p_text(p.bounded)));
        }
        match pairs.measured.doubt(p_measured) {
            Some(doubt) => passed(p_measured, &format!(", not shown: {doubt}")),
            None => row(Outcome::Undecided, p.bounded, format!("{shown}, {}", self.undecided(ends, p.bounded))),
        }
    }

    /// A row without figures.
    fn plain(&self, outcome: Outcome, detail: String) -> Row {
        Row::plain(&self.cell.label, &self.clause.text, Kind::Regression, outcome, detail)
    }

    /// The row of a change of which nothing is known, because a side was not measured. A run here whose verdict excludes the figure
    /// fails by its verdict.
    fn unknown(&self) -> Row {
        let (side, place) = match self.before.upper.is_empty() {
            true => (&self.before, " of the baseline"),
            false => (&self.after, ""),
        };
        let plain = match (side.excluded, side.limited) {
            (0, 0) => self.plain(Outcome::NotMeasured, format!("not measured{}", place.replace(" of", " in"))),
            (_, 0) => self.plain(Outcome::Undecided, format!("undecided: the verdict{place} excludes it")),
            _ => {
                let detail = format!("undecided: {LIMITED}{place}; to decide it, {}", side.to_decide());
                self.plain(Outcome::Undecided, detail)
            }
        };
        Row { value: self.mean(&self.after), baseline: self.mean(&self.before), ..plain }
    }

    /// Why it is undecided that there is no change, although what was measured shows none: the other bounds show one, and the system's
    /// own values are between both. `None` if they show none either.
    fn by_other_bounds(&self, pairs: &Pairs, p: Option<f64>) -> Option<String> {
        let better = self.better();
        let (from, to) = self.means(self.before.other(better), self.after.other(better))?;
        let is_shown = self.clause.is_change(from, to) && is_proven(&pairs.other, p);
        // The bounds are further apart on the side whose lower ones are smaller, or whose upper ones are larger.
        let (name, is_of_baseline) = better.measured([("upper", to < from), ("lower", from < to)]);
        let sides = if is_of_baseline { [&self.before, &self.after] } else { [&self.after, &self.before] };
        is_shown.then(|| {
            let text = self.change_text(from, to);
            format!("undecided: by the {name} bounds {text}; to decide it, {}", remedy(sides))
        })
    }

    /// Why the outcome may be another one with the runs of a flood that were left out; `None` if they cannot change it.
    fn by_left_out_runs(&self, row: &Row) -> Option<String> {
        let (before, after) = row.baseline.zip(row.value)?;
        let best = match (self.clause.metric.unit(), self.better()) {
            // A rate has no end. A change from infinity could not be computed.
            (Unit::PerSecond, _) => f64::MAX,
            (_, Better::Higher) => 1.0,
            (_, Better::Lower | Better::Neither) => 0.0,
        };
        let is_other = |from, to| self.clause.is_change(from, to) != (row.outcome == Outcome::Failed);
        let place = if self.before.may_be_better && is_other(best, after) {
            " of the baseline"
        } else if self.after.may_be_better && is_other(before, best) {
            ""
        } else {
            return None;
        };
        Some(format!("undecided: {LIMITED} in runs{place} that were left out; to decide it, {GIVE_CPU_TIME}"))
    }

    /// What the nearest bounds show, and what would decide.
    fn undecided(&self, ends: [(f64, f64); 2], p: Option<f64>) -> String {
        let is_none = |(from, to): &&(f64, f64)| !self.clause.is_change(*from, *to);
        let nearest = match ends.iter().find(is_none) {
            Some((from, to)) => change_text(change(*from, *to)),
            None => {
                let doubt = self.pairs.as_ref().and_then(|pairs| pairs.bounded.doubt(p));
                format!("it is not shown ({})", doubt.unwrap_or_else(|| "it cannot be tested".to_owned()))
            }
        };
        let remedy = remedy([&self.after, &self.before]);
        format!("undecided: by the nearest bounds {nearest}; to decide it, {remedy}")
    }

    /// A change and its means: `+12.3 % (1 ms → 1.12 ms)`.
    fn change_text(&self, before: f64, after: f64) -> String {
        let metric = &self.clause.metric;
        format!("{} ({} → {})", change_text(change(before, after)), metric.text(before), metric.text(after))
    }

    fn mean(&self, side: &Bounds) -> Option<f64> {
        mean_on(self.scale(), side.measured(self.better()))
    }
}

/// Why the runs of a side are too few to show a change; `None` if they are not.
fn lacks(side: &Bounds, place: &str) -> Option<String> {
    let (missing, usable) = side.missing;
    if missing > 0 {
        return Some(format!("undecided: not measured in {missing} of {usable} runs{place}"));
    }
    let (excluded, limited, rest) = (side.excluded, side.limited, side.upper.len());
    if excluded + limited == 0 || rest >= FEWEST_REPETITIONS {
        return None;
    }
    let all = excluded + limited + rest;
    let left_out = [("verdicts exclude it", excluded), (LIMITED, limited)];
    let left_out = left_out.into_iter().filter(|(_, runs)| *runs > 0);
    let why: Vec<String> = left_out.map(|(why, runs)| format!("{why} in {runs} of {all} runs")).collect();
    let remedy = if limited > 0 { format!("; to decide it, {}", side.to_decide()) } else { String::new() };
    Some(format!("undecided: {}{place}{remedy}", why.join(" and ")))
}

/// What would decide a change: it concerns the first of these sides whose bounds differ.
fn remedy(sides: [&Bounds; 2]) -> &'static str {
    let wide = sides.into_iter().find(|side| !side.is_exact());
    wide.map_or("repeat both more often", Bounds::to_decide)
}

/// Whether a difference exceeds the noise, given its p value after correction, or whether the noise is not known.
fn is_proven(pair: &Pair, p: Option<f64>) -> bool {
    p.is_none() || pair.is_significant(p)
}

fn p_text(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => ", p < 0.001".to_owned(),
        Some(p) => format!(", p = {p:.3}"),
        None => String::new(),
    }
}

/// `+12.3 %`, `−5 %`, `from nothing`.
fn change_text(share: f64) -> String {
    if !share.is_finite() {
        return "from nothing".to_owned();
    }
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{:.1} %", share.abs() * 100.0)
}
