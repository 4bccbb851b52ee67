//! Content of the results page: the queue, and a page of the list.

use maud::{Markup, html};
use pubmark_record::capacity::{TrialLatency, TrialQuantiles};
use pubmark_record::headline::{Headline, Kind};
use pubmark_report::html::{IndexRow, with_code};
use pubmark_report::numbers::{self, MISSING, counted};
use pubmark_report::words::{delivered_share_text, verdict_word};

use crate::entry::RunEntry;
use crate::library::history::FAIL_ON;
use crate::library::list::{ListQuery, Page, Sort};
use crate::library::note::{LONGEST_TEXT, Note};
use crate::routes::lookup::is_name;
use crate::store::State;

/// Maximum number of results in a comparison.
const MOST_COMPARED: usize = pubmark_record::comparison::MOST_RUNS;
/// Maximum number of unreadable folders that are named; the others are only counted.
const NAMED: usize = 10;

/// Columns: heading, sort order, and whether the first click sorts in descending order.
const COLUMNS: [(&str, Sort, bool); 9] = [
    ("Result", Sort::Name, false),
    ("State", Sort::State, false),
    ("Started (UTC)", Sort::Newest, false),
    ("System", Sort::System, false),
    ("Load", Sort::Load, true),
    ("Delivered", Sort::Delivered, false),
    ("p50", Sort::P50, false),
    ("p99", Sort::P99, false),
    ("Verdict", Sort::Verdict, false),
];

/// Content of the page besides the list: the queue, the search, and the dialogs.
pub fn content() -> Markup {
    html! {
        section #queue aria-label="Queue" {}
        form #search role="search" {
            label for="filter" { "Search" }
            input #filter name="filter" type="search" autocomplete="off" spellcheck="false"
                placeholder="mosquitto verdict=valid,suspect tag=lab";
            button type="submit" { "Search" }
        }
        dialog #delete aria-labelledby="delete-title" {
            form method="dialog" {
                h2 #delete-title { "Delete permanently?" }
                p { "These folders and everything in them are deleted:" }
                ul #going {}
                div.buttons { button value="no" { "Cancel" } button.danger value="yes" { "Delete" } }
            }
        }
        dialog #check aria-labelledby="check-title" {
            form method="dialog" {
                h2 #check-title { "Check one experiment against another" }
                p.of.hint {}
                label for="check-fail-on" { "A regression is" }
                div.one-line {
                    input #check-fail-on name="fail_on" value=(FAIL_ON) autocomplete="off" spellcheck="false";
                    button #check-again type="button" { "Check" }
                }
                p.finding #check-finding role="status" {}
                div.scroll tabindex="0" { table { thead { tr { th { "Cell" } th { "Check" } th { "Outcome" } th { "Figures" } } } tbody #check-rows {} } }
                div.buttons { button value="no" { "Close" } }
            }
        }
        dialog #note aria-labelledby="note-title" {
            form method="dialog" {
                h2 #note-title { "Note" }
                p.of.hint {}
                label for="note-text" { "Text" }
                textarea #note-text name="text" rows="6" maxlength=(LONGEST_TEXT) {}
                label for="note-tags" { "Tags, separated by spaces" }
                input #note-tags name="tags" autocomplete="off" spellcheck="false";
                div.buttons { button value="no" formnovalidate { "Cancel" } button.primary value="yes" { "Save" } }
            }
        }
    }
}

/// Submissions that are queued or being executed.
pub fn queue(entries: &[RunEntry]) -> String {
    html! {
        @if !entries.is_empty() {
            h2 { "Queue" }
            ol.queue {
                @for entry in entries {
                    li {
                        span.place { @match entry.position {
                            Some(0) | None if entry.state == State::Queued => "next",
                            Some(0) | None => "now",
                            Some(position) => (position),
                        } }
                        a href={ "/runs/" (entry.id) } { (entry.name) " on " (entry.systems.join(", ")) }
                        (state(entry.state))
                        @if let Some(waits_for) = &entry.waits_for { span.hint { "waits for " (waits_for.replace('`', "")) } }
                        button type="button" data-cancel=(entry.id) data-what=(entry.name)
                            disabled[entry.state == State::Cancelling] { "Cancel" }
                    }
                }
            }
        }
    }
    .into_string()
}

