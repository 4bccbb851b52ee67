//! Requests and their replies: the accounting of both sides, and the round trip of each group of requesters.

use maud::{Markup, html};
use pubmark_record::latency::{Summary, both};
use pubmark_record::record::Record;

use super::tables::{outcome_rows, whole};
use crate::markdown::unit_of;
use crate::numbers::{count, share};
use crate::words::{self, sentence};

/// Section of a record with requests.
pub(super) fn section(record: &Record) -> Markup {
    let Some(requests) = &record.requests else { return html! {} };
    let (asked, done) = (&requests.outcomes, &requests.responses);
    let none: [&str; 0] = [];
    html! {
        p { (words::parties(record).map(|text| sentence(&text)).unwrap_or_default()) }
        div.scroll { table.books {
            thead { tr { th { "requests" } th.number { "count" } th.number { "share" } th { "meaning" } } }
            tbody {
                (whole("sent", asked.sent, "handed to the system; their messages are among those above"))
                (outcome_rows(&words::request_outcomes(asked), &none, asked.sent))
                tr.whole { th scope="row" colspan="4" { "beside them" } }
                (outcome_rows(words::late_by_pubmark(asked).as_slice(), &none, asked.sent))
                (outcome_rows(&words::further_answers(asked), &none, asked.sent))
                (whole("received", done.received, "by responders, once each"))
                (outcome_rows(&words::response_outcomes(done), &none, done.received))
                (outcome_rows(words::dropped_by_pubmark(done).as_slice(), &none, done.received))
            }
        } }
        @if asked.approximate { p.hint { "A cap was reached: late and further replies may be taken for each other." } }
        (groups(record))
    }
}

fn groups(record: &Record) -> Markup {
    let unit = unit_of(record);
    let groups = record.requests.as_ref().map(|requests| requests.by_group.as_slice()).unwrap_or_default();
    html! {
        div.scroll { table {
            caption { "Round trip by group of requesters, in " (unit.symbol()) }
            thead { tr {
                th { "group" }
                @for name in ["sent", "answered", "late", "timed out", "unknown", "p50", "p99", "max"] { th.number { (name) } }
            } }
            tbody { @for group in groups {
                @let round_trip = |figure: fn(&Summary) -> Option<f64>| unit.interval(both(&group.round_trip, figure));
                tr {
                    th scope="row" { (group.name) }
                    td.number { (count(group.outcomes.sent)) }
                    td.number { (share(group.outcomes.answered, group.outcomes.sent)) }
                    td.number { (count(group.outcomes.late)) }
                    td.number { (count(group.outcomes.timed_out)) }
                    td.number { (count(group.outcomes.unknown)) }
                    td.number { (round_trip(|summary| summary.p50)) }
                    td.number { (round_trip(|summary| summary.p99)) }
                    td.number { (round_trip(|summary| Some(summary.max))) }
                }
            } }
        } }
    }
}
