//! The order of systems by one figure, as far as their intervals are apart.

use pubmark_report::numbers::percentage;

use super::systems::Systems;
use crate::definition::{Better, Guideline};
use crate::record::{MeanFigure, TableCell, TableResult};
use crate::statement::ends;

/// Lowest share of messages delivered by a system whose latency and cost may be compared.
pub(crate) const DELIVERED_AT_LEAST: f64 = 0.999;

/// The ranked systems of a table.
pub(crate) struct Ranking {
    /// The systems that were compared, the best first.
    pub ranked: Vec<Ranked>,
    /// The systems that were not compared, with the reasons.
    pub left_out: Vec<(String, String)>,
    /// Whether the ranking is based on repeated runs. One run says nothing about the noise.
    pub is_repeated: bool,
}

/// A system and its figure.
#[derive(Clone)]
pub(crate) struct Ranked {
    /// The system.
    pub name: String,
    /// Lowest and highest possible value of the figure: its bounds, and noise if runs were repeated. For
    /// [`Better::Further`], both are the number on the axis, but the upper end is infinite if the next number was not
    /// judged.
    pub ends: (f64, f64),
    /// It may be the best system: no interval of another one is wholly better than its own.
    pub is_first: bool,
}

/// Ranks the systems of a table, except demonstrations; `None` if none has a figure.
pub(super) fn ranking(
    guideline: &Guideline,
    table: &TableResult,
    delivered: Option<&TableResult>,
    systems: Systems<'_>,
) -> Option<Ranking> {
    let mut ranking = match &guideline.better {
        Better::Further(along) => by_reach(guideline, table, along, systems),
        Better::Smaller | Better::Larger => by_figure(guideline, table, delivered, systems),
    };
    let is_larger_better = guideline.better != Better::Smaller;
    ranking.ranked.sort_by(|one, other| {
        // The upper end of an interval is the measured value; the range below it is its uncertainty.
        let order = one.ends.1.total_cmp(&other.ends.1).then(one.ends.0.total_cmp(&other.ends.0));
        if is_larger_better { order.reverse() } else { order }
    });
    // The end at which each system is worst: one of them is at least as good as the best of these.
    let worst = ranking.ranked.iter().map(|ranked| if is_larger_better { ranked.ends.0 } else { ranked.ends.1 });
    let best = worst.reduce(if is_larger_better { f64::max } else { f64::min })?;
    for ranked in &mut ranking.ranked {
        ranked.is_first = if is_larger_better { ranked.ends.1 >= best } else { ranked.ends.0 <= best };
    }
    Some(ranking)
}

fn by_figure(
    guideline: &Guideline,
    table: &TableResult,
    delivered: Option<&TableResult>,
    systems: Systems<'_>,
) -> Ranking {
    let mut ranking = Ranking { ranked: vec![], left_out: vec![], is_repeated: true };
    for cell in table.cells.iter().filter(|cell| is_at(guideline, table, cell)) {
        let Some(label) = value(table, cell, &guideline.compare) else { continue };
        let name = systems.name(label);
        if let Some(why) = systems.why_not_ranked(label) {
            ranking.left_out.push((name, why.to_owned()));
            continue;
        }
        let losing = delivered.and_then(|delivered| why_not_delivering(delivered, cell));
        match (usable(cell), losing) {
            (Err(reason), _) | (Ok(_), Some(reason)) => ranking.left_out.push((name, reason)),
            (Ok(measured), None) => {
                ranking.is_repeated &= measured.interval.is_some();
                ranking.ranked.push(Ranked { name, ends: ends(measured), is_first: false });
            }
        }
    }
    ranking
}

