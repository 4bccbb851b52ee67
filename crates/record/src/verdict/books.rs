//! Rules on the message accounting: the categories add up, and the counts are exact.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::count;
use crate::record::{CheckUnit, Delivery, Status, VerdictStatus};

const REPORT_IT: &str = "this is an error in pubmark: please report it with the record";

/// Run-queue wait during the drain, as a share of it, above which a system may not have processed all its messages.
const DRAIN_WAIT: f64 = 0.25;

/// Rule V07.
pub(super) fn sending_closes(input: &VerdictInput) -> Option<Finding> {
    let books = input.delivery;
    let parts = [books.sent, books.skipped_planned, books.skipped_disconnected, books.refused, books.unsent];
    let names = "sent + skipped planned + skipped disconnected + refused + unsent";
    Some(identity("offered", books.offered, names, parts.iter().sum(), CheckUnit::Messages))
}

/// Rule V27; `None` where the number of messages is not known from the schedule.
pub(super) fn offered_as_scheduled(input: &VerdictInput) -> Option<Finding> {
    let scheduled = input.workload.scheduled?;
    let has_lost_a_node = input.nodes.iter().any(|node| node.lost.is_some());
    if input.status == Status::Interrupted || has_lost_a_node || !input.lost_workers.is_empty() {
        return None;
    }
    let triggered = input.reactions.map_or(0, |reactions| reactions.triggered);
    let offered = input.delivery.offered.saturating_sub(triggered);
    let difference = Measure::none_allowed(offered.abs_diff(scheduled), CheckUnit::Messages);
    if offered == scheduled {
        let text = format!("{} messages offered, as many as the schedule has", count(offered));
        return Some(Finding::valid(text).of(difference));
    }
    let text = format!("{} messages offered, {} in the schedule", count(offered), count(scheduled));
    Some(Finding::new(VerdictStatus::Invalid, text, REPORT_IT).of(difference))
}

/// Rule V08.
pub(super) fn delivery_closes(input: &VerdictInput) -> Option<Finding> {
    let books = input.delivery;
    let parts = [books.delivered, books.lost, books.unknown];
    let names = "delivered + lost + unknown";
    Some(identity("expected", books.expected, names, parts.iter().sum(), CheckUnit::Messages))
}

pub(super) fn identity(name: &str, whole: u64, parts_names: &str, parts: u64, unit: CheckUnit) -> Finding {
    let difference = Measure::none_allowed(whole.abs_diff(parts), unit);
    if whole == parts {
        return Finding::valid(format!("{name} {} = {parts_names}", count(whole))).of(difference);
    }
    Finding::new(
        VerdictStatus::Invalid,
        format!(
            "{name} {} ≠ {parts_names} = {}: {} {}",
            count(whole),
            count(parts),
            count(whole.abs_diff(parts)),
            if whole > parts { "unaccounted for" } else { "counted twice" }
        ),
        REPORT_IT,
    )
    .of(difference)
}

