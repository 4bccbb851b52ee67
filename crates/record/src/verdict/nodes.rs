//! Nodes: were all there to the end, and is their clocks' error small against what was measured between them?

use super::{Finding, Measure, VerdictInput};
use crate::latency::upper;
use crate::record::{CheckLimits, CheckUnit, VerdictStatus};
use crate::tables::PairRow;

/// Error bound of clocks over p50 from which on a run is suspect, and invalid.
const CLOCK_SHARES: (f64, f64) = (0.1, 1.0);

/// V21.
pub(super) fn all_there(input: &VerdictInput) -> Option<Finding> {
    if !input.lost_workers.is_empty() {
        let lost: Vec<String> =
            input.lost_workers.iter().map(|lost| format!("{} ({})", lost.worker, lost.why)).collect();
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
        return Some(Finding::valid(format!("{} there to the end", input.nodes.len())).of(measure));
    }
    Some(
        Finding::new(
            VerdictStatus::Invalid,
            format!("node lost: {}; its part is missing", lost.join(", ")),
            "the node's own output says what ended it; run again with all nodes",
        )
        .of(measure),
    )
}

/// V22.
pub(super) fn clocks(input: &VerdictInput) -> Option<Finding> {
    if let Some(row) = input.by_pair.iter().find(|row| row.clock_bound_us.is_none()) {
        let (from, to) = (&row.publisher_node, &row.subscriber_node);
        return Some(Finding::new(
            VerdictStatus::Invalid,
            format!("a clock jumped: latencies from {from} to {to} have no bound"),
            "nothing may set `CLOCK_MONOTONIC_RAW` back during a run: no suspended or migrated machines",
        ));
    }
    let bounds = input.by_pair.iter().filter_map(|row| Some((row.clock_bound_us.filter(|bound| *bound > 0.0)?, row)));
    let shares = bounds.filter_map(|(bound_us, row)| Some((bound_us / p50_us(row)?, bound_us, row)));
    let (share, bound_us, row) = shares.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let status = match share {
        _ if share > CLOCK_SHARES.1 => VerdictStatus::Invalid,
        _ if share > CLOCK_SHARES.0 => VerdictStatus::Suspect,
        _ => VerdictStatus::Valid,
    };
    let p50_us = bound_us / share;
    let finding = format!(
        "clocks ± {bound_us:.1} µs with latency p50 {p50_us:.1} µs from {} to {}: valid up to {:.0} %, suspect up to {:.0} %",
        row.publisher_node,
        row.subscriber_node,
        CLOCK_SHARES.0 * 100.0,
        CLOCK_SHARES.1 * 100.0
    );
    let limits = CheckLimits { valid: CLOCK_SHARES.0, suspect: Some(CLOCK_SHARES.1) };
    let measure = Measure { value: share, limits, unit: CheckUnit::Share };
    let hint = "a network with shorter ways between nodes and coordinator, or PTP";
    Some(Finding::new(status, finding, hint).of(measure))
}

fn p50_us(row: &PairRow) -> Option<f64> {
    upper(&row.latency)?.p50.filter(|p50| *p50 > 0.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nodes::NodeRow;
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
        assert_eq!(found("V21", |_| {}).unwrap(), (VerdictStatus::Valid, "2 there to the end".to_owned()));
        let (status, text) = found("V21", |record| record.tables.nodes[1].lost = Some("killed".to_owned())).unwrap();
        assert_eq!(status, VerdictStatus::Invalid);
        assert!(text.contains("west (killed)"), "{text}");
        assert_eq!(found("V21", |record| record.tables.nodes.clear()), None);
    }

    #[test]
    fn clocks_are_judged_by_what_was_measured_between_them() {
        assert_eq!(found("V22", |_| {}), None, "one clock");
        let with = |share: f64| {
            found("V22", |record| {
                let p50_us = upper(&record.tables.by_pair[0].latency).and_then(|latency| latency.p50).unwrap();
                record.tables.by_pair[0].clock_bound_us = Some(p50_us * share);
            })
            .unwrap()
            .0
        };
        assert_eq!(
            [with(0.09), with(0.11), with(1.1)],
            [VerdictStatus::Valid, VerdictStatus::Suspect, VerdictStatus::Invalid]
        );
    }
}
