//! Rules on samples: there must be enough of them, and all must fit into the histograms.

use super::{Finding, Measure, VerdictInput};
use crate::delivery::DueTimeAudit;
use crate::latency::upper;
use crate::quantity::count;
use crate::record::{CheckLimits, CheckUnit, Status, Summary, VerdictStatus};

/// Up to this share, negative samples make a run suspect; above it, invalid.
const NEGATIVE_SUSPECT: f64 = 0.01;

/// Up to this share of deliveries without a latency, a run is suspect; above it, invalid.
const MISSING_SUSPECT: f64 = 0.01;

const FIND_WHO: &str = "find out what else publishes to these topics, or how the system changes messages";

/// Rule V11.
pub(super) fn clocks_agree(input: &VerdictInput) -> Option<Finding> {
    let measured: Vec<(&str, &Summary)> = latencies(input);
    if measured.is_empty() {
        return None;
    }
    let negative: u64 = measured.iter().map(|(_, summary)| summary.negative).sum();
    let worst_share =
        measured.iter().map(|(_, summary)| summary.negative as f64 / summary.count.max(1) as f64).fold(0.0, f64::max);
    let limits = CheckLimits { valid: 0.0, suspect: Some(NEGATIVE_SUSPECT) };
    let measure = Measure { value: worst_share, limits, unit: CheckUnit::Share };
    if negative == 0 {
        return Some(Finding::valid(format!("no negative latency; {}", clock_name(input))).of(measure));
    }
    let status = if worst_share > NEGATIVE_SUSPECT { VerdictStatus::Invalid } else { VerdictStatus::Suspect };
    Some(
        Finding::new(
            status,
            format!("{} latencies below zero, counted as 0; {}", count(negative), clock_name(input)),
            "check the clocks of the machines (`pubmark doctor`)",
        )
        .of(measure),
    )
}

fn clock_name(input: &VerdictInput) -> String {
    match input.environment.clock.as_str() {
        "" => "clock not recorded".to_string(),
        clock => format!("clock {clock}"),
    }
}

/// Rule V12.
pub(super) fn samples_fit(input: &VerdictInput) -> Option<Finding> {
    let all = [
        ("latency", input.latency),
        ("service latency", input.service_latency),
        ("scheduler lag", input.scheduler_lag),
        ("receive lateness", input.receive_lateness),
        ("round trip", input.requests.and_then(|requests| upper(&requests.round_trip))),
        ("round trip travel", input.requests.and_then(|requests| upper(&requests.travel))),
    ];
    let clipped: Vec<String> = all
        .iter()
        .filter_map(|(name, summary)| summary.map(|summary| (name, summary.clipped)))
        .filter(|(_, clipped)| *clipped > 0)
        .map(|(name, clipped)| format!("{} of {name}", count(clipped)))
        .collect();
    if all.iter().all(|(_, summary)| summary.is_none()) {
        return None;
    }
    let number: u64 = all.iter().filter_map(|(_, summary)| Some(summary.as_ref()?.clipped)).sum();
    let measure = Measure::none_allowed(number, CheckUnit::Samples);
    if clipped.is_empty() {
        return Some(Finding::valid("every sample fits the histograms' range".to_string()).of(measure));
    }
    Some(
        Finding::new(
            VerdictStatus::Invalid,
            format!("samples above the histograms' range, counted as its largest value: {}", clipped.join(", ")),
            "lower the rate, or find out why messages take longer than an hour",
        )
        .of(measure),
    )
}