/// A count of the message accounting with its name.
type Column = (&'static str, fn(&Delivery) -> u64);

/// Counts that include every message of a device type, so that the types must add up to the total.
const ADDITIVE: [Column; 13] = [
    ("offered", |books| books.offered),
    ("sent", |books| books.sent),
    ("skipped_planned", |books| books.skipped_planned),
    ("slowed", |books| books.slowed),
    ("skipped_disconnected", |books| books.skipped_disconnected),
    ("refused", |books| books.refused),
    ("unsent", |books| books.unsent),
    ("expected", |books| books.expected),
    ("delivered", |books| books.delivered),
    ("lost", |books| books.lost),
    ("unknown", |books| books.unknown),
    ("duplicated", |books| books.duplicated),
    ("out_of_order", |books| books.out_of_order),
];

/// Rule V09; `None` without rows by type.
pub(super) fn types_add_up(input: &VerdictInput) -> Option<Finding> {
    if input.by_type.is_empty() {
        return None;
    }
    let mut largest = 0;
    let wrong: Vec<String> = ADDITIVE
        .iter()
        .filter_map(|(name, get)| {
            let (whole, sum) = (get(input.delivery), input.by_type.iter().map(|row| get(&row.delivery)).sum::<u64>());
            largest = whole.abs_diff(sum).max(largest);
            (whole != sum).then(|| format!("{name} {} in all, {} by type", count(whole), count(sum)))
        })
        .collect();
    let difference = Measure::none_allowed(largest, CheckUnit::Messages);
    if wrong.is_empty() {
        let text = format!("{} rows by type add up to the whole", input.by_type.len());
        return Some(Finding::valid(text).of(difference));
    }
    Some(Finding::new(VerdictStatus::Invalid, wrong.join("; "), REPORT_IT).of(difference))
}

/// Rule V10.
pub(super) fn exact(input: &VerdictInput) -> Option<Finding> {
    if !input.delivery.approximate {
        return Some(Finding::valid("every message was accounted for one by one".to_string()));
    }
    Some(Finding::new(
        VerdictStatus::Suspect,
        "message accounting approximate: a limit of its memory was reached, so lost, absent, late and duplicated may be off"
            .to_string(),
        "lower the rate or the number of streams until fewer messages go missing; with absences, a shorter run or more shards",
    ))
}

/// Places between emulated links and the system whose bytes nobody could count, in words; empty without such a place.
fn not_counted(input: &VerdictInput) -> String {
    let links = input.links.filter(|_| input.at_end.link_bytes.is_none()).map(|_| "on the links");
    let relay = input.links.and_then(|links| links.relay.as_ref());
    let relay = relay.filter(|_| input.at_end.relay_bytes.is_none()).map(|_| "in the relay");
    let places: Vec<&str> = links.into_iter().chain(relay).collect();
    if places.is_empty() { String::new() } else { format!("; bytes {} were not counted", places.join(" and ")) }
}

/// Rule V19.
pub(super) fn lost_not_late(input: &VerdictInput) -> Option<Finding> {
    let lost = input.delivery.lost;
    let at_end = input.at_end;
    if lost == 0 {
        return Some(Finding::valid("nothing was missing when the drain was over".to_string()));
    }
    let were = if lost == 1 { "message was" } else { "messages were" };
    let missing = format!("{} {were} missing when the drain was over", count(lost));
    let drain_s = input.settings.drain_s;
    let waited_s = at_end.system_drain_wait_ns.map_or(0.0, |wait_ns| wait_ns as f64 / 1e9);
    // Without a drain there is no share of it.
    if drain_s > 0.0 && waited_s > DRAIN_WAIT * drain_s {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            format!(
                "{missing}, and threads of the system waited {waited_s:.2} s of its {drain_s:.2} s for a processor: some may \
                 still lie there"
            ),
            "stop other programs on this machine, or wait longer with `--drain`",
        )
        .of(Measure::suspect_above(waited_s / drain_s, DRAIN_WAIT, CheckUnit::Share)));
    }
    if at_end.sessions_not_resumed > 0 {
        let sessions = Measure::suspect_above(at_end.sessions_not_resumed as f64, 0.0, CheckUnit::Connections);
        let away = format!(
            "{missing}, and {} persistent sessions of subscribers were not connected again: the system may have stored them",
            count(at_end.sessions_not_resumed)
        );
        let remedy = "wait longer with `--drain`, until the clients are connected again";
        return Some(Finding::new(VerdictStatus::Suspect, away, remedy).of(sessions));
    }
    let places = [
        ("in our sockets", Some(at_end.socket_unsent_bytes)),
        ("in the system's", at_end.system_unsent_bytes),
        ("that the system has not read", at_end.system_unread_bytes),
        ("in the relay", at_end.relay_bytes),
        ("on the links", at_end.link_bytes),
        ("in messages that subscribers process", Some(at_end.held_bytes)),
    ];
    let bytes = places.iter().filter_map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    let in_transit = Measure::suspect_above(bytes as f64, 0.0, CheckUnit::Bytes);
    if bytes == 0 {
        let is_known = at_end.system_unsent_bytes.is_some();
        let whose = if is_known { "no socket held bytes" } else { "our sockets held no bytes" };
        return Some(Finding::valid(format!("{missing}, and {whose}{}", not_counted(input))).of(in_transit));
    }
    let places = places.iter().filter_map(|(place, bytes)| Some((place, (*bytes).filter(|bytes| *bytes > 0)?)));
    let places: Vec<String> = places.map(|(place, bytes)| format!("{} B {place}", count(bytes))).collect();
    Some(
        Finding::new(
            VerdictStatus::Suspect,
            format!("{missing} with bytes still on their way ({}): some are late, not lost", places.join(", ")),
            "wait longer with `--drain`, or lower the rate",
        )
        .of(in_transit),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::links::{LinkFigures, RelayFigures};
    use crate::record::{Check, Record, VerdictStatus};
    use crate::sample;
    use crate::verdict::{VerdictInput, judge};

    /// V19 of a run with a lost message.
    fn check(change: impl FnOnce(&mut Record)) -> Check {
        let mut record = sample::record();
        record.delivery.messages.delivered -= 1;
        record.delivery.messages.lost += 1;
        change(&mut record);
        let verdict = judge(&VerdictInput::of(&record));
        verdict.checks.into_iter().find(|check| check.code == "V19").unwrap()
    }

    fn words(change: impl FnOnce(&mut Record)) -> String {
        check(change).text
    }

    #[test]
    fn a_system_that_had_no_processor_in_the_drain_may_still_hold_what_is_missing() {
        let waited = |wait_ms: u64, drain_s: f64| {
            check(|record| {
                record.delivery.at_end.system_drain_wait_ns = Some(wait_ms * 1_000_000);
                record.settings.drain_s = drain_s;
            })
        };
        let starved = waited(501, 2.0);
        assert_eq!((starved.status, starved.value), (VerdictStatus::Suspect, Some(0.2505)), "{starved:?}");
        assert!(starved.text.contains("waited 0.50 s of its 2.00 s for a processor"), "{}", starved.text);
        assert_eq!(waited(500, 2.0).status, VerdictStatus::Valid, "a quarter of the drain is allowed");
        let without_drain = waited(1, 0.0);
        assert_eq!((without_drain.status, without_drain.value), (VerdictStatus::Valid, Some(0.0)), "{without_drain:?}");
    }

    #[test]
    fn bytes_that_nobody_counted_are_not_called_absent() {
        let behind = |relay: Option<RelayFigures>, [link_bytes, relay_bytes]: [Option<u64>; 2]| {
            words(|record| {
                record.conditions.links = Some(LinkFigures { relay, ..LinkFigures::default() });
                record.delivery.at_end.link_bytes = link_bytes;
                record.delivery.at_end.relay_bytes = relay_bytes;
            })
        };
        let relay = || Some(RelayFigures::default());
        let ends = |words: String, end: &str| assert!(words.ends_with(end), "{words}");
        ends(words(|record| record.delivery.at_end.system_unsent_bytes = None), ", and our sockets held no bytes");
        ends(behind(relay(), [Some(0), Some(0)]), ", and no socket held bytes");
        ends(behind(None, [Some(0), None]), ", and no socket held bytes");
        ends(behind(relay(), [Some(0), None]), "; bytes in the relay were not counted");
        ends(behind(relay(), [None, None]), "; bytes on the links and in the relay were not counted");
    }
}
