//! Conclusions of an experiment, in sentences: which cell is better, by which figure, and how certain that is.

use std::collections::BTreeMap;

use pubmark_record::comparison::{Better, Unit};
use pubmark_record::experiment::{Contest, Duel, Grade};
use pubmark_record::record::Status;

use super::View;
use crate::columns::{EXPERIMENT_COLUMNS, figure, noun};
use crate::numbers::{counted, known, significant};
use crate::words::sentence;

/// Most cells that a sentence names.
const MOST_NAMED: usize = 4;

/// Conclusion from one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Name in the table of figures.
    pub figure: &'static str,
    /// Which cell is better by the figure, by how much, and how certain that is.
    pub text: String,
    /// The highest grade of its contests, for the best cell against every other.
    pub grade: Grade,
    /// Whether at least one contest has a winner.
    pub has_winner: bool,
}

impl Conclusion {
    /// The text as a sentence; the name of a system keeps its first letter unchanged.
    pub fn sentence(&self) -> String {
        let begins_with_a_name =
            !["no difference", "lowest", "highest"].iter().any(|start| self.text.starts_with(start));
        if begins_with_a_name { format!("{}.", self.text) } else { sentence(&self.text) }
    }
}

/// The grade of the statement that the best cell of a contest is better than every other.
pub fn grade_of(contest: &Contest) -> Grade {
    let is_judged = figure(&contest.figure).is_none_or(|figure| figure.better != Better::Neither);
    let least = contest.duels.iter().map(Duel::grade).min();
    least.filter(|_| is_judged).unwrap_or(Grade::NotShown)
}

