//! Subscribers that filter messages by content: exact counts of matched and filtered messages, and of those that should
//! have matched.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::support::books::{assert_closed, check, count};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::schema;

/// Four devices, ten messages each, numbered from 1.
const MESSAGES: u64 = 40;

fn workload(header: &str) -> String {
    format!(
        "name: content
defaults: {{header: {header}}}
devices:
  - name: test/sensor
    count: 4
    every: 100ms
    qos: 1
    topic: \"content/{{device}}\"
    body:
      json: '{{\"n\": {{{{counter}}}}, \"room\": \"{{{{enum hall lab}}}}\", \"alarm\": {{{{bool 0.3}}}}}}'
subscribers:
  - {{name: first, count: 2, filters: [\"content/#\"], qos: 1, where: payload.n <= 3}}
  - {{name: hall, filters: [\"content/#\"], qos: 1, where: 'payload.room == \"hall\" && !payload.alarm'}}
  - {{name: rest, filters: [\"content/#\"], qos: 1, where: 'payload.room != \"hall\" || payload.alarm'}}
  - {{name: all, filters: [\"content/#\"], qos: 1}}
"
    )
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// The row of a group, which must be consistent, and consistent with its publishers.
fn row(record: &Value, group: &str, arrived: u64) -> Value {
    let rows = record["delivery"]["content"].as_array().unwrap();
    let row = rows.iter().find(|row| row["group"] == group).unwrap();
    assert_count_eq!(number(row, "matched") + number(row, "filtered"), arrived, "{row}");
    assert_count_eq!(number(row, "arrived"), arrived, "{row}");
    assert_count_eq!(number(row, "should_match"), number(row, "matched"), "{row}");
    assert_count_eq!((number(row, "unreadable"), number(row, "missed")), (0, 0), "{row}");
    let samples = row["latency"]["upper"]["count"].as_u64().unwrap_or(0);
    assert_count_eq!(samples, number(row, "matched"), "{row}");
    row.clone()
}

/// A run of a second on the built-in broker, with known random draws.
const SHORT: [&str; 9] = ["content.yaml", "--duration", "1s", "--warmup", "0s", "--seed", "5", "--system", "builtin"];

fn run(options: &[&str], header: &str) -> Value {
    let place = Place::new();
    place.write("content.yaml", workload(header));
    let record = place.record(&[&SHORT[..], &["--protocol", "mqtt5"], options].concat());
    assert_closed(&record);
    schema::assert_agrees(&record);
    record
}

#[test]
fn what_matches_is_counted_exactly_and_the_message_accounting_stays_as_it_is() {
    for (header, options) in [("payload", &[][..]), ("user-property", &[]), ("payload", &["--isolate", "all"])] {
        let record = run(options, header);
        // Groups of 2, 1 and 1 subscribers, and one without a filter.
        assert_count_eq!(count(&record, "delivered"), MESSAGES * 5, "{}", record["delivery"]);
        let first = row(&record, "first", 2 * MESSAGES);
        assert_count_eq!(number(&first, "matched"), 2 * 4 * 3, "each device's first three, twice: {first}");
        let (hall, rest) = (row(&record, "hall", MESSAGES), row(&record, "rest", MESSAGES));
        assert_count_eq!(number(&hall, "matched") + number(&rest, "matched"), MESSAGES, "{hall} and {rest}");
        assert_count!((1..MESSAGES).contains(&number(&hall, "matched")), "{hall}");
        let wasted = number(&first, "filtered_bytes");
        // A header of 24 B or none, and a document of 38 to 43 B.
        let least = if header == "payload" { 62 } else { 38 };
        let most = least + 6;
        let filtered = number(&first, "filtered");
        assert!((filtered * least..=filtered * most).contains(&wasted), "{wasted} B of {filtered}");
        assert_eq!(record["delivery"]["content"].as_array().map(Vec::len), Some(3), "`all` has no predicate");
        assert_eq!(check(&record, "V30"), "valid");
    }
}

#[test]
fn a_shared_group_counts_each_message_once() {
    let Some(broker) = Mosquitto::start("") else { return };
    let pool = "  - {name: pool, count: 3, shared: pool, filters: [\"content/#\"], qos: 1, where: payload.n > 9}\n";
    let place = Place::new();
    let text = workload("payload");
    let others: Vec<&str> = text.lines().filter(|line| !line.contains("filters:")).collect();
    place.write("content.yaml", others.join("\n") + "\n" + pool);
    let endpoint = broker.endpoint();
    let times = ["--duration", "1s", "--warmup", "0s", "--seed", "5"];
    let record =
        place.record(&[&["content.yaml", "--endpoint", &endpoint, "--protocol", "mqtt5"], &times[..]].concat());
    assert_closed(&record);
    assert_count_eq!(count(&record, "delivered"), MESSAGES, "{}", record["delivery"]);
    let pool = row(&record, "pool", MESSAGES);
    assert_count_eq!(number(&pool, "matched"), 4, "each device's tenth, once: {pool}");
    assert_eq!(check(&record, "V30"), "valid");
}

#[test]
fn who_asks_nothing_has_no_row_and_no_check() {
    let place = Place::new();
    let text = workload("payload");
    let plain: Vec<&str> = text.lines().filter(|line| !line.contains("where:")).collect();
    place.write("content.yaml", plain.join("\n"));
    let record =
        place.record(&["content.yaml", "--duration", "1s", "--warmup", "0s", "--seed", "5", "--system", "builtin"]);
    assert_count_eq!(count(&record, "delivered"), MESSAGES);
    assert!(record["delivery"].get("content").is_none(), "{}", record["delivery"]);
    let checks = record["verdict"]["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["code"] != "V30"));
}

#[test]
fn the_report_says_what_was_wasted() {
    let place = Place::new();
    place.write("content.yaml", workload("payload"));
    let called = place.call(&[&["run"], &SHORT[..], &["-v"]].concat());
    // On a busy machine the run may be invalid; the counts are the same.
    assert!(matches!(called.code(), 0 | 5), "{}", called.errors);
    assert!(called.printed.contains("first: 24 of 80 matched, 56 filtered at the client"), "{}", called.printed);
    let folder = &place.runs()[0].0;
    let table = std::fs::read_to_string(folder.join("csv/content.csv")).unwrap();
    assert!(table.lines().any(|line| line.contains(",first,payload.n <= 3,80,24,24,56,")), "{table}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Filtered by content") && page.contains("payload.n &lt;= 3"), "the page has the section");
}

#[test]
fn a_filter_at_the_broker_that_cannot_be_is_refused_before_the_run() {
    let place = Place::new();
    let at_broker = |filter: &str| {
        workload("payload").replace("where: payload.n <= 3", &format!("where: {{filter: '{filter}', at: broker}}"))
    };
    for (filter, options, words) in [
        (
            "payload.n <= 3",
            ["--system", "builtin"],
            "mqtt5 has no content filters (amqp10 has): `where: {filter: …, at: client}`",
        ),
        ("payload.room < \"lab\"", ["--system", "builtin"], "a selector has no word for an order of"),
    ] {
        place.write("content.yaml", at_broker(filter));
        let called = place.call(&[&["run", "content.yaml", "--duration", "1s"], &options[..]].concat());
        assert_eq!(called.code(), 2, "{}", called.errors);
        let errors = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(errors.contains(words) && errors.contains("at: client"), "{errors}");
        assert!(place.runs().is_empty());
    }
    place.write("content.yaml", at_broker("payload.n <= 3").replace("at: broker", "at: client"));
    let record = place.record(&SHORT);
    assert_count_eq!(number(&row(&record, "first", 2 * MESSAGES), "matched"), 2 * 4 * 3);
}

#[test]
fn a_wrong_expression_ends_before_the_run() {
    let place = Place::new();
    place.write("content.yaml", workload("payload").replace("payload.n <= 3", "payload.m <= 3"));
    let called = place.call(&["run", "content.yaml", "--duration", "1s"]);
    assert_eq!(called.code(), 2, "{}", called.errors);
    assert!(called.errors.contains("messages of `test/sensor` have no field `m` here"), "{}", called.errors);
    assert!(called.errors.contains("`alarm`, `n`, `room`"), "{}", called.errors);
    assert!(place.runs().is_empty());
}