/// Rule V26; `None` where deliveries are not counted exactly.
pub(super) fn are_deliveries(input: &VerdictInput) -> Option<Finding> {
    let has_lost_a_node = input.nodes.iter().any(|node| node.lost.is_some());
    if has_lost_a_node || !input.lost_workers.is_empty() {
        return None;
    }
    let invalid = |text: String, measure| Some(Finding::new(VerdictStatus::Invalid, text, FIND_WHO).of(measure));
    // Of a message whose number was never used, this is certain even where the accounting is approximate.
    if let Some(never_sent) = input.never_sent.filter(|number| *number > 0) {
        let text = format!(
            "{} arrived that no publisher sent, and cannot be removed from latency, rate and series any more",
            messages(never_sent)
        );
        return invalid(text, Measure::none_allowed(never_sent, CheckUnit::Messages));
    }
    let audited = input.due_times.unwrap_or_default();
    if audited.wrong > 0 {
        return invalid(wrong_due_times(&audited), Measure::none_allowed(audited.wrong, CheckUnit::Messages));
    }
    // Messages that the system refused and delivered nevertheless were received although they were not expected, and so
    // were messages that its content filter should have filtered out.
    let books = input.delivery;
    let delivered = books.delivered + books.delivered_after_refusal + books.unmatched;
    let samples = input.latency.map_or(0, |latency| latency.count);
    if books.approximate || (input.latency.is_none() && delivered == 0) {
        return None;
    }
    let counts = format!("{} latencies of {} deliveries", count(samples), count(delivered));
    let surplus = Measure::none_allowed(samples.saturating_sub(delivered), CheckUnit::Samples);
    if samples == delivered {
        let compared = match audited.audited {
            0 => String::new(),
            number => format!("; {} audited, with the due times of the schedule", messages(number)),
        };
        return Some(Finding::valid(counts + &compared).of(surplus));
    }
    if samples > delivered {
        let text = format!("{counts}: messages arrived that no publisher sent, or with another due time than was sent");
        return invalid(text, surplus);
    }
    // Every first copy of a message of the window has a latency, whatever its level, however late: the due time that it
    // carries is the one by which the publisher counted it.
    let missing = delivered - samples;
    let share = missing as f64 / delivered as f64;
    let limits = CheckLimits { valid: 0.0, suspect: Some(MISSING_SUSPECT) };
    let status = if share > MISSING_SUSPECT { VerdictStatus::Invalid } else { VerdictStatus::Suspect };
    let text = format!(
        "{counts}: {} arrived with a due time outside the window, which is not what was sent",
        messages(missing)
    );
    Some(Finding::new(status, text, FIND_WHO).of(Measure { value: share, limits, unit: CheckUnit::Share }))
}

/// How many audited messages carried another due time than the schedule's, with an example.
fn wrong_due_times(audited: &DueTimeAudit) -> String {
    let text = format!(
        "{} of {} audited messages carried another due time than the schedule's",
        count(audited.wrong),
        count(audited.audited)
    );
    // To the nanosecond: a changed bit may be a small difference.
    let ms = |time_ns: i64| time_ns as f64 / 1e6;
    match audited.example {
        None => text,
        Some(one) => format!(
            "{text}: message {} of publisher {} was due {:.6} ms after the start of the window and carried {:.6} ms",
            one.sequence,
            one.publisher,
            ms(one.scheduled_ns),
            ms(one.claimed_ns)
        ),
    }
}

fn messages(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "message" } else { "messages" })
}

/// Rule V13.
pub(super) fn enough_was_measured(input: &VerdictInput) -> Option<Finding> {
    let books = input.delivery;
    let invalid = |finding: &str, hint: &str| Some(Finding::new(VerdictStatus::Invalid, finding.to_string(), hint));
    if books.offered == 0 {
        return invalid("no message was due in the measured window", "run longer with `--duration`");
    }
    if books.sent == 0 {
        return invalid("no message was sent", "look at the causes of refused and dropped connections in the report");
    }
    if books.expected == 0 {
        if input.workload.subscribers == 0 {
            return Some(Finding::valid("no subscriber by design: delivery is not measured".to_string()));
        }
        // V23 reports this, with the system's reason.
        if input.connections.subscriptions_not_held() > 0 {
            return None;
        }
        if books.filtered_out + books.unmatched > 0 {
            return invalid(
                "the predicates of the subscribers matched no message, so delivery was not measured",
                "run longer with `--duration`, or with a `where` that matches more often",
            );
        }
        return invalid(
            "no subscription held a session when messages were sent, so delivery was not measured",
            "look at refused subscriptions and connections in the report",
        );
    }
    match input.latency {
        None => Some(Finding::valid(format!("{} messages expected, no latency to judge", count(books.expected)))),
        Some(latency) => {
            let which = if latency.p99.is_some() { "enough for p99" } else { "too few for p99" };
            Some(Finding::valid(format!("{} latencies, {which}", count(latency.count))))
        }
    }
}