/// A page of the list.
pub fn list(page: &Page, query: &ListQuery) -> String {
    html! {
        @if is_empty(page, query) {
            div.missing.nothing {
                p { "There are no results yet. What " code { "pubmark run" } " saves in the server's folder is listed here, too." }
                a.primary href="/new" { "Start a run" }
            }
        } @else if page.runs.is_empty() {
            p.total { (total(page, query)) }
            p.missing { "No result matches. " a href="/" data-stay { "Show all results" } }
        } @else {
            p.total { (total(page, query)) }
            (actions())
            (table(page, query))
            (turning(page, query))
        }
        (unreadable(page))
    }
    .into_string()
}

/// Whether there is nothing at all to list.
fn is_empty(page: &Page, query: &ListQuery) -> bool {
    let asks = query.filter.is_some() || query.state.is_some() || query.kind.is_some() || query.since.is_some();
    page.total == 0 && !asks
}

fn total(page: &Page, query: &ListQuery) -> String {
    let what = if query.filter.is_some() { " that match" } else { "" };
    format!("{}{what}", counted(page.total as u64, "entry", "entries"))
}

fn actions() -> Markup {
    // With `of`, only for results of that kind.
    let button = |action: &str, needs: &str, of: Option<Kind>, words: &str| {
        html! {
            button type="button" data-action=(action) data-needs=(needs) data-of=[of.map(Kind::as_str)] disabled
                aria-describedby="selected" { (words) }
        }
    };
    html! {
        div.actions role="group" aria-label="With the selected results" {
            span #selected .hint aria-live="polite" { "Nothing selected" }
            (button("compare", &format!("2-{MOST_COMPARED}"), Some(Kind::Run), "Compare"))
            (button("history", "1-1", Some(Kind::Run), "History"))
            (button("check", "2-2", Some(Kind::Experiment), "Check against the older"))
            (button("export", "1-100", None, "Export"))
            (button("delete", "1-100", None, "Delete…"))
        }
    }
}

fn table(page: &Page, query: &ListQuery) -> Markup {
    html! {
        div.scroll { table.results {
            thead { tr {
                th scope="col" { span.unseen { "Select" } }
                @for (words, sort, largest_first) in COLUMNS { (head(words, sort, largest_first, query)) }
                th scope="col" { "Note" }
            } }
            tbody { @for entry in &page.runs { (row(entry)) } }
        } }
    }
}

/// A column heading that sorts by the column; a second click reverses the order.
fn head(words: &str, sort: Sort, largest_first: bool, query: &ListQuery) -> Markup {
    let is_sorted = query.sort == sort;
    let reverse = if is_sorted { !query.reverse } else { largest_first };
    // The list with the newest first is in descending order of time.
    let goes_down = query.reverse != (sort == Sort::Newest);
    let sorted = is_sorted.then_some(if goes_down { "descending" } else { "ascending" });
    let address = address(&ListQuery { sort, reverse, offset: 0, ..query.clone() });
    let is_number = matches!(sort, Sort::Load | Sort::Delivered | Sort::P50 | Sort::P99);
    html! {
        th.number[is_number] scope="col" aria-sort=[sorted] {
            a #{ "by-" (word(&sort)) } href=(address) data-stay { (words) }
        }
    }
}

/// Name of a value in the interface.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// URL of the page with a query.
fn address(query: &ListQuery) -> String {
    let mut parts = Vec::new();
    let mut add = |name: &str, value: String| parts.push(format!("{name}={}", escaped(&value)));
    query.filter.iter().for_each(|filter| add("filter", filter.clone()));
    query.state.iter().for_each(|state| add("state", state.word().to_owned()));
    query.kind.iter().for_each(|kind| add("kind", kind.as_str().to_owned()));
    query.since.iter().for_each(|since| add("since", since.clone()));
    if query.sort != Sort::default() {
        add("sort", word(&query.sort));
    }
    if query.reverse {
        add("reverse", "true".to_owned());
    }
    if query.offset > 0 {
        add("offset", query.offset.to_string());
    }
    query.limit.iter().for_each(|limit| add("limit", limit.to_string()));
    if parts.is_empty() { "/".to_owned() } else { format!("/?{}", parts.join("&")) }
}