impl View<'_> {
    /// One conclusion for each figure that was judged, in the order of the columns.
    pub fn conclusions(&self) -> Vec<Conclusion> {
        let judged = EXPERIMENT_COLUMNS.iter().filter_map(|column| {
            let contests: Vec<&Contest> =
                self.contests(column.figure).filter(|contest| contest.ranking.len() > 1).collect();
            let text = match contests[..] {
                [] => return None,
                [only] => self.one(only),
                _ => self.several(&contests),
            };
            let has_winner = contests.iter().any(|contest| contest.winner.is_some());
            let grade = contests.iter().map(|contest| grade_of(contest)).max().unwrap_or(Grade::NotShown);
            Some(Conclusion { figure: column.figure, text, grade, has_winner })
        });
        judged.collect()
    }

    /// One contest: the best cell, its difference from the cell for which the difference is least certain, and the
    /// grade.
    pub fn one(&self, contest: &Contest) -> String {
        let grade = grade_of(contest);
        let Some((best, duel)) = contest.ranking.first().zip(nearest(contest)).filter(|_| grade > Grade::NotShown)
        else {
            return self.nothing_shown(contest);
        };
        format!(
            "{} has the {} {}{}, {}: {}",
            self.name(best),
            superlative(&contest.figure),
            noun(&contest.figure),
            self.value_of(best, &contest.figure),
            self.apart(duel, &contest.figure),
            grade.words()
        )
    }

    /// Why no difference is shown, and between which cells.
    fn nothing_shown(&self, contest: &Contest) -> String {
        let values: Vec<Option<f64>> = contest.ranking.iter().map(|id| self.mean_of(id, &contest.figure)).collect();
        if values.iter().all(|value| value.is_some() && *value == values[0]) {
            let first = self.value_of(&contest.ranking[0], &contest.figure);
            return format!("no difference in {}: all have {}", noun(&contest.figure), first.trim_start_matches(", "));
        }
        let why = match lacking(contest) {
            Lacking::Everything => "too few repetitions to tell".to_string(),
            Lacking::Some(who) => {
                let names: Vec<&str> = who.into_iter().map(|id| self.name(id)).collect();
                format!("too few repetitions of {} to tell", names.join(", "))
            }
            Lacking::Nothing if is_of_survivors(contest) => {
                "the lower latencies are those of fewer messages".to_string()
            }
            Lacking::Nothing if is_of_limited_rate(contest) => {
                "pubmark or the machine may have been the limit of the lower one".to_string()
            }
            Lacking::Nothing if bounds_overlap(contest) => "the bounds of what was measured overlap".to_string(),
            Lacking::Nothing => "within the noise".to_string(),
        };
        let tied: Vec<&str> = tied(contest).into_iter().map(|id| self.name(id)).collect();
        let between = match (&tied[..], nearest(contest)) {
            ([first, second], Some(duel)) => {
                format!("{first} and {second}: {}", self.distance(duel, &contest.figure))
            }
            (few, _) if few.len() <= MOST_NAMED => few.join(", "),
            (many, _) => format!("the best {}", many.len()),
        };
        format!("no difference shown in {} between {between}: {why}", noun(&contest.figure))
    }

    /// Several contests by one figure: how often each cell wins.
    fn several(&self, contests: &[&Contest]) -> String {
        let best_of = |grade: Grade| contests.iter().filter(move |contest| grade_of(contest) == grade);
        let count = |grade: Grade| {
            let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
            for best in best_of(grade).filter_map(|contest| contest.ranking.first()) {
                *wins.entry(self.name(best)).or_default() += 1;
            }
            let mut order: Vec<(&str, usize)> = wins.into_iter().collect();
            order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
            order
        };
        let (proven, likely) = (count(Grade::Proven), count(Grade::Likely));
        let all = contests.len();
        if proven.is_empty() && likely.is_empty() {
            return format!("no difference shown in {} in any of {all} settings", noun(&contests[0].figure));
        }
        let words = |order: &[(&str, usize)]| -> String {
            order.iter().map(|(name, count)| format!("{name} in {count} of {all}")).collect::<Vec<_>>().join(", ")
        };
        let mut parts = vec![];
        if !proven.is_empty() {
            let won: Vec<&Contest> = best_of(Grade::Proven).copied().collect();
            parts.push(format!("{} settings{}, proven", words(&proven), self.lead(&won)));
        }
        if !likely.is_empty() {
            parts.push(format!("{} settings, likely", words(&likely)));
        }
        let rest = best_of(Grade::NotShown).count();
        if rest > 0 {
            parts.push(format!("not shown in {}", counted(rest as u64, "setting", "settings")));
        }
        format!("{} {}: {}", superlative(&contests[0].figure), noun(&contests[0].figure), parts.join("; "))
    }

    /// Differences between the winners of these contests and the next best, from the smallest to the largest.
    fn lead(&self, contests: &[&Contest]) -> String {
        let next: Vec<&Duel> = contests.iter().filter_map(|contest| nearest(contest)).collect();
        let ratios: Vec<f64> = next.iter().map(|duel| oriented(duel.difference)).collect();
        let ends = ratios.iter().copied().reduce(f64::min).zip(ratios.iter().copied().reduce(f64::max));
        let Some((low, high)) = ends.filter(|_| next.iter().all(|duel| duel.is_ratio)) else { return String::new() };
        let range = match (significant(low), significant(high)) {
            (low, high) if low == high => low,
            (low, high) => format!("{low} to {high}"),
        };
        format!(", {range} × {} than the next", comparative(&contests[0].figure))
    }

    fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.members().find(|member| member.cell.id == id).map_or(id, |member| member.name)
    }

    fn value_of(&self, id: &str, name: &str) -> String {
        let figure = self.members().find(|member| member.cell.id == id).and_then(|member| member.figure(name));
        match (figure, self.unit(name)) {
            (Some(figure), Some(unit)) if figure.mean.is_some() => {
                format!(", {}", unit.bounds_with_symbol(figure.mean_bounds()))
            }
            _ => String::new(),
        }
    }

    fn mean_of(&self, id: &str, name: &str) -> Option<f64> {
        self.members().find(|member| member.cell.id == id)?.mean(name)
    }

    /// Difference of a duel with the interval: `2.80 × less than nats (2.40–3.30)`.
    pub fn apart(&self, duel: &Duel, name: &str) -> String {
        let [far, range] = self.parts(duel, name);
        format!("{far} {} than {}{range}", comparative(name), self.name(&duel.worse))
    }

    /// The same without words: `1.02 × (0.96–1.08)`.
    fn distance(&self, duel: &Duel, name: &str) -> String {
        self.parts(duel, name).concat()
    }

    /// Difference of a duel, and the interval.
    fn parts(&self, duel: &Duel, name: &str) -> [String; 2] {
        if duel.is_ratio {
            let range = duel.interval.map_or_else(String::new, |(low, high)| {
                let (low, high) = (oriented_as(duel, low), oriented_as(duel, high));
                format!(" ({}–{})", ratio(low.min(high)), ratio(low.max(high)))
            });
            return [format!("{} ×", ratio(oriented(duel.difference))), range];
        }
        // The direction is stated in words, so the ends of an interval on that side need no sign.
        let sign = if duel.difference < 0.0 { -1.0 } else { 1.0 };
        let print = |value: f64| self.plain_difference(name, value);
        let range = duel.interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", print((low * sign).min(high * sign)), print((low * sign).max(high * sign)))
        });
        [print(duel.difference.abs()), range]
    }

    /// Difference of two values of a figure; percentage points for shares.
    pub fn plain_difference(&self, name: &str, value: f64) -> String {
        match figure(name).map(|figure| figure.unit) {
            Some(Unit::Share) => format!("{} points", significant(value * 100.0)),
            Some(_) => self.unit(name).map_or_else(|| significant(value), |unit| unit.with_symbol(value)),
            None => significant(value),
        }
    }
}

