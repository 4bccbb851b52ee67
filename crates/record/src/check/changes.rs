//! Judges changes from a baseline: a regression has to exceed the noise and what the measurement alone could have caused.
//!
//! A latency is known as two bounds ([`crate::evaluation::pair`]), so a change is a regression only where the bounds of
//! both sides are nearest to each other. If it is one by the upper bounds alone, it is undecided. So is an outcome that
//! favours the side on which fewer messages arrived ([`Survivors`]).

use crate::comparison::{NO_HASH, SAME_PAYLOAD_AS_BASELINE};
use crate::evaluation::contests::Pair;
use crate::evaluation::pair::Sample;
use crate::statistics::description::mean_on;
use crate::statistics::{FEWEST_REPETITIONS, Scale, holm};
use crate::threshold::{Clause, Limited, MeasuredFigure, change};

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
    let upper = adjusted(&found, |pairs| pairs.upper);
    let rows = found.iter().zip(bounded.into_iter().zip(upper));
    Ok(rows.map(|(one, (p_bounded, p_upper))| one.row(p_bounded, p_upper)).collect())
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

/// Both bounds of a figure in the runs of one side.
#[derive(Default)]
struct Bounds {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// What would bring the bounds nearer; `None` without runs.
    remedy: Option<&'static str>,
    /// Runs whose verdict excludes the figure.
    excluded: usize,
    /// Of how many other runs the figure is not known, and the number of these runs.
    missing: (usize, usize),
    /// Mean share of the messages, or of the requests, whose times these are; `None` for other figures, and if a run lacks it.
    arrived: Option<f64>,
}

impl Bounds {
    /// Bounds of these values of a metric, measured in the runs of a cell.
    fn of(cell: &CellFacts, metric: &Limited, measured: Vec<Option<MeasuredFigure>>) -> Bounds {
        let better = metric.figure().better;
        let arrived = metric.of_arrived().map(|share| cell.measured(&share));
        let arrived_in = |run: usize| Some(arrived.as_ref()?.get(run).copied().flatten()?.interval[0]);
        // A percentile of too few samples and a metric of a part of the messages cannot be compared between runs.
        // Nor can what the verdict of its run excludes.
        let runs = measured.into_iter().enumerate().filter_map(|(run, measured)| Some((measured?, arrived_in(run))));
        let (excluded, runs): (Vec<_>, Vec<_>) = runs.partition(|(run, _)| run.excluded);
        let of_usable = cell.verdicts.len().saturating_sub(excluded.len());
        let (runs, shares): (Vec<MeasuredFigure>, Vec<Option<f64>>) =
            runs.into_iter().filter(|(run, _)| !run.few_samples && !run.partial).unzip();
        let shares: Option<Vec<f64>> = shares.into_iter().collect();
        // A system that was held up could have been faster by any time.
        let (lower, upper) = runs.iter().map(|run| run.reach(better)).map(|[lower, upper]| (lower, upper)).unzip();
        Bounds {
            lower,
            upper,
            remedy: runs.iter().find(|run| run.held_up).or(runs.first()).map(MeasuredFigure::remedy),
            excluded: excluded.len(),
            missing: (of_usable.saturating_sub(runs.len()), of_usable),
            arrived: shares.and_then(|shares| mean_on(Scale::Plain, &shares)),
        }
    }

    fn sample(&self) -> Sample<'_> {
        Sample { lower: &self.lower, upper: &self.upper }
    }

    fn is_exact(&self) -> bool {
        self.lower == self.upper
    }
}