/// Percent-encodes text for a query (RFC 3986 §2.1): all bytes except unreserved characters.
fn escaped(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

fn row(entry: &RunEntry) -> Markup {
    let printed = index_row(entry);
    let what = &printed.what;
    // Without a result the line is grey; a choice has a result and no verdict.
    let without = if entry.headline.is_some() { "unjudged" } else { "none" };
    // The interface accepts only names that our folders can have.
    let is_open = is_name(&entry.id);
    html! {
        tr.(printed.verdict.map_or(without, verdict_word)) {
            td.select {
                @if is_open && entry.state.is_over() {
                    input type="checkbox" name="run" value=(entry.id) data-kind=(entry.kind.as_str()) aria-label={ "Select " (what) ", " (entry.id) };
                }
            }
            th scope="row" {
                @if is_open { a href={ "/runs/" (entry.id) } { (what) } } @else { (what) }
                small { (entry.id) @if entry.folders.len() > 1 { ", " (entry.folders.len()) " repetitions" } }
                @if let Some(error) = &entry.error { small.reason { (with_code(&error.reason())) } }
            }
            td data-head="State" { (state(entry.state)) }
            td.nowrap data-head="Started" { (printed.when) }
            td data-head="System" { (printed.system) }
            td.number data-head="Load" { (printed.load) }
            td.number data-head="Delivered" { (printed.delivered) }
            td.number.times data-head="p50" { (printed.p50) }
            td.number.times data-head="p99" { (printed.p99) }
            td.result data-head="Verdict" { @match printed.verdict { Some(status) => span.verdict { (verdict_word(status)) }, None => (MISSING) } }
            td.note data-head="Note" { @if is_open { (note(entry)) } }
        }
    }
}

fn note(entry: &RunEntry) -> Markup {
    let Some(note) = &entry.note else { return html! { (MISSING) } };
    if let Some(problem) = &entry.note_problem {
        return html! { (problem) };
    }
    let Note { text, tags } = note;
    html! {
        @for tag in tags {
            a.badge.g-none href=(address(&ListQuery { filter: Some(format!("tag={tag}")), ..ListQuery::default() })) data-stay { (tag) } " "
        }
        span.text { (text) } " "
        button.small type="button" data-note=(entry.id) data-text=(text) data-tags=(tags.join(" "))
            aria-label={ @if note.is_empty() { "Add a note to " } @else { "Edit the note of " } (entry.id) } {
            @if note.is_empty() { "Add" } @else { "Edit" }
        }
    }
}

fn state(state: State) -> Markup {
    html! { span.state-word.(state.word()) { (state.word()) } }
}

fn turning(page: &Page, query: &ListQuery) -> Markup {
    let (first, last) = (page.offset + 1, page.offset + page.runs.len());
    let size = query.limit.unwrap_or(page.runs.len().max(crate::library::list::PAGE));
    let to = |offset: usize| address(&ListQuery { offset, ..query.clone() });
    html! {
        @if page.offset > 0 || last < page.total {
            nav.turning aria-label="Pages of the list" {
                @if page.offset > 0 { a rel="prev" href=(to(page.offset.saturating_sub(size))) data-stay { "← Previous" } }
                span { (numbers::count(first as u64)) "–" (numbers::count(last as u64)) " of " (numbers::count(page.total as u64)) }
                @if last < page.total { a rel="next" href=(to(last)) data-stay { "Next →" } }
            }
        }
    }
}

fn unreadable(page: &Page) -> Markup {
    html! {
        @if !page.unreadable.is_empty() {
            details.unreadable {
                summary { (counted(page.unreadable.len() as u64, "folder", "folders")) " cannot be read" }
                ul {
                    @for one in page.unreadable.iter().take(NAMED) { li { code { (one.folder) } ": " (one.reason) } }
                    @if page.unreadable.len() > NAMED { li { (page.unreadable.len() - NAMED) " more" } }
                }
            }
        }
    }
}

/// A result as a row of the printed index.
pub fn index_row(entry: &RunEntry) -> IndexRow {
    let headline = entry.headline.as_ref();
    let latency = headline.and_then(|headline| headline.latency.as_ref());
    let note = entry.note.clone().unwrap_or_default();
    let kind = match entry.kind {
        Kind::Run => "",
        Kind::Experiment => " (experiment)",
        Kind::Capacity => " (capacity)",
        Kind::Choice => " (choice)",
    };
    IndexRow {
        name: entry.id.clone(),
        report: None,
        when: if entry.state == State::Queued { "waiting".to_owned() } else { moment(entry.at()) },
        what: format!("{}{kind}", entry.name),
        system: system(entry, headline),
        load: load(entry, headline),
        delivered: delivered(headline),
        p50: interval(latency, |quantiles| quantiles.p50_us),
        p99: interval(latency, |quantiles| quantiles.p99_us),
        verdict: headline.and_then(|headline| headline.verdict),
        note: note.text,
        tags: note.tags,
    }
}

/// Date and minute without letters: `2026-03-01 09:05`.
fn moment(at: &str) -> String {
    at.get(..16).map_or_else(|| at.to_owned(), |at| at.replace('T', " "))
}

fn system(entry: &RunEntry, headline: Option<&Headline>) -> String {
    let protocols = headline.map(|headline| headline.protocol.join(", ")).filter(|protocols| !protocols.is_empty());
    let systems = if entry.systems.is_empty() { MISSING.to_owned() } else { entry.systems.join(", ") };
    protocols.map_or(systems.clone(), |protocols| format!("{systems}, {protocols}"))
}

fn load(entry: &RunEntry, headline: Option<&Headline>) -> String {
    match (entry.kind, headline) {
        (Kind::Run, _) => {
            entry.offered_per_s.map_or(MISSING.to_owned(), |rate| format!("{}/s", numbers::significant(rate)))
        }
        (Kind::Experiment, Some(headline)) => counted(headline.cells.unwrap_or(0), "cell", "cells"),
        (Kind::Capacity, Some(headline)) => match headline.holds_per_s {
            Some(rate) => format!("holds {}/s", numbers::significant(rate)),
            None => "none known to hold".to_owned(),
        },
        (Kind::Choice, Some(headline)) => {
            format!("{} of {} qualify", headline.qualify.len(), headline.cells.unwrap_or(0))
        }
        (_, None) => MISSING.to_owned(),
    }
}

fn delivered(headline: Option<&Headline>) -> String {
    headline.map_or_else(|| MISSING.to_owned(), delivered_share_text)
}

/// Both bounds of a latency with the unit.
fn interval(latency: Option<&TrialLatency>, of: fn(&TrialQuantiles) -> Option<f64>) -> String {
    let lower = latency.and_then(|latency| latency.lower.as_ref()).and_then(of);
    numbers::interval([lower, latency.and_then(|latency| of(&latency.upper))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_contains_the_requested_parts() {
        let filter = Some(r#"a"b <x> system=é"#.to_owned());
        let query = ListQuery { filter, sort: Sort::P99, reverse: true, offset: 50, ..ListQuery::default() };
        let expected = "/?filter=a%22b%20%3Cx%3E%20system%3D%C3%A9&sort=p99&reverse=true&offset=50";
        assert_eq!(address(&query), expected);
        assert_eq!(address(&ListQuery::default()), "/");
    }

    #[test]
    fn names_of_folders_and_notes_are_text() {
        let entry = RunEntry {
            id: "<script>x</script>".to_owned(),
            kind: Kind::Run,
            state: State::Complete,
            position: None,
            waits_for: None,
            name: "<b>".to_owned(),
            systems: vec![],
            submitted_at: None,
            started_at: None,
            ended_at: None,
            exit_code: None,
            folders: vec![],
            error: None,
            headline: None,
            offered_per_s: None,
            devices: None,
            note: Some(Note { text: "\"><img src=x onerror=alert(1)>".to_owned(), tags: vec![] }),
            note_problem: None,
            progress: None,
        };
        let page = Page { total: 1, offset: 0, runs: vec![entry.clone()], unreadable: vec![] };
        let html = list(&page, &ListQuery::default());
        assert!(!html.contains("<script>") && !html.contains("<img") && !html.contains("<b>"), "{html}");
        assert!(!html.contains("/runs/<"), "{html}");
        let html =
            list(&Page { runs: vec![RunEntry { id: "one".to_owned(), ..entry }], ..page }, &ListQuery::default());
        assert!(!html.contains("<img") && html.contains("/runs/one"), "{html}");
    }
}