/// The duel of the best cell with the lowest grade; of several, the closest in rank.
fn nearest(contest: &Contest) -> Option<&Duel> {
    let place = |duel: &&Duel| contest.ranking.iter().position(|id| *id == duel.worse);
    contest.duels.iter().min_by_key(|duel| (duel.grade(), place(duel)))
}

/// A ratio as a factor of at least 1, whichever value is larger.
fn oriented(ratio: f64) -> f64 {
    if ratio < 1.0 && ratio > 0.0 { 1.0 / ratio } else { ratio }
}

/// An end of the interval of a ratio, inverted if the ratio is.
fn oriented_as(duel: &Duel, end: f64) -> f64 {
    if duel.difference < 1.0 && end > 0.0 { 1.0 / end } else { end }
}

/// A ratio with three digits; with more digits if it would otherwise look like exactly 1.
pub fn ratio(value: f64) -> String {
    let text = significant(value);
    if value == 1.0 || significant(1.0) != text {
        return text;
    }
    format!("{value:.4}")
}

/// Whether the better latency of the nearest pair is that of fewer messages.
fn is_of_survivors(contest: &Contest) -> bool {
    nearest(contest).is_some_and(|duel| duel.survivors.is_some())
}

/// Whether the bounds of the measurement alone leave the order of the nearest pair undecided.
fn bounds_overlap(contest: &Contest) -> bool {
    let nothing = |duel: &Duel| if duel.is_ratio { 1.0 } else { 0.0 };
    let is_open = |duel: &Duel| {
        duel.measured.is_some_and(|(least, most)| least < most && least <= nothing(duel) && nothing(duel) <= most)
    };
    nearest(contest).is_some_and(is_open)
}

/// Whether the rates or shares delivered of the nearest pair are apart by more than what is too small to matter (1 %, a message in
/// ten thousand), and are not shown to be, because the lower one may have been limited by pubmark or the machine. Older records have
/// no grades.
fn is_of_limited_rate(contest: &Contest) -> bool {
    let is_apart = |duel: &Duel| {
        duel.interval.is_some_and(|(low, high)| match contest.figure.as_str() {
            "delivered rate" => duel.is_ratio && (low > 1.01 || high < 0.99),
            "delivered" => low > 1e-4 || high < -1e-4,
            _ => false,
        })
    };
    let is_limited = |duel: &Duel| duel.grade == Some(Grade::NotShown) && is_apart(duel);
    nearest(contest).is_some_and(is_limited)
}

/// The best cell and those for which no difference from it is shown.
fn tied(contest: &Contest) -> Vec<&String> {
    let is_shown = |id: &String| contest.duels.iter().any(|duel| duel.worse == *id && duel.grade() > Grade::NotShown);
    contest.ranking.iter().filter(|id| !is_shown(id)).collect()
}

/// Comparative for a better value of a figure.
fn comparative(name: &str) -> &'static str {
    match figure(name).map(|figure| figure.better) {
        Some(Better::Higher) => "more",
        _ => "less",
    }
}

/// Superlative for the best value of a figure.
fn superlative(name: &str) -> &'static str {
    match figure(name).map(|figure| figure.better) {
        Some(Better::Higher) => "highest",
        _ => "lowest",
    }
}

/// A p value as printed: the probability of a difference as large if both were the same.
pub fn probability(p: Option<f64>) -> String {
    match known(p) {
        None => "p —".to_string(),
        Some(p) if p < 0.001 => "p < 0.001".to_string(),
        Some(p) if p >= 0.1 => format!("p {p:.2}"),
        Some(p) => format!("p {p:.3}"),
    }
}

