//! What may be concluded from an experiment, in sentences: who is better, by what, how sure that is.

use std::collections::BTreeMap;

use pubmark_record::comparison::{Better, Unit};
use pubmark_record::experiment::{Contest, Duel};
use pubmark_record::record::Status;

use super::View;
use crate::columns::{EXPERIMENT_COLUMNS, figure, noun};
use crate::numbers::{counted, significant};
use crate::words::sentence;

/// What one figure says.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Its name in the table of figures.
    pub figure: &'static str,
    /// Who is better by it, or that nobody is.
    pub text: String,
    /// Is there a winner in at least one contest?
    pub has_winner: bool,
}

impl Conclusion {
    /// Its text as a sentence; the name of a system keeps its first letter.
    pub fn sentence(&self) -> String {
        let begins_with_a_name = !["no winner", "lowest", "highest"].iter().any(|start| self.text.starts_with(start));
        if begins_with_a_name { format!("{}.", self.text) } else { sentence(&self.text) }
    }
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
            Some(Conclusion { figure: column.figure, text, has_winner })
        });
        judged.collect()
    }

    /// One contest: who wins, against whom it is closest, how sure that is.
    pub fn one(&self, contest: &Contest) -> String {
        let name = |id: &String| {
            self.members().find(|member| member.cell.id == *id).map_or(id.clone(), |m| m.name.to_string())
        };
        let Some(winner) = &contest.winner else {
            let why = match lacking(contest) {
                Lacking::Everything => "too few repetitions to tell".to_string(),
                Lacking::Some(who) => {
                    format!(
                        "too few repetitions of {} to tell",
                        who.into_iter().map(name).collect::<Vec<_>>().join(", ")
                    )
                }
                Lacking::Nothing => "differences within the noise".to_string(),
            };
            let values: Vec<Option<f64>> = contest.ranking.iter().map(|id| self.mean_of(id, &contest.figure)).collect();
            if let ([Some(first), ..], Some(unit)) = (&values[..], self.unit(&contest.figure))
                && values.iter().all(|value| *value == Some(*first))
            {
                return format!("no winner by {}: all have {}", noun(&contest.figure), unit.with_symbol(*first));
            }
            let best: Vec<String> = tied(contest).into_iter().map(name).collect();
            let between = if best.len() < contest.ranking.len() {
                format!(" between {}", best.join(", "))
            } else {
                String::new()
            };
            return format!("no winner by {}{between}: {why}", noun(&contest.figure));
        };
        let value = self.value_of(winner, &contest.figure);
        let start =
            format!("{} has the {} {}{value}", name(winner), superlative(&contest.figure), noun(&contest.figure));
        match contest.duels.iter().find(|duel| Some(&duel.worse) == contest.ranking.get(1)) {
            Some(duel) => format!("{start}; that of {} {}", name(&duel.worse), self.difference(duel, &contest.figure)),
            None => start,
        }
    }

    /// Several contests by one figure: how often each wins.
    fn several(&self, contests: &[&Contest]) -> String {
        let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
        for winner in contests.iter().filter_map(|contest| contest.winner.as_deref()) {
            let name = self.members().find(|member| member.cell.id == winner).map_or(winner, |member| member.name);
            *wins.entry(name).or_default() += 1;
        }
        let mut order: Vec<(&str, usize)> = wins.into_iter().collect();
        order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let won: usize = order.iter().map(|(_, count)| count).sum();
        let by = format!("{} {}", superlative(&contests[0].figure), noun(&contests[0].figure));
        if order.is_empty() {
            return format!("no winner by {} in any of {} settings", noun(&contests[0].figure), contests.len());
        }
        let parts: Vec<String> =
            order.iter().map(|(name, count)| format!("{name} in {count} of {}", contests.len())).collect();
        let rest = contests.len() - won;
        let none = if rest == 0 {
            String::new()
        } else {
            format!("; no winner in {}", counted(rest as u64, "setting", "settings"))
        };
        format!("{by}: {} settings{}{none}", parts.join(", "), self.lead(contests))
    }

    /// How far the winners are ahead of the next, from the closest contest to the clearest.
    fn lead(&self, contests: &[&Contest]) -> String {
        let won = contests.iter().filter(|contest| contest.winner.is_some());
        let next: Vec<&Duel> = won
            .filter_map(|contest| contest.duels.iter().find(|duel| Some(&duel.worse) == contest.ranking.get(1)))
            .collect();
        let least_sure = next.iter().map(|duel| duel.p_adjusted).reduce(|a, b| Some(a?.max(b?))).flatten();
        let (Some(low), Some(high)) = (
            next.iter().map(|duel| duel.difference).reduce(f64::min),
            next.iter().map(|duel| duel.difference).reduce(f64::max),
        ) else {
            return String::new();
        };
        if !next.iter().all(|duel| duel.is_ratio) {
            return String::new();
        }
        let range = if significant(low) == significant(high) {
            significant(low)
        } else {
            format!("{} to {}", significant(low), significant(high))
        };
        format!("; the next is {range} times as high ({})", probability(least_sure))
    }

    fn value_of(&self, id: &str, name: &str) -> String {
        match (self.mean_of(id, name), self.unit(name)) {
            (Some(mean), Some(unit)) => format!(", {}", unit.with_symbol(mean)),
            _ => String::new(),
        }
    }

    fn mean_of(&self, id: &str, name: &str) -> Option<f64> {
        self.members().find(|member| member.cell.id == id)?.mean(name)
    }

    /// How far the worse is behind, as the end of a sentence.
    pub fn difference(&self, duel: &Duel, name: &str) -> String {
        let print = |value: f64| if duel.is_ratio { significant(value) } else { self.plain_difference(name, value) };
        let range = |(low, high): (f64, f64)| format!("{} to {}, ", print(low), print(high));
        let sure = probability(duel.p_adjusted);
        if duel.is_ratio {
            let range = duel.interval.map_or_else(String::new, range);
            return format!("is {} times as high ({range}{sure})", print(duel.difference));
        }
        // The side is said in words, so the ends of an interval on that side need no sign.
        let (side, sign) = if duel.difference < 0.0 { ("lower", -1.0) } else { ("higher", 1.0) };
        let ends = duel.interval.map(|(low, high)| ((low * sign).min(high * sign), (low * sign).max(high * sign)));
        let range = ends.map_or_else(String::new, range);
        format!("is {} {side} ({range}{sure})", print(duel.difference.abs()))
    }

    /// A difference of two values of a figure; of two shares in percentage points.
    pub fn plain_difference(&self, name: &str, value: f64) -> String {
        match figure(name).map(|figure| figure.unit) {
            Some(Unit::Share) => format!("{} points", significant(value * 100.0)),
            Some(_) => self.unit(name).map_or_else(|| significant(value), |unit| unit.with_symbol(value)),
            None => significant(value),
        }
    }
}