/// Both sides of a change, compared.
struct Pairs {
    /// Where the difference is smallest.
    bounded: Pair,
    /// As if the upper bounds were the values.
    upper: Pair,
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
            upper: Pair::of(&figure, &before.upper, &after.upper),
        });
        let survivors = Survivors::between(metric.of_arrived(), [before.arrived, after.arrived]);
        Ok(Change { cell, clause, before, after, pairs, survivors })
    }

    /// Means of two samples on the scale on which they are compared; `None` if one is empty.
    fn means(&self, before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
        let scale = self.clause.metric.figure().scale.for_values(before.iter().chain(after));
        mean_on(scale, before).zip(mean_on(scale, after))
    }

    /// Means of both sides where the bounds permit the smallest change to larger values, and the largest.
    fn ends(&self) -> Option<[(f64, f64); 2]> {
        let least = self.means(&self.before.upper, &self.after.lower)?;
        Some([least, self.means(&self.before.lower, &self.after.upper)?])
    }

    fn is_exact(&self) -> bool {
        self.before.is_exact() && self.after.is_exact()
    }

    /// Judges the change, given the p values of its pairs after correction.
    fn row(&self, p_bounded: Option<f64>, p_upper: Option<f64>) -> Row {
        let row = self.row_of_arrived(p_bounded, p_upper);
        let (Some(survivors), Outcome::Passed | Outcome::Failed) = (&self.survivors, row.outcome) else { return row };
        let (from, to) = survivors.extreme();
        if self.clause.is_change(from, to) == (row.outcome == Outcome::Failed) {
            return row;
        }
        let detail = format!("{}, {}", row.detail, survivors.text());
        Row { outcome: Outcome::Undecided, survivors: Some(survivors.shares), detail, ..row }
    }

    /// The same as if each message that is missing were as late as those that arrived.
    fn row_of_arrived(&self, p_bounded: Option<f64>, p_upper: Option<f64>) -> Row {
        let metric = &self.clause.metric;
        let plain =
            |outcome, detail| Row::plain(&self.cell.label, &self.clause.text, Kind::Regression, outcome, detail);
        let seen = self.means(&self.before.upper, &self.after.upper);
        let (Some(pairs), Some((before, after)), Some(ends)) = (&self.pairs, seen, self.ends()) else {
            let (side, place) = match self.before.upper.is_empty() {
                true => (&self.before, " of the baseline"),
                false => (&self.after, ""),
            };
            // Nothing is known of a change then. A run here whose verdict excludes the figure fails by its verdict.
            let plain = match side.excluded > 0 {
                true => plain(Outcome::Undecided, format!("undecided: the verdict{place} excludes it")),
                false => plain(Outcome::NotMeasured, format!("not measured{}", place.replace(" of", " in"))),
            };
            return Row { value: self.mean(&self.after), baseline: self.mean(&self.before), ..plain };
        };
        let lacks = |side: &Bounds, place: &str| {
            let (missing, all) = side.missing;
            let rest = side.upper.len();
            match missing > 0 {
                true => Some(format!("undecided: not measured in {missing} of {all} runs{place}")),
                false => (side.excluded > 0 && rest < FEWEST_REPETITIONS).then(|| {
                    format!(
                        "undecided: verdicts exclude it in {} of {} runs{place}",
                        side.excluded,
                        side.excluded + rest
                    )
                }),
            }
        };
        // A figure that only some runs have, such as a percentile of few messages, is that of the runs that had most. And few
        // that verdicts leave of many cannot tell a change from noise.
        if let Some(detail) = lacks(&self.before, " of the baseline").or_else(|| lacks(&self.after, "")) {
            return Row { value: Some(after), baseline: Some(before), ..plain(Outcome::Undecided, detail) };
        }
        let row = |outcome, p, detail| Row {
            value: Some(after),
            baseline: Some(before),
            change: Some(change(before, after)),
            p,
            ..plain(outcome, detail)
        };
        let shown =
            format!("{} ({} → {})", change_text(change(before, after)), metric.text(before), metric.text(after));
        if !self.clause.is_change(before, after) {
            return row(Outcome::Passed, p_bounded, shown);
        }
        let is_proven = |pair: &Pair, p: Option<f64>| p.is_none() || pair.is_significant(p);
        if is_proven(&pairs.bounded, p_bounded) && ends.iter().all(|(from, to)| self.clause.is_change(*from, *to)) {
            return row(Outcome::Failed, p_bounded, format!("{shown}{}", p_text(p_bounded)));
        }
        // The pairs of a figure without bounds are equal, and were corrected together with different ones.
        let p_upper = if self.is_exact() { p_bounded } else { p_upper };
        match pairs.upper.doubt(p_upper) {
            Some(doubt) => row(Outcome::Passed, p_upper, format!("{shown}, not shown: {doubt}")),
            None => row(Outcome::Undecided, p_bounded, format!("{shown}, {}", self.undecided(ends, p_bounded))),
        }
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
        let wide = [&self.after, &self.before].into_iter().find(|side| !side.is_exact());
        let remedy = wide.and_then(|side| side.remedy).unwrap_or("repeat both more often");
        format!("undecided: by the nearest bounds {nearest}; to decide it, {remedy}")
    }

    fn mean(&self, side: &Bounds) -> Option<f64> {
        mean_on(self.clause.metric.figure().scale.for_values(&side.upper), &side.upper)
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::check::subject::{of_experiment, of_run};
    use crate::check::{Demands, judge};
    use crate::experiment::ExperimentRecord;
    use crate::links::{LinkDirection, LinkFigures, LinkGroup};
    use crate::record::{Reason, Record, VerdictStatus};
    use crate::threshold::Conditions;
    use crate::{sample, sample_experiment};

    /// Bounds of five runs around these.
    fn five(lower_us: f64, upper_us: f64) -> Vec<[f64; 2]> {
        [1.0, 1.01, 0.99, 1.005, 0.995].map(|noise| [lower_us * noise, upper_us * noise]).to_vec()
    }

    /// An experiment of one cell with these bounds of p99.
    fn experiment(p99s_us: &[[f64; 2]]) -> ExperimentRecord {
        let mut record = sample_experiment::experiment();
        let mut cell = record.cells.remove(1);
        let p99 = cell.figures.iter_mut().find(|figure| figure.figure == "latency p99").unwrap();
        p99.values = p99s_us.iter().map(|bounds| Some(bounds[1])).collect();
        p99.lower.as_mut().unwrap().values = p99s_us.iter().map(|bounds| Some(bounds[0])).collect();
        record.cells = vec![cell];
        record
    }

    fn judged(before: &Subject, after: &Subject, condition: &str) -> Row {
        let demands = Demands { fail_on: Some(Conditions::parse(condition).unwrap()), ..Demands::default() };
        let rows = judge(after, &demands, Some(before)).unwrap().rows;
        rows.into_iter().find(|row| row.kind == Kind::Regression).unwrap()
    }

    /// Judges the change of p99 between two experiments.
    fn of_p99(before: &[[f64; 2]], after: &[[f64; 2]], condition: &str) -> Row {
        judged(&of_experiment(experiment(before)), &of_experiment(experiment(after)), condition)
    }

    #[test]
    fn a_change_that_the_generator_may_have_made_is_undecided() {
        let row = of_p99(&five(1_000.0, 1_020.0), &five(1_000.0, 1_300.0), "p99>+10%");
        assert_eq!((row.outcome, row.p), (Outcome::Undecided, Some(1.0)), "{row:?}");
        assert!(row.detail.starts_with("+27.5 %") && row.detail.contains("nearest bounds −2.0 %"), "{row:?}");
        assert!(row.detail.contains("`--realtime`"), "{row:?}");
        let row = of_p99(&five(1_000.0, 1_020.0), &five(1_060.0, 1_300.0), "p99>+10%");
        assert_eq!(row.outcome, Outcome::Undecided, "slower for certain, and perhaps by less than the limit: {row:?}");
        let row = of_p99(&five(1_000.0, 1_300.0), &five(1_000.0, 1_020.0), "p99<-5%");
        assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
    }

    #[test]
    fn a_change_at_the_nearest_bounds_is_a_regression() {
        let row = of_p99(&five(1_000.0, 1_020.0), &five(1_250.0, 1_300.0), "p99>+10%");
        assert_eq!(row.outcome, Outcome::Failed, "{row:?}");
        assert!(row.detail.ends_with("p < 0.001") && (row.change.unwrap() - 0.2745).abs() < 1e-3, "{row:?}");
        let row = of_p99(&five(1_250.0, 1_300.0), &five(1_000.0, 1_020.0), "p99<-5%");
        assert_eq!(row.outcome, Outcome::Failed, "{row:?}");
        let row = of_p99(&five(1_000.0, 1_020.0), &five(1_000.0, 1_030.0), "p99>+10%");
        assert_eq!(row.outcome, Outcome::Passed, "{row:?}");
    }

    #[test]
    fn noise_is_no_regression_however_wide_the_bounds() {
        let noisy = [500.0, 2_000.0, 800.0, 1_400.0, 700.0].map(|upper_us| [0.5 * upper_us, upper_us]);
        let row = of_p99(&five(700.0, 800.0), &noisy, "p99>+10%");
        assert_eq!(row.outcome, Outcome::Passed, "{row:?}");
        assert!(
            row.detail.contains(", not shown: a difference as large would occur") && row.p.unwrap() < 1.0,
            "{row:?}"
        );
    }

    #[test]
    fn without_lower_bounds_above_nothing_no_change_is_certain() {
        let row = of_p99(&five(0.0, 1_000.0), &five(0.0, 1_300.0), "p99>+10%");
        assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
        let row = of_p99(&five(0.0, 1_000.0), &five(1_250.0, 1_300.0), "p99>+10%");
        assert_eq!(row.outcome, Outcome::Failed, "{row:?}");
    }

    #[test]
    fn a_figure_without_bounds_is_compared_as_it_is() {
        let of_rate = |rate: f64| {
            let mut record = experiment(&five(1_000.0, 1_020.0));
            let mut figure = record.cells[0].figures[0].clone();
            figure.figure = "delivered rate".to_owned();
            figure.values = five(rate, rate).iter().map(|bounds| Some(bounds[1])).collect();
            figure.lower = None;
            record.cells[0].figures.push(figure);
            of_experiment(record)
        };
        let outcome = |before, after| judged(&of_rate(before), &of_rate(after), "rate<-5%").outcome;
        assert_eq!(outcome(1_000.0, 900.0), Outcome::Failed);
        assert_eq!(outcome(1_000.0, 970.0), Outcome::Passed);
        assert_eq!(outcome(1_000.0, 1_100.0), Outcome::Passed);
    }

    #[test]
    fn a_system_that_was_held_up_has_no_regression_of_times() {
        let slower = |code: &str| {
            let mut record = sample::record();
            let total = record.latency.total.as_mut().unwrap();
            for summary in [&mut total.upper, total.lower.as_mut().unwrap()] {
                summary.p99 = summary.p99.map(|p99| 2.0 * p99);
            }
            let (text, hint) = (String::new(), String::new());
            record.verdict.reasons = vec![Reason { code: code.to_owned(), status: VerdictStatus::Suspect, text, hint }];
            of_run(&record)
        };
        let before = of_run(&sample::record());
        let row = judged(&before, &slower("V28"), "p99>+10%");
        assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
        assert!(row.detail.contains("CPU time"), "{row:?}");
        assert_eq!(judged(&before, &slower("V12"), "p99>+10%").outcome, Outcome::Failed);
    }

    #[test]
    fn a_flood_of_another_load_is_no_baseline() {
        let conditions = || Demands { fail_on: Some(Conditions::parse("p99>+10%").unwrap()), ..Demands::default() };
        let refused = |before: &Subject, after: &Subject| {
            judge(after, &conditions(), Some(before)).err().map(|error| error.to_string())
        };
        let run = |change: fn(&mut Record)| {
            let mut record = sample::record();
            record.workload.schedule_hash = NO_HASH.to_owned();
            change(&mut record);
            of_run(&record)
        };
        assert_eq!(refused(&run(|_| ()), &run(|_| ())), None);
        let message = refused(&run(|_| ()), &run(|record| record.workload.name = "pairs".to_owned())).unwrap();
        assert!(message.contains("workload smart-home, here pairs"), "{message}");
        assert!(refused(&run(|_| ()), &run(|record| record.workload.devices = 7)).is_some());
        let cell = |payload: &str| {
            let mut record = experiment(&five(1_000.0, 1_020.0));
            record.cells[0].schedule_hash = Some(NO_HASH.to_owned());
            record.cells[0].settings.insert("payload".to_owned(), payload.to_owned());
            of_experiment(record)
        };
        assert_eq!(refused(&cell("16B"), &cell("16B")), None);
        let message = refused(&cell("16B"), &cell("64KB")).unwrap();
        assert!(message.contains("payload 16B, here 64KB"), "{message}");
    }

    #[test]
    fn times_that_a_verdict_excludes_are_no_baseline() {
        let mut late = sample::record();
        late.verdict.status = VerdictStatus::Invalid;
        let (text, hint) = (String::new(), String::new());
        late.verdict.reasons = vec![Reason { code: "V01".to_owned(), status: VerdictStatus::Invalid, text, hint }];
        let (late, fine) = (of_run(&late), of_run(&sample::record()));
        let row = judged(&late, &fine, "p99>+10%");
        assert_eq!(row.outcome, Outcome::Undecided, "{row:?}");
        assert_eq!(row.detail, "undecided: the verdict of the baseline excludes it");
        let notes = judge(&fine, &Demands::default(), Some(&late)).unwrap().notes;
        assert!(
            notes.contains(&"runs of the baseline: 1 invalid of 1; a change may come from that".to_owned()),
            "{notes:?}"
        );
        // Of an experiment, the invalid repetition alone is left out.
        let mut before = experiment(&[five(1_000.0, 1_020.0), vec![[40_000.0, 40_100.0]]].concat());
        let run = before.cells[0].runs[0].clone();
        before.cells[0].runs = vec![run.clone(); 6];
        let after = of_experiment(experiment(&five(2_000.0, 2_020.0)));
        assert_ne!(
            judged(&of_experiment(before.clone()), &after, "p99>+10%").outcome,
            Outcome::Failed,
            "as 40 ms hide it"
        );
        before.cells[0].runs[5].verdict = VerdictStatus::Invalid;
        assert_eq!(judged(&of_experiment(before.clone()), &after, "p99>+10%").outcome, Outcome::Failed);
        before.cells[0].runs[..5].iter_mut().skip(2).for_each(|run| run.verdict = VerdictStatus::Invalid);
        let row = judged(&of_experiment(before), &after, "p99>+10%");
        assert_eq!(row.outcome, Outcome::Undecided, "two runs have no noise: {row:?}");
        assert_eq!(row.detail, "undecided: verdicts exclude it in 4 of 6 runs of the baseline");
    }

    #[test]
    fn cells_are_matched_by_the_values_of_their_axes_and_not_by_their_ids() {
        let of_axis = |axis: &str, p99_us: [f64; 2]| {
            let mut record = experiment(&[]);
            record.cells.clear();
            for (value, p99_us) in ["1", "2"].into_iter().zip(p99_us) {
                let mut cell = experiment(&five(p99_us, p99_us)).cells.remove(0);
                cell.settings =
                    [("system", "mosquitto"), (axis, value)].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
                (cell.id, cell.label, cell.failures) = (format!("mosquitto_{value}"), value.to_owned(), vec![]);
                record.cells.push(cell);
            }
            record
        };
        let before = of_axis("qos", [1_000.0, 2_000.0]);
        let mut after = before.clone();
        after.cells.iter_mut().for_each(|cell| cell.id = cell.id.chars().rev().collect());
        let row = judged(&of_experiment(before.clone()), &of_experiment(after), "p99>+10%");
        assert_eq!((row.outcome, row.change), (Outcome::Passed, Some(0.0)), "the axes in another order");
        let row = judged(&of_experiment(before), &of_experiment(of_axis("scale", [1_000.0, 2_000.0])), "p99>+10%");
        assert_eq!(row.outcome, Outcome::NotMeasured, "{row:?}");
    }

    #[test]
    fn a_metric_of_ones_own_is_compared_in_one_unit() {
        let run = |unit: &str, value: f64| {
            let mut record = sample::record();
            record.custom = vec![sample::custom("jitter", unit, [value, value])];
            of_run(&record)
        };
        let row = judged(&run("s", 0.002), &run("ms", 2.1), "custom.jitter>+10%");
        assert_eq!(row.outcome, Outcome::Passed, "5 % and not 1,050 times: {row:?}");
        assert_eq!(judged(&run("s", 0.001), &run("ms", 2.1), "custom.jitter>+10%").outcome, Outcome::Failed);
        for other in ["MB", ""] {
            let row = judged(&run("ms", 2.0), &run(other, 2.1), "custom.jitter>+1%");
            assert_eq!((row.outcome, row.change), (Outcome::NotMeasured, None), "{other}: {row:?}");
        }
        assert_eq!(judged(&run("", 2.0), &run("", 2.1), "custom.jitter>+10%").outcome, Outcome::Passed);
    }

    #[test]
    fn links_that_the_baseline_did_not_have_are_named() {
        let mut linked = sample::record();
        let way = || LinkDirection { requested: vec!["40 ms".to_owned()], ..LinkDirection::default() };
        let group = LinkGroup {
            group: "sensors".to_owned(),
            link: "lte".to_owned(),
            up: way(),
            down: way(),
            ..LinkGroup::default()
        };
        linked.conditions.links = Some(LinkFigures { groups: vec![group], ..LinkFigures::default() });
        let (before, after) = (of_run(&sample::record()), of_run(&linked));
        let note = other_settings(&after, &before).unwrap();
        assert!(note.ends_with("links: none, here lte (40 ms) for sensors"), "{note}");
        assert_eq!(other_settings(&after, &after), None);
    }

    #[test]
    fn settings_of_groups_are_named_unless_the_baseline_is_too_old_to_have_them() {
        let with = |window: Option<&str>| {
            let mut record = sample::record();
            let settings = window.map(|window| ("in-flight window".to_owned(), window.to_owned()));
            record.workload.group_settings = settings.into_iter().collect();
            of_run(&record)
        };
        let note = other_settings(&with(Some("1")), &with(Some("20"))).unwrap();
        assert!(note.ends_with("in-flight window: 20, here 1"), "{note}");
        assert_eq!(other_settings(&with(Some("1")), &with(None)), None);
    }
}
