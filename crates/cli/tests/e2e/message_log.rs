//! The message log beside a record: its counts are those of the record, wherever clients run, and Parquet, CSV and
//! NDJSON have the same content. The complete recount by another program is a test of `documents`.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, count};
use crate::support::place::{PUBMARK, Place};
use crate::support::schema;

const WORKLOAD: &str = "\
name: logged
devices:
  - {name: sensor, count: 20, every: 20ms, payload: 60B, topic: 'logged/{index}', qos: 1}
  - {name: unheard, count: 1, every: 50ms, payload: 60B, topic: 'un,\"heard\"/{index}'}
  - {name: leaving, count: 5, every: 50ms, payload: 60B, topic: 'logged/leaving/{index}', churn: {disconnect: 20% every 200ms, reconnect: 50% every 200ms}}
subscribers:
  - {name: all, count: 2, filters: ['logged/#'], qos: 1}
  - {name: twice, filters: ['logged/#', 'logged/1'], qos: 1}
";

const TIMES: [&str; 4] = ["--duration", "2s", "--warmup", "1s"];

/// The rows of a log as NDJSON.
pub fn rows(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("messages.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails unless the rows add up to the record's counts, and their times are those of one clock.
fn assert_agrees(rows: &[Value], record: &Value) {
    assert_counts_agree(rows, record);
    for row in rows.iter().filter(|row| row["outcome"] == "delivered") {
        let of = |name: &str| row[name].as_i64().unwrap_or_else(|| panic!("no {name} in {row}"));
        assert_eq!(of("latency_upper_ns"), of("received_ns") - of("due_ns"), "{row}");
        assert!(of("latency_lower_ns") <= of("latency_upper_ns") && of("ready_ns") >= of("due_ns"), "{row}");
        assert!(of("write_start_ns") >= of("due_ns") / 1_000 * 1_000 - 1_000, "{row}");
    }
}

/// Fails unless the rows add up to the record's counts.
pub fn assert_counts_agree(rows: &[Value], record: &Value) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row["outcome"].as_str().unwrap()).or_default() += 1);
    for name in ["delivered", "lost", "unknown", "absent", "duplicated", "overlap", "skipped_planned", "unsent"] {
        assert_count_eq!(counts.get(name).copied().unwrap_or(0), count(record, name), "{name}: {counts:?}");
    }
    let handed: HashSet<(u64, u64)> =
        rows.iter().filter_map(|row| Some((row["publisher"].as_u64()?, row["sequence"].as_u64()?))).collect();
    let unsent = rows.iter().filter(|row| row["sequence"].is_null()).count() as u64;
    assert_count_eq!(handed.len() as u64 + unsent, count(record, "offered"), "offered");
}

/// Temporary files may be in memory, and too small.
#[test]
fn the_rows_of_an_experiment_are_beside_its_results_while_it_goes_on() {
    let place = Place::new();
    let metrics = "metrics:\n  - {name: count, command: [echo, '{\"count\": 1}']}\n";
    place.write("logged.yaml", format!("{WORKLOAD}{metrics}"));
    let options = ["--systems", "builtin", "--repeat", "1", "--duration", "2s", "--warmup", "0s", "--wait", "0s"];
    let mut call = place.start_by(Command::new(PUBMARK), &[&["compare", "./logged.yaml"][..], &options].concat());
    let has_rows = |folder: PathBuf| {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(".pubmark-messages-"))
    };
    let (mut beside, mut elsewhere) = (false, false);
    while !call.has_ended() {
        beside |= has_rows(place.path().join("runs"));
        elsewhere |= has_rows(place.temporary());
        std::thread::sleep(Duration::from_millis(1));
    }
    let called = call.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(beside && !elsewhere, "beside {beside}, among temporary files {elsewhere}: {called:?}");
    assert!(!has_rows(place.path().join("runs")), "they are still there");
}

