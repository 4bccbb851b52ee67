//! Which of the candidates that qualify costs least, and how sure that is. The test and the grades are those of `pubmark compare`.

use std::collections::BTreeMap;

use pubmark_record::evaluation::contests::{self, CHANCE_OF_ERROR, Entrant, Match, Pair, are_apart_in_time};
use pubmark_record::experiment::{Contest, Duel, Grade};
use pubmark_record::figures::{Figure, figure};
use pubmark_record::statistics::Scale;

use crate::cost::{CPU_TIME, RunCost};
use crate::record::Recommendation;

/// Figures of cost, by their names in [`pubmark_record::figures::FIGURES`], and how a winner is described.
pub const COSTS: [(&str, &str); 2] = [(CPU_TIME, "CPU time per message"), ("system memory", "memory")];

/// Reads the values of a figure.
type Values = fn(&Qualified) -> &[f64];

/// The values of each of [`COSTS`].
const VALUES: [Values; 2] = [|one| &one.cpu_per_million, |one| &one.memory_bytes];

/// A candidate that qualifies.
#[derive(Clone, Debug)]
pub struct Qualified {
    /// Its label.
    pub label: String,
    /// It may be recommended: the built-in broker may not.
    pub ranked: bool,
    /// When its runs of the race began, RFC 3339, UTC.
    pub started_at: Vec<String>,
    /// CPU time per million messages in each run of the race, s; empty if a run lacks it.
    pub cpu_per_million: Vec<f64>,
    /// Resident set in each run of the race, bytes; empty if a run lacks it.
    pub memory_bytes: Vec<f64>,
}

impl Qualified {
    /// From what its runs of the race cost.
    pub fn of(label: &str, ranked: bool, runs: &[RunCost]) -> Qualified {
        // Runs that have a figure do not represent those that lack it.
        let of_each = |value: fn(&RunCost) -> Option<f64>| -> Vec<f64> {
            runs.iter().map(value).collect::<Option<Vec<f64>>>().unwrap_or_default()
        };
        Qualified {
            label: label.to_owned(),
            ranked,
            started_at: runs.iter().map(|run| run.started_at.clone()).collect(),
            cpu_per_million: of_each(|run| run.cpu_per_million),
            memory_bytes: of_each(|run| run.memory_bytes),
        }
    }

    fn entrant(&self, values: Values) -> Entrant {
        Entrant { started_at: self.started_at.clone(), ..Entrant::exact(&self.label, values(self).to_vec()) }
    }
}

/// Compares the cost of those that may be ranked, by each figure.
pub fn contests(qualified: &[Qualified]) -> Vec<Contest> {
    let matches: Vec<Match> = COSTS
        .iter()
        .zip(VALUES)
        .filter_map(|((name, _), values)| {
            let figure = figure(name).expect("a figure of the table, which a test checks");
            let entrants: Vec<Entrant> = qualified
                .iter()
                .filter(|one| one.ranked && !values(one).is_empty())
                .map(|one| one.entrant(values))
                .collect();
            let match_of =
                || Match { axis: "system".to_owned(), among: BTreeMap::new(), figure, entrants: entrants.clone() };
            (entrants.len() >= 2).then(match_of)
        })
        .collect();
    contests::decide(&matches)
}

/// Recommends a candidate where it is proven to cost less than each other by one figure, and no other is shown to cost less than it by
/// the other figure.
pub fn recommend(qualified: &[Qualified], contests: &[Contest]) -> Recommendation {
    let none = |text: String| Recommendation { candidate: None, grade: None, text };
    let ranked: Vec<&Qualified> = qualified.iter().filter(|one| one.ranked).collect();
    match ranked.as_slice() {
        [] if qualified.is_empty() => return none("no candidate is known to qualify".to_owned()),
        [] => return none("the built-in broker is a demonstration, never recommended".to_owned()),
        [one] => {
            let text = match qualified.len() {
                1 => format!("{} is the only candidate that is known to qualify", one.label),
                _ => format!("{}; of the others that qualify, none may be recommended", one.label),
            };
            return Recommendation { candidate: Some(one.label.clone()), grade: None, text };
        }
        _ => {}
    }
    if let Some((unknown, what)) = ranked.iter().find_map(|one| Some((one, lacking(one)?))) {
        return none(format!("none over the others: pubmark did not measure the {what} of {}", unknown.label));
    }
    let winner = contests.iter().find_map(|contest| {
        let winner = contest.winner.as_ref()?;
        let is_cheapest = contest.ranking.len() == ranked.len() && cheaper(&ranked, winner).is_none();
        is_cheapest.then(|| (winner.clone(), contest))
    });
    // The table shows what the others cost.
    let others = if ranked.len() < qualified.len() { " of those that may be recommended" } else { "" };
    match winner {
        Some((label, contest)) => Recommendation {
            text: format!("{label}: it needs the least {}{others}, and that is proven", cost_word(&contest.figure)),
            candidate: Some(label),
            grade: Some(Grade::Proven),
        },
        None => Recommendation { candidate: None, grade: Some(Grade::NotShown), text: not_shown(&ranked, contests) },
    }
}

