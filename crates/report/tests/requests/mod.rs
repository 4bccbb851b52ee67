//! Reports of requests from a fixed record, and their absence in reports of a run without requesters.

use pubmark_record::record::{LatencyBounds, Record};
use pubmark_record::requests::{RequestBooks, RequestFigures, RequestGroup, ResponseBooks};
use pubmark_record::sample::Shape;
use pubmark_report::terminal::{COLUMNS, LINES};
use pubmark_report::{csv, html, markdown, terminal};

use crate::{PLAIN, fixtures};

/// A run with every possible outcome of a request.
fn asked() -> Record {
    let shape = |median_us: f64| Some(Shape { median_us, tail: 0.5, count: 9_000 }.summary());
    let bounds = |median_us: f64| shape(median_us).map(LatencyBounds::measured);
    let books = RequestBooks {
        sent: 10_000,
        answered: 9_000,
        late: 400,
        late_by_generator: 0,
        timed_out: 500,
        unknown: 100,
        duplicated: 3,
        misdirected: 2,
        after_refusal: 1,
        approximate: false,
    };
    let mut record = fixtures::factory();
    record.requests = Some(RequestFigures {
        requesters: 20,
        responders: 2,
        outcomes: books,
        responses: ResponseBooks { received: 9_900, answered: 9_400, dropped: 500, ..ResponseBooks::default() },
        answered_per_s: 900.0,
        replies_per_s: Some(920.0),
        timeout_s: Some(5.0),
        peak_in_flight: 77,
        round_trip: bounds(4_000.0),
        service_round_trip: bounds(3_900.0),
        without_write_start: 0,
        travel: bounds(1_000.0),
        waiting: shape(50.0),
        responder_lag: shape(10.0),
        receive_lateness: shape(12.0),
        by_group: vec![RequestGroup { name: "panel".to_owned(), outcomes: books, round_trip: bounds(4_000.0) }],
    });
    record
}

#[test]
fn the_terminal_shows_them_in_two_rows_and_a_line_or_three() {
    let text = terminal::summary(&asked(), &PLAIN);
    for part in ["requests  sent 10,000  answered 9,000 (90 %)", "timed out 500", "RTT ", "900/s"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(text.lines().count() <= LINES, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
}

#[test]
fn every_export_has_them() {
    let record = asked();
    let summary = csv::TABLES[0].render;
    let text = summary(&record);
    for row in [
        "requests,timed_out,requests,500",
        "requests,responder_dropped,requests,500",
        "requests of panel,sent,requests,10000",
        "round_trip,p99,us,",
    ] {
        assert!(text.contains(row), "no `{row}` in\n{text}");
    }
    let text = markdown::run(&record);
    for part in [
        "## Requests",
        "20 requesters, 2 responders",
        "| timed out | 500 | 5 % |",
        "| panel | 10,000 | 90 % |",
        "round trip travel",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let page = html::run(&record);
    for part in ["<section id=\"requests\">", "misdirected replies", "Round trip by group of requesters"] {
        assert!(page.contains(part), "no `{part}` in the page");
    }
    crate::markup::check(&page).unwrap();
}

#[test]
fn requests_that_pubmark_made_late_are_in_every_output() {
    let mut record = asked();
    record.requests.as_mut().unwrap().outcomes.late_by_generator = 137;
    let row = "of the late, by pubmark's own delay";
    assert!(terminal::summary(&record, &PLAIN).contains("late 400 (137 by pubmark)"));
    assert!(markdown::run(&record).contains(&format!("| {row} | 137 | 1.37 % |")), "{}", markdown::run(&record));
    assert!((csv::TABLES[0].render)(&record).contains("requests,late_by_generator,requests,137"));
    let page = html::run(&record);
    assert!(page.contains(row) && page.contains("137"));
    crate::markup::check(&page).unwrap();
    let without = asked();
    assert!(!html::run(&without).contains(row) && !terminal::summary(&without, &PLAIN).contains("by pubmark"));
}

#[test]
fn requests_that_were_dropped_because_pubmark_was_late_are_in_every_output() {
    let mut record = asked();
    let requests = record.requests.as_mut().unwrap();
    requests.responses.dropped_by_generator = 99;
    // So that the terminal has room for all outcomes.
    (requests.outcomes.duplicated, requests.outcomes.misdirected, requests.outcomes.after_refusal) = (0, 0, 0);
    let row = "of the dropped, perhaps because pubmark was late";
    let terminal_text = terminal::summary(&record, &PLAIN);
    assert!(terminal_text.contains("dropped 500 at responders (99 perhaps by pubmark)"), "{terminal_text}");
    assert!(markdown::run(&record).contains(&format!("| {row} | 99 | 1 % |")), "{}", markdown::run(&record));
    assert!((csv::TABLES[0].render)(&record).contains("requests,responder_dropped_by_generator,requests,99"));
    let page = html::run(&record);
    assert!(page.contains(row));
    crate::markup::check(&page).unwrap();
    let without = asked();
    assert!(!html::run(&without).contains(row) && !terminal::summary(&without, &PLAIN).contains("by pubmark"));
}

#[test]
fn a_run_without_requests_does_not_speak_of_them() {
    let record = fixtures::factory();
    assert!(!terminal::summary(&record, &PLAIN).contains("requests"));
    assert!(!markdown::run(&record).contains("Requests"));
    assert!(!html::run(&record).contains("Requests"));
    assert!(!(csv::TABLES[0].render)(&record).contains("round_trip"));
}