/// The highest number on an axis up to which each system delivers everything: the last one before the first number with a
/// loss.
fn by_reach(guideline: &Guideline, table: &TableResult, along: &str, systems: Systems<'_>) -> Ranking {
    let mut ranking = Ranking { ranked: vec![], left_out: vec![], is_repeated: true };
    let cells = || table.cells.iter().filter(|cell| is_at(guideline, table, cell));
    let mut labels: Vec<&str> = cells().filter_map(|cell| value(table, cell, &guideline.compare)).collect();
    labels.sort_unstable();
    labels.dedup();
    for label in labels {
        let name = systems.name(label);
        if let Some(why) = systems.why_not_ranked(label) {
            ranking.left_out.push((name, why.to_owned()));
            continue;
        }
        let own = cells().filter(|cell| value(table, cell, &guideline.compare) == Some(label));
        let mut steps: Vec<(f64, &TableCell)> =
            own.filter_map(|cell| Some((value(table, cell, along)?.parse().ok()?, cell))).collect();
        steps.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let holds = |cell: &TableCell| usable(cell).is_ok_and(|measured| measured.mean >= DELIVERED_AT_LEAST);
        let held: Vec<&(f64, &TableCell)> = steps.iter().take_while(|(_, cell)| holds(cell)).collect();
        let measured = held.iter().filter_map(|(_, cell)| cell.measured.as_ref());
        ranking.is_repeated &= measured.clone().all(|measured| measured.runs > 1);
        let is_judged = steps.get(held.len()).is_some_and(|(_, next)| usable(next).is_ok() || next.system_failed);
        match (held.last(), steps.first()) {
            (Some((reach, _)), _) => {
                let most = if is_judged { *reach } else { f64::INFINITY };
                ranking.ranked.push(Ranked { name, ends: (*reach, most), is_first: false });
            }
            (None, Some((_, cell))) => {
                let reason = usable(cell).err().unwrap_or_else(|| "loses messages at the smallest".to_owned());
                ranking.left_out.push((name, reason));
            }
            (None, None) => {}
        }
    }
    ranking
}

/// The figure of a cell if it may be judged, or the reason why not.
fn usable(cell: &TableCell) -> Result<&MeanFigure, String> {
    match (&cell.measured, &cell.reason) {
        (_, Some(reason)) => Err(reason.clone()),
        (Some(measured), None) if measured.shown_only => Err("its runs are invalid".to_owned()),
        (Some(measured), None) => Ok(measured),
        (None, None) => Err("not measured".to_owned()),
    }
}

/// Why the delivered share in the cell with the same values of the axes forbids a comparison; `None` if it does not.
fn why_not_delivering(delivered: &TableResult, cell: &TableCell) -> Option<String> {
    let same = delivered.cells.iter().find(|other| other.row == cell.row && other.column == cell.column);
    let Some(share) = same.and_then(|same| same.measured.as_ref()).map(|measured| measured.mean) else {
        return Some("share delivered not measured".to_owned());
    };
    (share < DELIVERED_AT_LEAST).then(|| format!("delivered {}", percentage(Some(share))))
}

fn is_at(guideline: &Guideline, table: &TableResult, cell: &TableCell) -> bool {
    guideline.at.iter().all(|(axis, wanted)| value(table, cell, axis) == Some(wanted))
}

