//! Checks that the message accounting of a record adds up, in total and in each of its parts.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

/// Counts of an accounting table that rows add up to.
const SUMMED: [&str; 18] = [
    "offered",
    "sent",
    "skipped_planned",
    "slowed",
    "skipped_disconnected",
    "refused",
    "unsent",
    "expected",
    "delivered",
    "lost",
    "unknown",
    "late",
    "duplicated",
    "out_of_order",
    "overlap",
    "absent",
    "prevented",
    "delivered_after_refusal",
];

/// A count of the run's message accounting.
pub fn count(record: &Value, name: &str) -> u64 {
    number(&record["delivery"], name)
}

/// A count of the run's connections.
pub fn connections(record: &Value, name: &str) -> u64 {
    number(&record["connections"], name)
}

fn number(table: &Value, name: &str) -> u64 {
    table[name].as_u64().unwrap_or_else(|| panic!("no count `{name}` in {table}"))
}

/// The result of a rule of the verdict.
pub fn check(record: &Value, code: &str) -> String {
    let checks = record["verdict"]["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["code"] == code).unwrap_or_else(|| panic!("no {code}"));
    found["status"].as_str().unwrap().to_owned()
}

/// Whether a cause with these words is among those of the connections.
pub fn names_cause(record: &Value, words: &str) -> bool {
    let causes = record["connections"]["causes"].as_array().unwrap();
    causes.iter().any(|cause| cause["cause"].as_str().unwrap().contains(words) && cause["count"].as_u64().unwrap() > 0)
}

/// Whether there is a deviation with this name.
pub fn names_deviation(record: &Value, name: &str) -> bool {
    record["settings"]["deviations"].as_array().unwrap().iter().any(|deviation| deviation["name"] == name)
}

/// Both identities of one accounting table.
fn assert_identities(books: &Value, of: &str) {
    let sum = |names: &[&str]| names.iter().map(|name| number(books, name)).sum::<u64>();
    let left_us = sum(&["sent", "skipped_planned", "skipped_disconnected", "refused", "unsent"]);
    assert_count_eq!(number(books, "offered"), left_us, "sending side of {of}: {books}");
    assert_count_eq!(
        number(books, "expected"),
        sum(&["delivered", "lost", "unknown"]),
        "receiving side of {of}: {books}"
    );
    let planned = number(books, "skipped_planned");
    assert_count!(number(books, "slowed") <= planned, "slowed in {of}: {books}");
    assert_count!(number(books, "late") <= number(books, "delivered"), "late in {of}: {books}");
    assert_count!(number(books, "out_of_order") <= number(books, "delivered"), "order in {of}: {books}");
}

/// Checks the accounting of a run: the total, each type, the sums over types and pairs, the series, the samples of each
/// time.
pub fn assert_closed(record: &Value) {
    let whole = &record["delivery"];
    assert!(number(whole, "offered") > 0, "nothing was offered: {whole}");
    assert_eq!(whole["approximate"], false);
    assert_identities(whole, "the run");
    assert_count_eq!(number(whole, "never_sent"), 0, "a publisher that sent what it has not: {whole}");
    assert_count_eq!(number(&whole["due_times"], "wrong"), 0, "another due time than the schedule's: {whole}");
    let types = record["tables"]["by_type"].as_array().unwrap();
    for row in types {
        assert_identities(&row["delivery"], &row["name"].to_string());
    }
    for name in SUMMED {
        let sum: u64 = types.iter().map(|row| number(&row["delivery"], name)).sum();
        assert_count_eq!(sum, number(whole, name), "sum of {name} over types");
    }
    for name in ["expected", "delivered", "lost"] {
        let sum: u64 = record["tables"]["by_pair"].as_array().unwrap().iter().map(|row| number(row, name)).sum();
        assert_count_eq!(sum, number(whole, name), "sum of {name} over pairs");
    }
    assert_series(record);
    assert_samples(record);
    assert_filtered_out(record);
    assert_corrupt(record);
}

/// The series: bins without gaps; what is due in the window is what was offered; without a warm-up, deliveries too.
fn assert_series(record: &Value) {
    let rows = record["tables"]["series"].as_array().unwrap();
    let seconds = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for pair in rows.windows(2) {
        let end = seconds(&pair[0], "t_s") + seconds(&pair[0], "width_s");
        assert!((end - seconds(&pair[1], "t_s")).abs() < 1e-6, "a gap in the series: {pair:?}");
    }
    let sum =
        |name: &str| rows.iter().filter(|row| seconds(row, "t_s") >= 0.0).map(|row| number(row, name)).sum::<u64>();
    match record["delivery"]["reactions"].is_null() || record["settings"]["warmup_s"] == 0.0 {
        true => assert_count_eq!(sum("offered"), count(record, "offered"), "offered over time"),
        // Messages in the window that follow from one of the warm-up are in the series and in no accounting table.
        false => assert!(sum("offered") >= count(record, "offered"), "offered over time: {}", record["delivery"]),
    }
    if record["settings"]["warmup_s"] == 0.0 && count(record, "refused") == 0 {
        assert_count_eq!(sum("delivered"), count(record, "delivered"), "delivered over time");
        assert_count!(sum("sent") <= count(record, "sent"), "sent over time: more than {}", record["delivery"]);
    }
}

/// The number that the system's filters removed is the sum over the groups that have a filter there; `null` without
/// such a group.
fn assert_filtered_out(record: &Value) {
    let groups = record["delivery"]["content"].as_array().map_or(&[][..], Vec::as_slice);
    let at_broker =
        || groups.iter().filter(|group| group["at"] == "broker").map(|group| group["filtered_out"].as_u64());
    // A group whose number is unknown has `null`.
    if at_broker().all(|counted| counted.is_some()) {
        let counted: u64 = at_broker().flatten().sum();
        assert_count_eq!(count(record, "filtered_out"), counted, "filtered out over groups");
    }
}

/// The number of bodies that could not be reversed is the sum over the steps at which that failed.
fn assert_corrupt(record: &Value) {
    let steps = record["cost"]["transform"].as_array().map_or(&[][..], Vec::as_slice);
    let failed: u64 = steps.iter().map(|step| number(step, "failed")).sum();
    assert_count_eq!(count(record, "corrupt"), failed, "corrupt over steps");
}

/// Every measured message has a sample of each time that it has.
fn assert_samples(record: &Value) {
    let samples = |distribution: &Value| distribution["count"].as_u64().unwrap_or(0);
    let latencies = samples(&record["latency"]["total"]["upper"]);
    assert_count_eq!(
        samples(&record["latency"]["scheduler_lag"]),
        count(record, "offered"),
        "a lag for every message offered"
    );
    assert_count_eq!(
        latencies,
        count(record, "delivered") + count(record, "delivered_after_refusal") + count(record, "unmatched"),
        "a latency for every message delivered"
    );
    let without = record["latency"]["without_write_start"].as_u64().unwrap();
    assert_count_eq!(
        samples(&record["latency"]["service"]["upper"]) + without,
        latencies,
        "a service latency where there is one"
    );
    let types = record["tables"]["by_type"].as_array().unwrap();
    let by_type: u64 = types.iter().map(|row| row["latency"]["upper"]["count"].as_u64().unwrap_or(0)).sum();
    assert_count_eq!(by_type, latencies, "latencies over types");
}

/// Every expected message arrived once.
pub fn assert_delivered_once(record: &Value) {
    for name in ["lost", "unknown", "duplicated", "foreign", "overlap", "absent", "refused", "unsent"] {
        assert_count_eq!(count(record, name), 0, "{name}: {}", record["delivery"]);
    }
    assert_count_eq!(count(record, "skipped_disconnected"), 0, "{}", record["connections"]);
    assert!(count(record, "delivered") > 0, "{}", record["delivery"]);
}