/// What is not known of the cost of a candidate, which may be where it costs less than the others; `None` if all is known.
fn lacking(one: &Qualified) -> Option<&'static str> {
    match (one.cpu_per_million.is_empty(), one.memory_bytes.is_empty()) {
        (true, true) => Some("cost"),
        (true, false) => Some("CPU time"),
        (false, true) => Some("memory"),
        (false, false) => None,
    }
}

/// The first candidate that is shown to need less of something than the one with this label, and what. A contest has only the duels of
/// its best mean, which one wild run may move, so each pair is compared here.
fn cheaper<'a>(ranked: &[&'a Qualified], label: &str) -> Option<(&'a str, &'static str)> {
    let one = ranked.iter().find(|one| one.label == label)?;
    COSTS.iter().zip(VALUES).find_map(|((name, word), values)| {
        let figure = figure(name).expect("a figure of the table, which a test checks");
        let cheaper = ranked.iter().find(|other| is_shown_less(figure, values(other), values(one)))?;
        Some((cheaper.label.as_str(), *word))
    })
}

/// Is the first sample shown to be smaller? The p value is not corrected for the number of comparisons: a correction guards against false
/// recommendations, and what this finds prevents one.
fn is_shown_less(figure: &Figure, first: &[f64], second: &[f64]) -> bool {
    if first.is_empty() || second.is_empty() {
        return false;
    }
    let pair = Pair::of(figure, first, second);
    let nothing = if pair.scale == Scale::Logarithm { 1.0 } else { 0.0 };
    pair.difference > nothing && pair.grade(pair.tested.map(|found| found.p)) != Grade::NotShown
}

fn cost_word(figure: &str) -> &'static str {
    COSTS.iter().find(|(name, _)| *name == figure).map_or("cost", |(_, word)| word)
}

/// Why none is recommended, with what is known.
fn not_shown(ranked: &[&Qualified], contests: &[Contest]) -> String {
    let known: Vec<(&String, String)> = contests
        .iter()
        .filter_map(|contest| {
            let best = contest.ranking.first()?;
            let grade = contest.duels.iter().map(|duel| duel.grade()).min()?;
            let words = cost_word(&contest.figure);
            (grade != Grade::NotShown).then(|| (best, format!("{best} needs the least {words} ({})", grade.words())))
        })
        .collect();
    let what = match known.as_slice() {
        [] => "that one of them costs less is not shown".to_owned(),
        [(best, text)] => {
            let but = cheaper(ranked, best).map(|(other, word)| format!(", but {other} needs less {word} than it"));
            format!("{text}{}", but.unwrap_or_default())
        }
        several => {
            let texts: Vec<&str> = several.iter().map(|(_, text)| text.as_str()).collect();
            texts.join(", ")
        }
    };
    format!("none over the others: {what}{}", not_interleaved(ranked, contests).unwrap_or_default())
}