/// The value of an axis in a cell.
fn value<'a>(table: &TableResult, cell: &'a TableCell, axis: &str) -> Option<&'a str> {
    let axes = table.rows.iter().zip(&cell.row).chain(table.columns.iter().zip(&cell.column));
    axes.into_iter().find(|(name, _)| *name == axis).map(|(_, value)| value.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::definition::Need;
    use crate::record::ComparedSystem;

    fn guideline(better: Better, at: &[(&str, &str)]) -> Guideline {
        let at = at.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>();
        let compare = "system".to_owned();
        Guideline { need: Need::LatencyBound, table: "One".to_owned(), compare, at, better, delivered: None }
    }

    fn measured(mean: f64, interval: Option<(f64, f64)>) -> Option<MeanFigure> {
        let runs = if interval.is_some() { 3 } else { 1 };
        Some(MeanFigure { mean, lower: Some(mean * 0.9), interval, runs, shown_only: false })
    }

    fn table(cells: &[(&str, &str, Option<MeanFigure>)]) -> TableResult {
        let cells = cells.iter().map(|(pairs, system, measured)| TableCell {
            row: vec![(*pairs).to_owned()],
            column: vec![(*system).to_owned()],
            printed: None,
            measured: measured.clone(),
            reason: measured.is_none().then(|| "not installed".to_owned()),
            system_failed: false,
            detail: None,
            started_at: None,
            complete: None,
        });
        TableResult {
            title: "One".to_owned(),
            experiment: "one".to_owned(),
            figure: "latency p50".to_owned(),
            rows: vec!["set.pairs".to_owned()],
            columns: vec!["system".to_owned()],
            printed_of: String::new(),
            differs: String::new(),
            comparable: true,
            cells: cells.collect(),
        }
    }

    fn names(ranking: &Ranking) -> Vec<(&str, bool)> {
        ranking.ranked.iter().map(|ranked| (ranked.name.as_str(), ranked.is_first)).collect()
    }

    fn left_out(ranking: &Ranking) -> Vec<(&str, &str)> {
        ranking.left_out.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect()
    }

    /// Ranks by labels.
    fn ranking(guideline: &Guideline, table: &TableResult, delivered: Option<&TableResult>) -> Option<Ranking> {
        super::ranking(guideline, table, delivered, Systems(&[]))
    }

    #[test]
    fn a_system_is_first_unless_the_intervals_show_that_it_is_not() {
        let table = table(&[
            ("10", "slow", measured(300.0, Some((250.0, 310.0)))),
            ("10", "fast", measured(100.0, Some((90.0, 120.0)))),
            ("10", "near", measured(115.0, Some((105.0, 125.0)))),
            ("10", "absent", None),
            ("20", "fast", measured(1.0, Some((1.0, 1.0)))),
        ]);
        let at = [("set.pairs", "10")];
        let found = ranking(&guideline(Better::Smaller, &at), &table, None).unwrap();
        assert_eq!(names(&found), [("fast", true), ("near", true), ("slow", false)]);
        assert_eq!(left_out(&found), [("absent", "not installed")]);
        assert!(found.is_repeated);
        let most = ranking(&guideline(Better::Larger, &at), &table, None).unwrap();
        assert_eq!(names(&most), [("slow", true), ("near", false), ("fast", false)]);
        assert!(ranking(&guideline(Better::Smaller, &[("set.pairs", "30")]), &table, None).is_none());
    }

    #[test]
    fn the_widest_interval_does_not_decide_who_is_first() {
        let table = table(&[
            ("10", "wide", measured(120.0, Some((50.0, 200.0)))),
            ("10", "high", measured(160.0, Some((150.0, 180.0)))),
            ("10", "low", measured(80.0, Some((60.0, 100.0)))),
        ]);
        let most = ranking(&guideline(Better::Larger, &[]), &table, None).unwrap();
        assert_eq!(names(&most), [("wide", true), ("high", true), ("low", false)], "`high` is better than `low`");
        let least = ranking(&guideline(Better::Smaller, &[]), &table, None).unwrap();
        assert_eq!(names(&least), [("low", true), ("high", false), ("wide", true)]);
    }

    #[test]
    fn a_system_that_failed_in_a_repetition_is_not_ranked_by_the_others() {
        let reason = "failed in 2 of 3 repetitions (out of memory)";
        let failing = |mut table: TableResult, number: usize| {
            (table.cells[number].reason, table.cells[number].system_failed) = (Some(reason.to_owned()), true);
            table
        };
        let latency = failing(
            table(&[
                ("10", "fast", measured(100.0, Some((90.0, 120.0)))),
                ("10", "slow", measured(300.0, Some((250.0, 310.0)))),
            ]),
            0,
        );
        let found = ranking(&guideline(Better::Smaller, &[]), &latency, None).unwrap();
        assert_eq!(names(&found), [("slow", true)]);
        assert_eq!(left_out(&found), [("fast", reason)]);
        let whole = || measured(1.0, None);
        let delivered = failing(
            table(&[
                ("200", "weak", whole()),
                ("1000", "weak", whole()),
                ("200", "robust", whole()),
                ("1000", "robust", whole()),
            ]),
            1,
        );
        let found = ranking(&guideline(Better::Further("set.pairs".to_owned()), &[]), &delivered, None).unwrap();
        assert_eq!(names(&found), [("robust", true), ("weak", false)], "it is known that it does not reach 1000");
    }

    #[test]
    fn latency_of_a_system_that_loses_messages_is_not_compared() {
        let latency =
            table(&[("10", "fast", measured(100.0, None)), ("10", "slow", measured(300.0, Some((250.0, 310.0))))]);
        let delivered = table(&[("10", "fast", measured(0.4567, None)), ("10", "slow", measured(1.0, None))]);
        let found = ranking(&guideline(Better::Smaller, &[]), &latency, Some(&delivered)).unwrap();
        assert_eq!(names(&found), [("slow", true)]);
        assert_eq!(left_out(&found), [("fast", "delivered 45.7 %")]);
        let of_one = table(&[("10", "slow", measured(1.0, None)), ("10", "fast", None)]);
        let found = ranking(&guideline(Better::Smaller, &[]), &latency, Some(&of_one)).unwrap();
        assert_eq!(left_out(&found), [("fast", "share delivered not measured")], "a missing share is not a whole one");
        // Without the table of shares delivered it is ranked. One run gives no order.
        let found = ranking(&guideline(Better::Smaller, &[]), &latency, None).unwrap();
        assert_eq!(names(&found), [("fast", true), ("slow", false)]);
        assert!(!found.is_repeated);
    }

    #[test]
    fn a_system_reaches_as_far_as_it_delivers_everything_before_the_first_loss() {
        let table = table(&[
            ("1000", "robust", measured(1.0, None)),
            ("200", "robust", measured(1.0, None)),
            ("200", "weak", measured(1.0, None)),
            ("1000", "weak", measured(0.9, None)),
            // A success after a loss is chance, and does not count.
            ("4000", "weak", measured(1.0, None)),
            // A cell that was not judged is not a loss.
            ("200", "unknown", measured(1.0, None)),
            ("1000", "unknown", None),
            ("200", "broken", measured(0.5, None)),
            ("200", "absent", None),
        ]);
        let found = ranking(&guideline(Better::Further("set.pairs".to_owned()), &[]), &table, None).unwrap();
        let reach: Vec<(&str, (f64, f64), bool)> =
            found.ranked.iter().map(|ranked| (ranked.name.as_str(), ranked.ends, ranked.is_first)).collect();
        let open = f64::INFINITY;
        let expected =
            [("robust", (1_000.0, open), true), ("unknown", (200.0, open), true), ("weak", (200.0, 200.0), false)];
        assert_eq!(reach, expected);
        let names: Vec<&str> = found.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["absent", "broken"]);
    }

    #[test]
    fn a_demonstration_is_neither_first_nor_ranked() {
        let system = |label: &str, ranked: bool| ComparedSystem {
            label: label.to_owned(),
            system: label.to_owned(),
            protocol: None,
            ranked,
        };
        let systems = [system("builtin", false), system("real", true)];
        let share = |mean: f64| measured(mean, Some((mean, mean)));
        let table = table(&[("10", "builtin", share(1.0)), ("10", "real", share(0.9995))]);
        for better in [Better::Larger, Better::Further("set.pairs".to_owned())] {
            let found = super::ranking(&guideline(better, &[]), &table, None, Systems(&systems)).unwrap();
            assert_eq!(names(&found), [("real", true)]);
            assert_eq!(left_out(&found), [("builtin", "the built-in broker is a demonstration, never ranked")]);
        }
    }
}