/// What prevents a contest from having a winner, apart from noise.
enum Lacking<'a> {
    /// No cell has enough repetitions.
    Everything,
    /// The best cell is better than every other that can be judged; these (ids) cannot.
    Some(Vec<&'a String>),
    /// All cells can be judged, but the differences are not sufficient.
    Nothing,
}

fn lacking(contest: &Contest) -> Lacking<'_> {
    let tested = |duel: &&Duel| duel.p.is_some();
    if !contest.duels.iter().any(|duel| tested(&duel)) {
        return Lacking::Everything;
    }
    let untested: Vec<&String> = contest.duels.iter().filter(|duel| !tested(duel)).map(|duel| &duel.worse).collect();
    if untested.is_empty() || !contest.duels.iter().filter(tested).all(|duel| duel.is_significant) {
        return Lacking::Nothing;
    }
    Lacking::Some(untested)
}

/// The whole experiment in one line: which cell wins by which figures, or that none does.
pub fn headline(view: &View) -> String {
    let counting = view.members().filter(|member| member.failed().is_none()).count();
    if counting == 0 {
        return "No figures: every cell failed".to_string();
    }
    if view.record.contests.iter().all(|contest| contest.ranking.len() < 2) {
        return match counting {
            1 => "Nothing to compare: one cell has figures".to_string(),
            _ => "No contest: nothing that may be ranked differs in one setting only".to_string(),
        };
    }
    let contests: Vec<&Contest> = view.record.contests.iter().filter(|contest| contest.ranking.len() > 1).collect();
    let line = if contests.iter().all(|contest| contest.winner.is_none()) {
        if contests.iter().any(|contest| grade_of(contest) == Grade::Likely) {
            format!("No winner proven; {}", winners(view, &contests, Grade::Likely, "is likely best by"))
        } else if contests.iter().all(|contest| matches!(lacking(contest), Lacking::Everything)) {
            "No winner: too few repetitions to tell differences from noise".to_string()
        } else if contests.iter().any(|contest| matches!(lacking(contest), Lacking::Some(_))) {
            "No winner: too few runs of some can be counted to tell".to_string()
        } else if contests.iter().any(|contest| is_of_survivors(contest)) {
            "No winner: the lower latencies are those of fewer messages".to_string()
        } else if contests.iter().any(|contest| is_of_limited_rate(contest)) {
            "No winner: pubmark or the machine may have been the limit of the lower one".to_string()
        } else {
            "No winner: differences within the noise".to_string()
        }
    } else {
        winners(view, &contests, Grade::Proven, "is best by")
    };
    if view.record.status == Status::Interrupted { format!("{line} (interrupted: so far)") } else { line }
}

/// The best cells of the contests of a grade with the figures in which they are best, most frequent first.
fn winners(view: &View, contests: &[&Contest], grade: Grade, are_best: &str) -> String {
    let mut won: Vec<(&str, Vec<(&str, usize)>)> = Vec::new();
    for column in &EXPERIMENT_COLUMNS {
        for contest in contests.iter().filter(|contest| contest.figure == column.figure) {
            let Some(best) = contest.ranking.first().filter(|_| grade_of(contest) == grade) else { continue };
            let name = view.name_of(best);
            let index = won.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
                won.push((name, Vec::new()));
                won.len() - 1
            });
            match won[index].1.iter_mut().find(|(figure, _)| *figure == column.head) {
                Some((_, count)) => *count += 1,
                None => won[index].1.push((column.head, 1)),
            }
        }
    }
    won.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.iter().map(|(_, count)| count).sum::<usize>()));
    let settings = view.groups.len();
    let phrase = |figures: &[(&str, usize)]| {
        let part = |(head, count): &(&str, usize)| {
            if *count < settings { format!("{head} ({count} of {settings})") } else { (*head).to_string() }
        };
        figures.iter().map(part).collect::<Vec<String>>().join(", ")
    };
    let parts: Vec<String> =
        won.iter().take(3).map(|(name, figures)| format!("{name} {are_best} {}", phrase(figures))).collect();
    let more = won.len().saturating_sub(3);
    let rest = if more > 0 { format!("; {more} more win something") } else { String::new() };
    format!("{}{rest}", parts.join("; "))
}