/// The candidates whose difference, which may decide, would be proven had their runs been interleaved, and what to do; `None` if there are
/// none. A run of the race that does not count is replaced by a later one.
fn not_interleaved(ranked: &[&Qualified], contests: &[Contest]) -> Option<String> {
    let started_at = |label: &str| ranked.iter().find(|one| one.label == label).map(|one| one.started_at.as_slice());
    let is_apart = |duel: &&Duel| {
        let times = started_at(&duel.better).zip(started_at(&duel.worse));
        let is_apart = times.is_some_and(|(better, worse)| are_apart_in_time(better, worse));
        is_apart && duel.grade() == Grade::Likely && duel.p_adjusted.is_some_and(|p| p < CHANCE_OF_ERROR)
    };
    let is_open = |contest: &&Contest| contest.duels.iter().all(|duel| duel.grade() > Grade::NotShown);
    let apart: Vec<&Duel> =
        contests.iter().filter(is_open).flat_map(|contest| &contest.duels).filter(is_apart).collect();
    let is_one = |label: &str| apart.iter().any(|duel| duel.better == label || duel.worse == label);
    let labels: Vec<&str> = ranked.iter().map(|one| one.label.as_str()).filter(|label| is_one(label)).collect();
    let [before @ .., last] = labels.as_slice() else { return None };
    Some(format!("; the runs of {} and {last} were not interleaved: `--fresh` begins anew", before.join(", ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::sample;

    use super::*;

    fn qualified(label: &str, cpu_per_million: [f64; 3], megabytes: [f64; 3]) -> Qualified {
        let (cpu_per_million, memory_bytes) = (cpu_per_million.to_vec(), megabytes.map(|value| value * 1e6).to_vec());
        Qualified { label: label.to_owned(), ranked: true, started_at: vec![], cpu_per_million, memory_bytes }
    }

    fn recommended(qualified: &[Qualified]) -> Recommendation {
        recommend(qualified, &contests(qualified))
    }

    #[test]
    fn each_figure_is_one_of_the_table() {
        assert!(COSTS.iter().all(|(name, _)| figure(name).is_some()));
    }

    #[test]
    fn who_is_proven_to_cost_less_is_recommended() {
        let small = qualified("small", [0.010, 0.011, 0.0105], [9.0, 9.1, 9.05]);
        let large = qualified("large", [0.050, 0.052, 0.051], [40.0, 41.0, 40.5]);
        let found = recommended(&[large.clone(), small.clone()]);
        assert_eq!((found.candidate.as_deref(), found.grade), (Some("small"), Some(Grade::Proven)), "{found:?}");
        let middle = qualified("middle", [0.030, 0.031, 0.0305], [20.0, 20.1, 20.05]);
        let built_in = Qualified { ranked: false, ..small };
        let found = recommended(&[large.clone(), middle, built_in.clone()]);
        assert_eq!(
            found.text,
            "middle: it needs the least CPU time per message of those that may be recommended, and that is proven"
        );
        let found = recommended(&[large.clone(), built_in.clone()]);
        assert_eq!(found.candidate.as_deref(), Some("large"));
        assert_eq!(found.text, "large; of the others that qualify, none may be recommended");
        assert_eq!(recommended(&[built_in]).candidate, None);
        let endpoint =
            Qualified { label: "ours".to_owned(), cpu_per_million: vec![], memory_bytes: vec![], ..large.clone() };
        let found = recommended(&[large.clone(), endpoint]);
        assert!(found.candidate.is_none() && found.text.contains("did not measure the cost of ours"), "{found:?}");
        let small = qualified("small", [0.010, 0.011, 0.0105], [9.0, 9.1, 9.05]);
        let partly = Qualified { memory_bytes: vec![], ..large };
        let found = recommended(&[small, partly]);
        assert!(found.candidate.is_none() && found.text.contains("did not measure the memory of large"), "{found:?}");
    }

    #[test]
    fn who_loses_messages_and_needs_fewer_cores_for_it_is_not_cheaper() {
        let of = |label: &str, cores: f64, delivered_per_s: f64| {
            let runs = [1.0, 1.01, 0.99].map(|noise| {
                let mut record = sample::record();
                record.cost.system.as_mut().unwrap().cores = cores * noise;
                record.throughput.delivered_per_s = delivered_per_s;
                RunCost::of(&record)
            });
            Qualified::of(label, true, &runs)
        };
        let whole = of("whole", 0.05, 1_000.0);
        let found = recommended(&[whole.clone(), of("lossy", 0.03, 300.0)]);
        assert_eq!((found.candidate.as_deref(), found.grade), (Some("whole"), Some(Grade::Proven)), "{found:?}");
        assert_eq!(found.text, "whole: it needs the least CPU time per message, and that is proven");
        assert_eq!(recommended(&[whole, of("small", 0.03, 1_000.0)]).candidate.as_deref(), Some("small"));
        let unmeasured = Qualified::of(
            "ours",
            true,
            &[RunCost { cpu_per_million: Some(50.0), ..RunCost::default() }, RunCost::default()],
        );
        assert_eq!(lacking(&unmeasured), Some("cost"), "one of its runs lacks it");
    }

    #[test]
    fn runs_that_were_not_interleaved_recommend_nobody() {
        let small = qualified("small", [0.010, 0.011, 0.0105], [9.0, 9.1, 9.05]);
        let large = qualified("large", [0.050, 0.052, 0.051], [40.0, 41.0, 40.5]);
        let at = |one: &Qualified, minutes: [u32; 3]| {
            let started_at = minutes.map(|minute| format!("2026-03-01T09:{minute:02}:00Z")).to_vec();
            Qualified { started_at, ..one.clone() }
        };
        let interleaved = recommended(&[at(&small, [1, 3, 5]), at(&large, [2, 4, 6])]);
        assert_eq!(interleaved.candidate.as_deref(), Some("small"));
        let found = recommended(&[at(&small, [1, 2, 3]), at(&large, [4, 5, 6])]);
        assert_eq!((found.candidate, found.grade), (None, Some(Grade::NotShown)));
        assert!(found.text.contains("small needs the least CPU time per message (likely)"), "{}", found.text);
        let expected = "; the runs of small and large were not interleaved: `--fresh` begins anew";
        assert!(found.text.ends_with(expected), "{}", found.text);
        // Another order would prove nothing of what is within the noise.
        let noisy = Qualified { label: "noisy".to_owned(), ..small.clone() };
        for found in [
            recommended(&[at(&small, [1, 2, 3]), at(&noisy, [4, 5, 6])]),
            recommended(&[at(&small, [1, 3, 5]), at(&noisy, [2, 4, 6]), at(&large, [7, 8, 9])]),
        ] {
            assert_eq!(found.text, "none over the others: that one of them costs less is not shown");
        }
        let middle = qualified("middle", [0.030, 0.031, 0.0305], [20.0, 20.1, 20.05]);
        let found = recommended(&[at(&middle, [2, 4, 6]), at(&large, [7, 8, 9]), at(&small, [1, 3, 5])]);
        assert!(found.text.contains("; the runs of large and small were not interleaved"), "{}", found.text);
    }

    #[test]
    fn less_of_one_for_more_of_the_other_is_nobodys_to_decide() {
        let quick = qualified("quick", [0.010, 0.011, 0.0105], [40.0, 41.0, 40.5]);
        let small = qualified("small", [0.050, 0.052, 0.051], [9.0, 9.1, 9.05]);
        let found = recommended(&[quick, small]);
        assert_eq!((found.candidate, found.grade), (None, Some(Grade::NotShown)));
        assert!(
            found.text.contains("quick needs the least CPU time per message (proven)")
                && found.text.contains("small needs"),
            "{}",
            found.text
        );
    }

    #[test]
    fn another_that_needs_less_of_the_other_resource_speaks_against_the_winner_whoever_has_the_best_mean() {
        let winner = qualified("winner", [0.010_0, 0.010_1, 0.010_0], [20.0, 20.1, 19.9]);
        let noisy = qualified("noisy", [0.050, 0.051, 0.052], [5.0, 30.0, 5.0]);
        let steady = qualified("steady", [0.050, 0.052, 0.051], [9.2, 9.25, 9.22]);
        let all = [winner, noisy, steady];
        let memory = &contests(&all)[1];
        assert_eq!(memory.ranking, ["noisy", "steady", "winner"], "the duels are those of the noisy one");
        let found = recommended(&all);
        assert_eq!((found.candidate, found.grade), (None, Some(Grade::NotShown)));
        assert_eq!(
            found.text,
            "none over the others: winner needs the least CPU time per message (proven), but steady needs less memory than it"
        );
        let found = recommended(&all[..2]);
        assert_eq!(found.candidate.as_deref(), Some("winner"), "noise speaks against nobody: {}", found.text);
    }

    #[test]
    fn noise_recommends_nobody() {
        let one = qualified("one", [0.050, 0.056, 0.051], [9.0, 9.1, 9.05]);
        let other = qualified("other", [0.052, 0.051, 0.055], [9.05, 9.0, 9.1]);
        let found = recommended(&[one, other]);
        assert_eq!(found.candidate, None, "{found:?}");
    }
}