#[test]
fn a_log_has_a_row_for_each_message_and_each_subscriber() {
    let place = Place::new();
    place.write("logged.yaml", WORKLOAD);
    let record = place.record(&[&["logged.yaml", "--message-log=ndjson"][..], &TIMES].concat());
    assert_closed(&record);
    schema::assert_agrees(&record);
    let folder = place.runs().remove(0).0;
    let rows = rows(&folder);
    assert_agrees(&rows, &record);
    let unheard: Vec<&Value> = rows.iter().filter(|row| row["topic"] == "un,\"heard\"/0").collect();
    assert!(unheard.len() > 20, "{} messages that nobody subscribes to", unheard.len());
    assert!(unheard.iter().all(|row| row["outcome"] == "no_subscriber" && row["subscriber"].is_null()));
    assert_eq!(record["message_log"]["file"], "messages.ndjson");
    assert_eq!(record["message_log"]["missing"], 0);
    let spec = std::fs::read_to_string(folder.join("run.yaml")).unwrap();
    assert!(spec.contains("message_log: ndjson"), "{spec}");
    // The files of the run's processes are removed.
    let left: Vec<_> =
        std::fs::read_dir(folder.parent().unwrap()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.iter().all(|path| !path.to_string_lossy().contains(".pubmark-messages")), "{left:?}");

    assert_clients_agree(&folder, &record, (26, 3));
}

/// Fails unless `by_client.csv` has this number of publishers and of subscribers, and their parts add up to the total, on
/// both sides.
pub fn assert_clients_agree(folder: &Path, record: &Value, clients: (usize, usize)) {
    let table = std::fs::read_to_string(folder.join("csv/by_client.csv")).unwrap();
    let lines: Vec<&str> = table.lines().skip(1).collect();
    let of_role = |role: &str| lines.iter().filter(|line| line.starts_with(role)).copied().collect::<Vec<_>>();
    assert_eq!((of_role("publisher,").len(), of_role("subscriber,").len()), clients, "{table}");
    for role in ["publisher,", "subscriber,"] {
        let delivered: u64 = of_role(role).iter().map(|line| cell(line, 7)).sum();
        assert_count_eq!(delivered, count(record, "delivered"), "by {role}: {table}");
    }
    let offered: u64 = of_role("publisher,").iter().map(|line| cell(line, 4)).sum();
    assert_count_eq!(offered, count(record, "offered"), "{table}");
}

/// A number in a line of `by_client.csv`.
fn cell(line: &str, place: usize) -> u64 {
    let cell = line.split(',').nth(place).unwrap();
    cell.parse().unwrap_or_else(|error| panic!("{error}: cell {place} of {line}"))
}

#[test]
fn a_log_is_whole_with_worker_processes() {
    let place = Place::new();
    place.write("logged.yaml", WORKLOAD);
    for (out, options) in [("nodes", &["--local-nodes", "2"][..]), ("apart", &["--isolate", "sensor", "--shards", "2"])]
    {
        let call = [&["logged.yaml", "--message-log=ndjson", "--out", out][..], &TIMES, options].concat();
        let called = place.call(&[&["run", "--json"][..], &call].concat());
        assert!([0, 5].contains(&called.code()), "{called:?}");
        let folder = std::fs::read_dir(place.path().join(out)).unwrap().flatten().map(|entry| entry.path());
        let folder = folder.filter(|path| path.join("messages.ndjson").is_file()).min().unwrap();
        let rows = rows(&folder);
        assert_agrees(&rows, &called.json());
        if out == "nodes" {
            let nodes: HashSet<u64> = rows.iter().map(|row| row["node"].as_u64().unwrap()).collect();
            assert_eq!(nodes, HashSet::from([1, 2]));
        }
    }
}

#[test]
fn csv_has_the_same_rows_and_parquet_the_same_sizes() {
    let place = Place::new();
    place.write("logged.yaml", WORKLOAD);
    let record = place.record(&[&["logged.yaml", "--message-log=csv"][..], &TIMES].concat());
    let folder = place.runs().remove(0).0;
    let csv = std::fs::read_to_string(folder.join("messages.csv")).unwrap();
    let delivered = csv.lines().filter(|line| line.ends_with(",delivered,false") || line.ends_with(",delivered,true"));
    assert_count_eq!(delivered.count() as u64, count(&record, "delivered"));
    assert!(csv.starts_with("publisher,type,node,topic,sequence,"), "{}", csv.lines().next().unwrap());
    assert!(csv.contains(r#","un,""heard""/0","#), "a topic with commas and quotes (RFC 4180)");
    place.record(&[&["logged.yaml", "--message-log"][..], &TIMES].concat());
    let parquet = std::fs::read(place.runs().last().unwrap().0.join("messages.parquet")).unwrap();
    // Both ends of a Parquet file.
    assert_eq!((&parquet[..4], &parquet[parquet.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
}

#[test]
fn an_impossible_message_log_is_refused_before_the_run() {
    let place = Place::new();
    let called = place.call(&["run", "hello", "--dry-run", "--message-log=xml"]);
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(format!("{called:?}").contains("`parquet` or `csv` or `ndjson`, not `xml`"), "{called:?}");
}
