//! Rules on nodes: all must be present until the end, and the error of their clocks must have a bound.

use super::{Finding, Measure, VerdictInput};
use crate::nodes::NodeRow;
use crate::quantity::micros;
use crate::record::{CheckUnit, VerdictStatus};

/// What to do about a clock without a bound.
const CLOCK_REMEDY: &str =
    "nothing may set `CLOCK_MONOTONIC_RAW` back during a run: do not suspend or migrate the machines";

/// Rule V21.
pub(super) fn all_present(input: &VerdictInput) -> Option<Finding> {
    if !input.lost_workers.is_empty() {
        let lost: Vec<String> =
            input.lost_workers.iter().map(|lost| format!("{} ({})", lost.worker, lost.reason)).collect();
        return Some(
            Finding::new(
                VerdictStatus::Invalid,
                format!("worker lost: {}; its part is missing", lost.join(", ")),
                "run again; `dmesg` says whether it was OOM-killed",
            )
            .of(Measure::none_allowed(lost.len() as u64, CheckUnit::Nodes)),
        );
    }
    if input.nodes.is_empty() {
        return None;
    }
    let lost: Vec<String> =
        input.nodes.iter().filter_map(|node| Some(format!("{} ({})", node.name, node.lost.as_ref()?))).collect();
    let measure = Measure::none_allowed(lost.len() as u64, CheckUnit::Nodes);
    if lost.is_empty() {
        return Some(Finding::valid(format!("{} present to the end", input.nodes.len())).of(measure));
    }
    Some(
        Finding::new(
            VerdictStatus::Invalid,
            format!("node lost: {}; its part is missing", lost.join(", ")),
            "the output of the lost node contains the reason for its end; run again with all nodes",
        )
        .of(measure),
    )
}

/// Precision of the beginning and end of an absence, µs: messages that were sent by other clocks are assigned with it.
const ABSENCES_EXACT_US: f64 = 10_000.0;

/// Rule V22; the error bounds are included in the latencies.
pub(super) fn clocks(input: &VerdictInput) -> Option<Finding> {
    if let Some(row) = input.by_pair.iter().find(|row| row.clock_bound_us.is_none()) {
        let (from, to) = (&row.publisher_node, &row.subscriber_node);
        return Some(Finding::new(
            VerdictStatus::Invalid,
            format!("a clock jumped: latencies from {from} to {to} have no bound"),
            CLOCK_REMEDY,
        ));
    }
    // A run on many nodes has no rows by pair: the latencies from and to a node contain the error of its clock.
    let nodes = if input.by_pair.is_empty() { input.nodes } else { &[] };
    let of_node = |node: &NodeRow| node.clock.as_ref().filter(|clock| !clock.is_the_same).map(|clock| clock.bound_us);
    if let Some(node) = nodes.iter().find(|node| of_node(node) == Some(None)) {
        return Some(Finding::new(
            VerdictStatus::Invalid,
            format!("a clock jumped: latencies from and to {} have no bound", node.name),
            CLOCK_REMEDY,
        ));
    }
    let of_pairs = input.by_pair.iter().filter_map(|row| row.clock_bound_us);
    let mut of_nodes: Vec<f64> = nodes.iter().filter_map(|node| of_node(node)?).collect();
    of_nodes.sort_by(|one, other| other.total_cmp(one));
    // The clocks of two nodes differ by the sum of their errors.
    let of_two = of_nodes.iter().take(2).sum::<f64>();
    let worst_us = Some(of_pairs.fold(of_two, f64::max)).filter(|bound_us| *bound_us > 0.0)?;
    if input.delivery.absent > 0 && worst_us > ABSENCES_EXACT_US {
        let text = format!(
            "clocks ± {} at most: absences are known to {}, so that some messages at their edges may be lost in place of absent, or the reverse",
            micros(worst_us),
            micros(ABSENCES_EXACT_US)
        );
        return Some(Finding::new(VerdictStatus::Suspect, text, CLOCK_REMEDY));
    }
    Some(Finding::valid(format!("clocks ± {} at most, part of each latency's bounds", micros(worst_us))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nodes::NodeClock;
    use crate::record::Record;
    use crate::sample;
    use crate::verdict::judge;

    fn found(code: &str, change: impl FnOnce(&mut Record)) -> Option<(VerdictStatus, String)> {
        let mut record = sample::record();
        record.tables.nodes =
            ["east", "west"].map(|name| NodeRow { name: name.to_owned(), ..NodeRow::default() }).to_vec();
        change(&mut record);
        let checks = judge(&VerdictInput::of(&record)).checks;
        checks.into_iter().find(|check| check.code == code).map(|check| (check.status, check.text))
    }

    #[test]
    fn a_lost_node_makes_a_run_invalid_and_is_named() {
        assert_eq!(found("V21", |_| {}).unwrap(), (VerdictStatus::Valid, "2 present to the end".to_owned()));
        let (status, text) = found("V21", |record| record.tables.nodes[1].lost = Some("killed".to_owned())).unwrap();
        assert_eq!(status, VerdictStatus::Invalid);
        assert!(text.contains("west (killed)"), "{text}");
        assert_eq!(found("V21", |record| record.tables.nodes.clear()), None);
    }

    #[test]
    fn clocks_without_a_bound_make_a_run_invalid() {
        assert_eq!(found("V22", |_| {}), None, "one clock");
        let with =
            |bound_us: Option<f64>| found("V22", |record| record.tables.by_pair[0].clock_bound_us = bound_us).unwrap();
        assert_eq!(with(Some(1_000.0)).0, VerdictStatus::Valid, "it is in the interval");
        assert!(with(Some(1_000.0)).1.contains("± 1 ms"), "{}", with(Some(1_000.0)).1);
        assert_eq!(with(None).0, VerdictStatus::Invalid);
    }

    #[test]
    fn clocks_of_nodes_are_judged_where_there_are_no_rows_by_pair() {
        let with = |clock: NodeClock| {
            found("V22", |record| {
                record.tables.by_pair.clear();
                record.tables.nodes[1].clock = Some(clock);
            })
        };
        let (status, text) = with(NodeClock { bound_us: Some(1_000.0), ..NodeClock::default() }).unwrap();
        assert!(status == VerdictStatus::Valid && text.contains("± 1 ms"), "{text}");
        let (status, text) = with(NodeClock { bound_us: None, ..NodeClock::default() }).unwrap();
        assert!(status == VerdictStatus::Invalid && text.contains("from and to west"), "{text}");
        assert_eq!(with(NodeClock { is_the_same: true, ..NodeClock::default() }), None, "the coordinator's clock");
    }

    #[test]
    fn clocks_of_two_nodes_differ_by_the_sum_of_their_bounds() {
        let with = |bounds_us: [f64; 2]| {
            let change = |record: &mut Record| {
                record.tables.by_pair.clear();
                record.delivery.messages.absent = 1;
                for (node, bound_us) in record.tables.nodes.iter_mut().zip(bounds_us) {
                    node.clock = Some(NodeClock { bound_us: Some(bound_us), ..NodeClock::default() });
                }
            };
            found("V22", change).unwrap()
        };
        let (status, text) = with([6_000.0, 6_000.0]);
        assert!(status == VerdictStatus::Suspect && text.contains("± 12 ms"), "{text}");
        assert_eq!(with([6_000.0, 3_000.0]).0, VerdictStatus::Valid);
    }
}