/// Rule V14.
pub(super) fn came_to_its_end(input: &VerdictInput) -> Option<Finding> {
    match input.status {
        Status::Complete => Some(Finding::valid("every phase came to its end".to_string())),
        Status::Interrupted => Some(Finding::new(
            VerdictStatus::Suspect,
            "stopped before its end; the figures cover what was measured until then".to_string(),
            "run again to the end",
        )),
    }
}

fn latencies<'a>(input: &VerdictInput<'a>) -> Vec<(&'static str, &'a Summary)> {
    [("latency", input.latency), ("service latency", input.service_latency)]
        .into_iter()
        .filter_map(|(name, summary)| summary.map(|summary| (name, summary)))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::delivery::WrongDueTime;
    use crate::record::{Check, Record};
    use crate::sample;
    use crate::verdict::judge;

    /// What V26 found in the sample with this change; `None` if the rule does not concern it.
    fn check(change: impl FnOnce(&mut Record)) -> Option<Check> {
        let mut record = sample::record();
        change(&mut record);
        judge(&VerdictInput::of(&record)).checks.into_iter().find(|check| check.code == "V26")
    }

    #[test]
    fn messages_that_nobody_sent_are_named_also_where_the_accounting_is_approximate() {
        let many = check(|record| {
            record.delivery.never_sent = Some(1_000);
            record.delivery.messages.approximate = true;
        })
        .unwrap();
        assert!(many.text.starts_with("1,000 messages arrived that no publisher sent"), "{}", many.text);
        let one = check(|record| record.delivery.never_sent = Some(1)).unwrap();
        assert!(one.text.starts_with("1 message arrived"), "{}", one.text);
        for counted in [Some(0), None] {
            let none = check(|record| record.delivery.never_sent = counted).unwrap();
            assert_eq!(none.status, VerdictStatus::Valid, "{}", none.text);
        }
    }

    #[test]
    fn a_due_time_that_is_not_the_schedules_is_named_with_both_times() {
        let example = WrongDueTime { publisher: 3, sequence: 17, claimed_ns: 250_000_300, scheduled_ns: 250_000_256 };
        let moved = DueTimeAudit { audited: 256, wrong: 2, example: Some(example) };
        let found = check(|record| {
            record.delivery.due_times = Some(moved);
            record.delivery.messages.approximate = true;
        })
        .unwrap();
        assert_eq!(found.status, VerdictStatus::Invalid);
        assert_eq!(
            found.text,
            "2 of 256 audited messages carried another due time than the schedule's: message 17 of publisher 3 was due \
             250.000256 ms after the start of the window and carried 250.000300 ms"
        );
        let as_scheduled = DueTimeAudit { audited: 256, ..DueTimeAudit::default() };
        for (audit, ending) in
            [(Some(as_scheduled), "256 messages audited, with the due times of the schedule"), (None, "deliveries")]
        {
            let found = check(|record| record.delivery.due_times = audit).unwrap();
            assert_eq!(found.status, VerdictStatus::Valid);
            assert!(found.text.ends_with(ending), "{}", found.text);
        }
    }

    #[test]
    fn a_delivery_has_a_latency_also_after_a_refusal_and_where_no_predicate_holds() {
        let all = check(|record| {
            (record.delivery.messages.delivered_after_refusal, record.delivery.messages.unmatched) = (2, 3);
            record.latency.total.as_mut().unwrap().upper.count += 5;
        })
        .unwrap();
        assert_eq!(all.status, VerdictStatus::Valid, "{}", all.text);
        let fewer = check(|record| record.delivery.messages.delivered_after_refusal = 2).unwrap();
        assert_eq!(fewer.status, VerdictStatus::Suspect);
        assert!(fewer.text.starts_with("10,000 latencies of 10,002 deliveries: 2 messages arrived"), "{}", fewer.text);
    }

    #[test]
    fn samples_are_not_compared_with_deliveries_that_are_not_counted_exactly() {
        let approximate = check(|record| {
            record.delivery.messages.approximate = true;
            record.latency.total.as_mut().unwrap().upper.count -= 1;
        });
        assert_eq!(approximate, None);
    }
}