/// The best and those that it does not beat.
fn tied(contest: &Contest) -> Vec<&String> {
    let beaten = |id: &String| contest.duels.iter().any(|duel| duel.worse == *id && duel.is_significant);
    contest.ranking.iter().filter(|id| !beaten(id)).collect()
}

/// What the best value of a figure is.
fn superlative(name: &str) -> &'static str {
    match figure(name).map(|figure| figure.better) {
        Some(Better::Higher) => "highest",
        _ => "lowest",
    }
}

/// A p value as it is printed.
pub fn probability(p: Option<f64>) -> String {
    match p {
        None => "p —".to_string(),
        Some(p) if p < 0.001 => "p < 0.001".to_string(),
        Some(p) if p >= 0.1 => format!("p {p:.2}"),
        Some(p) => format!("p {p:.3}"),
    }
}

/// What keeps a contest from having a winner besides noise.
enum Lacking<'a> {
    /// Nobody has enough repetitions.
    Everything,
    /// The best is better than every other that can be told; these (ids) cannot.
    Some(Vec<&'a String>),
    /// All that can be told is told, and it is not enough.
    Nothing,
}

fn lacking(contest: &Contest) -> Lacking<'_> {
    let told = |duel: &&Duel| duel.p.is_some();
    if !contest.duels.iter().any(|duel| told(&duel)) {
        return Lacking::Everything;
    }
    let untold: Vec<&String> = contest.duels.iter().filter(|duel| !told(duel)).map(|duel| &duel.worse).collect();
    if untold.is_empty() || !contest.duels.iter().filter(told).all(|duel| duel.is_significant) {
        return Lacking::Nothing;
    }
    Lacking::Some(untold)
}

/// The whole experiment in one line: who wins by which figures, or that nobody does.
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
        if contests.iter().all(|contest| matches!(lacking(contest), Lacking::Everything)) {
            "No winner: too few repetitions to tell differences from noise".to_string()
        } else if contests.iter().any(|contest| matches!(lacking(contest), Lacking::Some(_))) {
            "No winner: too few runs of some can be counted to tell".to_string()
        } else {
            "No winner: differences within the noise".to_string()
        }
    } else {
        winners(view, &contests)
    };
    if view.record.status == Status::Interrupted { format!("{line} (interrupted: so far)") } else { line }
}

/// Winners with what they win by, the most frequent first.
fn winners(view: &View, contests: &[&Contest]) -> String {
    let mut won: Vec<(&str, Vec<(&str, usize)>)> = Vec::new();
    for column in &EXPERIMENT_COLUMNS {
        for contest in contests.iter().filter(|contest| contest.figure == column.figure) {
            let Some(winner) = &contest.winner else { continue };
            let name =
                view.members().find(|member| member.cell.id == *winner).map_or(winner.as_str(), |member| member.name);
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
        won.iter().take(3).map(|(name, figures)| format!("{name} is best by {}", phrase(figures))).collect();
    let more = won.len().saturating_sub(3);
    let rest = if more > 0 { format!("; {more} more win something") } else { String::new() };
    format!("{}{rest}", parts.join("; "))
}
