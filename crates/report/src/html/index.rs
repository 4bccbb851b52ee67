//! The index of exported results: a table whose rows link to the reports.

use maud::{Markup, html};
use pubmark_record::record::VerdictStatus;

use super::page;
use crate::numbers::counted;
use crate::words::{UNUSABLE, verdict_word};

/// A result in a list, as printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexRow {
    /// Name of the folder.
    pub name: String,
    /// Path of the report, relative to the index; `None` without a report.
    pub report: Option<String>,
    /// Start, UTC.
    pub when: String,
    /// Workload or experiment, and the kind of result.
    pub what: String,
    /// System and protocol.
    pub system: String,
    /// Load.
    pub load: String,
    /// Messages delivered of those expected.
    pub delivered: String,
    /// Median latency.
    pub p50: String,
    /// 99th percentile of latency.
    pub p99: String,
    /// Verdict; `None` where there is none.
    pub verdict: Option<VerdictStatus>,
    /// Text of the note.
    pub note: String,
    /// Tags of the note.
    pub tags: Vec<String>,
}

/// The page.
pub fn index(rows: &[&IndexRow], has_comparison: bool) -> String {
    let body = html! {
        header {
            p.kind { "pubmark results" }
            h1 { (counted(rows.len() as u64, "result", "results")) }
            @if has_comparison { p { a href="comparison.html" { "Compared with each other" } } }
        }
        main {
            div.scroll { table {
                thead { tr {
                    @for head in ["Result", "Started (UTC)", "System", "Load"] { th scope="col" { (head) } }
                    @for head in ["Delivered", "p50", "p99"] { th.number scope="col" { (head) } }
                    @for head in ["Verdict", "Note"] { th scope="col" { (head) } }
                } }
                tbody { @for one in rows { (row(one)) } }
            } }
        }
    };
    page("pubmark results", &body)
}

fn row(row: &IndexRow) -> Markup {
    html! {
        tr.(row.verdict.map_or("none", verdict_word)) {
            th scope="row" {
                @match &row.report { Some(report) => { a href=(report) { (row.what) } } None => (row.what) }
                small { (row.name) }
            }
            td.nowrap { (row.when) }
            td { (row.system) }
            td { (row.load) }
            td.number { (row.delivered) }
            @for latency in [&row.p50, &row.p99] {
                @let is_struck = row.verdict == Some(VerdictStatus::Invalid) && latency.contains(|it: char| it.is_ascii_digit());
                td.number.struck[is_struck] { (latency) @if is_struck { " " (UNUSABLE) } }
            }
            td.result { (verdict(row.verdict)) }
            td { (row.note) @for tag in &row.tags { " " span.badge.g-none { (tag) } } }
        }
    }
}

/// A verdict as a word; empty without a verdict.
fn verdict(status: Option<VerdictStatus>) -> &'static str {
    status.map_or("", verdict_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_an_invalid_run_are_struck_through() {
        let latency = || "1.20 ms".to_owned();
        let row =
            |verdict| IndexRow { p50: latency(), p99: "—".to_owned(), verdict: Some(verdict), ..IndexRow::default() };
        let page = |verdict| index(&[&row(verdict)], false);
        assert_eq!(page(VerdictStatus::Invalid).matches("<td class=\"number struck\">1.20 ms ✗</td>").count(), 1);
        assert!(!page(VerdictStatus::Suspect).contains("number struck"));
    }

    #[test]
    fn what_people_wrote_is_text() {
        let row =
            IndexRow { note: "<script>x</script>".to_owned(), tags: vec!["lab".to_owned()], ..IndexRow::default() };
        let page = index(&[&row], true);
        assert!(page.contains("&lt;script&gt;x") && page.contains("comparison.html"), "{page}");
    }
}
