//! Faults: what was done, the effects, which guarantees were kept.

use maud::{Markup, html};
use pubmark_record::faults::{FaultRow, LevelBooks};
use pubmark_record::record::Record;

use crate::numbers::{MISSING, count, seconds, share};
use crate::words::{self, after, sentence};

/// Most faults whose messages are listed individually; with more, only the guarantees summarise them.
const MOST_DETAILED: usize = 50;

/// Columns of the table of faults.
const TIMES: [&str; 9] = [
    "done at",
    "over at",
    "connected",
    "lost",
    "first noticed",
    "all noticed",
    "first back",
    "all back",
    "most a second",
];

/// Section of a record with faults.
pub(super) fn section(record: &Record) -> Markup {
    let Some(figures) = &record.conditions.faults else { return html! {} };
    html! {
        div.scroll { table {
            caption { "What each delivery level promises, and what was seen of it in this run" }
            thead { tr { th { "QoS" } th { "promise" } th { "observed" } th { "verdict" } } }
            tbody { @for promise in &figures.promises { tr {
                th scope="row" { (promise.qos) }
                td { (promise.promise) }
                td { (promise.observed) }
                td { (words::promise_word(promise.verdict)) }
            } } }
        } }
        div.scroll { table {
            caption { "Faults and what clients went through; times count from when the fault was done" }
            thead { tr {
                th { "fault" }
                @for name in TIMES { th.number { (name) } }
                th { "latency" }
            } }
            tbody { @for fault in &figures.faults { (row(fault)) } }
        } }
        div.scroll { table {
            caption { "Messages from each fault to the next; those before the first fault beside them" }
            thead { tr {
                th { "since" } th.number { "QoS" }
                @for name in ["expected", "lost", "unknown", "twice", "out of order", "2 s overdue", "not sent", "sent without a receiver"] {
                    th.number { (name) }
                }
            } }
            tbody {
                @for level in &figures.before { (messages("the start", level)) }
                @for fault in figures.faults.iter().take(MOST_DETAILED) { @for level in &fault.levels {
                    (messages(&format!("{} at {}", fault.kind, seconds(fault.requested_at_s)), level))
                } }
            }
        } }
        @if figures.faults.len() > MOST_DETAILED {
            @let all = count(figures.faults.len() as u64);
            p { "Of " (all) " faults the first " (MOST_DETAILED) " are shown; the record has all." }
        }
        p { (sentence(&words::reconnect(&figures.reconnect))) }
    }
}

fn row(fault: &FaultRow) -> Markup {
    let found = &fault.connections;
    html! { tr {
        th scope="row" { (words::fault(fault)) }
        td.number { (at(fault.done_at_s)) }
        td.number { (at(fault.ended_at_s)) }
        td.number { (count(found.connected)) }
        td.number { (count(found.lost)) }
        td.number { (after(found.first_detected_s)) }
        td.number { (after(found.last_detected_s)) }
        td.number { (after(found.first_reconnected_s)) }
        td.number { (after(found.all_reconnected_s)) }
        td.number { (found.peak_reconnects_per_s.map_or_else(|| MISSING.to_owned(), count)) }
        td { (words::fault_latency(fault.latency.as_ref())) }
    } }
}

fn messages(since: &str, level: &LevelBooks) -> Markup {
    let counts =
        [level.unknown, level.duplicated, level.out_of_order, level.overdue, level.skipped_disconnected, level.absent];
    html! { tr {
        th scope="row" { (since) }
        td.number { (level.qos) }
        td.number { (count(level.expected)) }
        td.number { (count(level.lost)) " (" (share(level.lost, level.expected)) ")" }
        @for number in counts { td.number { (count(number)) } }
    } }
}

/// A time in the measured window, with a resolution of 1 ms.
fn at(time_s: Option<f64>) -> String {
    time_s.map_or_else(|| MISSING.to_owned(), |time_s| format!("{time_s:.3} s"))
}

#[cfg(test)]
mod tests {
    use pubmark_record::faults::FaultFigures;
    use pubmark_record::sample;

    use super::*;

    /// `late` of the message accounting counts from the end of publishing, and `overdue` from when each message was due.
    #[test]
    fn what_is_overdue_is_not_called_late() {
        let mut record = sample::record();
        let level = LevelBooks { qos: 1, expected: 9, delivered: 9, overdue: 7, ..LevelBooks::default() };
        record.conditions.faults = Some(FaultFigures { before: vec![level], ..FaultFigures::default() });
        let page = section(&record).into_string();
        assert!(page.contains(r#"<th class="number">2 s overdue</th>"#) && !page.contains(">late<"), "{page}");
    }
}
