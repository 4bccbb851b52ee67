//! Rule on systems without a broker: every writer–reader pair must discover each other.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::count;
use crate::record::{CheckLimits, CheckUnit, ProbedPairs, Status, VerdictStatus};
use crate::tables::PairRow;

/// Most pairs of nodes that are named.
const NODES_SHOWN: usize = 3;

/// Rule V24.
pub(super) fn met(input: &VerdictInput) -> Option<Finding> {
    let pairs = input.pairs?;
    // In an interrupted run, messages may still have been in transit.
    if input.status == Status::Interrupted || pairs.all == 0 {
        return None;
    }
    // A fault may separate two clients for the whole window as intended.
    let suspect = if input.faults.is_some() { None } else { Some(0.0) };
    let limits = CheckLimits { valid: 0.0, suspect };
    let measure = Measure { value: pairs.unreached as f64, limits, unit: CheckUnit::Pairs };
    if pairs.unreached == 0 {
        let lossy = match pairs.silent {
            0 => String::new(),
            silent => format!("; {} had nothing, which loss explains", count(silent)),
        };
        let text = format!("{} pairs of writer and reader{lossy}{}", count(pairs.all), late(pairs.probed));
        return Some(Finding::valid(text).of(measure));
    }
    let finding = format!(
        "{} of {} pairs of writer and reader never met: both were up, and nothing arrived{}{}",
        count(pairs.unreached),
        count(pairs.all),
        between(input),
        late(pairs.probed)
    );
    let status = if suspect.is_none() { VerdictStatus::Suspect } else { VerdictStatus::Invalid };
    Some(
        Finding::new(
            status,
            finding,
            "a longer `--warmup`, for clients to find each other; on several machines, a network that lets them through, or \
             `pubmark node --address IP` with an address of the node that the others reach",
        )
        .of(measure),
    )
}

/// The nodes with the most silent pairs, in a run over several nodes.
fn between(input: &VerdictInput) -> String {
    let silent = |row: &&PairRow| row.silent_pairs.unwrap_or(0);
    let mut rows: Vec<&PairRow> = input.by_pair.iter().filter(|row| silent(row) > 0).collect();
    if input.nodes.len() < 2 || rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|row| std::cmp::Reverse(silent(row)));
    let row = |row: &&PairRow| format!("{} → {}: {}", row.publisher_node, row.subscriber_node, count(silent(row)));
    let shown: Vec<String> = rows.iter().take(NODES_SHOWN).map(row).collect();
    let more = if rows.len() > NODES_SHOWN { ", …" } else { "" };
    format!(" (silent: {}{more})", shown.join(", "))
}

/// Pairs that had not exchanged a probe when the schedule began.
fn late(probed: Option<ProbedPairs>) -> String {
    match probed.filter(|probed| probed.reached < probed.expected) {
        Some(probed) => format!(
            "; {} of {} had not met by a probe when the schedule began, after {} s",
            count(probed.expected - probed.reached),
            count(probed.expected),
            probed.ms / 1_000
        ),
        None => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nodes::NodeRow;
    use crate::record::{PairCounts, Record};
    use crate::sample;
    use crate::verdict::judge;

    fn found(change: impl FnOnce(&mut Record)) -> Option<(VerdictStatus, String)> {
        let mut record = sample::record();
        record.conditions.faults = None;
        record.delivery.pairs = Some(PairCounts { all: 12, silent: 6, unreached: 5, probed: None });
        change(&mut record);
        let checks = judge(&VerdictInput::of(&record)).checks;
        checks.into_iter().find(|check| check.code == "V24").map(|check| (check.status, check.text))
    }

    #[test]
    fn nodes_between_which_pairs_never_met_are_named() {
        let on_nodes = |record: &mut Record, rows: &[(&str, &str, u64)]| {
            let row = |publisher: &str, subscriber: &str, silent| PairRow {
                publisher_node: publisher.to_owned(),
                subscriber_node: subscriber.to_owned(),
                silent_pairs: Some(silent),
                ..record.tables.by_pair[0].clone()
            };
            record.tables.nodes =
                ["a", "b"].map(|name| NodeRow { name: name.to_owned(), ..NodeRow::default() }).to_vec();
            record.tables.by_pair = rows.iter().map(|(from, to, silent)| row(from, to, *silent)).collect();
        };
        let (_, text) = found(|record| on_nodes(record, &[("a", "a", 0), ("a", "b", 2), ("b", "a", 3)])).unwrap();
        assert!(text.ends_with("nothing arrived (silent: b → a: 3, a → b: 2)"), "{text}");
        let (_, text) = found(|record| on_nodes(record, &[("a", "b", 5)])).unwrap();
        assert!(text.ends_with("nothing arrived (silent: a → b: 5)"), "all devices on one node: {text}");
        let (_, text) = found(|record| record.tables.by_pair[0].silent_pairs = Some(6)).unwrap();
        assert!(text.ends_with("nothing arrived"), "there is one node: {text}");
    }

    #[test]
    fn pairs_that_no_probe_reached_are_named() {
        let probed = |reached: u64, unreached: u64| {
            let counts = PairCounts { unreached, ..PairCounts { all: 12, silent: 6, ..PairCounts::default() } };
            let probed = Some(ProbedPairs { expected: 12, reached, ms: 20_004 });
            found(|record| record.delivery.pairs = Some(PairCounts { probed, ..counts })).unwrap()
        };
        let words = "; 3 of 12 had not met by a probe when the schedule began, after 20 s";
        assert!(probed(9, 0).1.ends_with(words), "{:?}", probed(9, 0));
        assert!(probed(9, 5).1.ends_with(words), "{:?}", probed(9, 5));
        assert!(!probed(12, 0).1.contains("probe"));
    }

    #[test]
    fn pairs_that_never_met_make_a_run_invalid_and_are_counted() {
        let (status, text) = found(|_| {}).unwrap();
        assert_eq!(status, VerdictStatus::Invalid);
        assert!(text.starts_with("5 of 12 pairs of writer and reader never met"), "{text}");
        let (status, text) =
            found(|record| record.delivery.pairs = Some(PairCounts { unreached: 0, ..record.delivery.pairs.unwrap() }))
                .unwrap();
        assert!(status == VerdictStatus::Valid && text.ends_with("6 had nothing, which loss explains"), "{text}");
        assert_eq!(found(|record| record.delivery.pairs = None), None, "a broker stands between them");
        assert_eq!(found(|record| record.run.status = Status::Interrupted), None);
    }
}
