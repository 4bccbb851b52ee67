//! Client libraries that open their sockets themselves, behind links: their clients run in worker processes inside the
//! links' networks. The results are those of a run without workers; a run ends if a worker ends; nothing is left.

use std::time::Duration;

use pubmark_systems::{Definition, install};
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use super::links::can_be_made;
use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::place::Place;
use crate::support::processes::{signal, wait_for};
use crate::support::schema;

/// Devices and subscribers behind separate links, and a group without a link.
const WORKLOAD: &str = "\
name: linked
links:
  far: {delay: 20ms}
  near: {delay: 5ms}
devices:
  - {name: sensor, count: 10, every: 100ms, payload: 100B, topic: 'linked/far/{index}', qos: 0, link: far}
  - {name: bench, count: 2, every: 100ms, payload: 100B, topic: 'linked/here/{index}', qos: 0}
subscribers:
  - {name: reader, filters: ['linked/#'], qos: 0, link: near}
";

const TIMES: [&str; 4] = ["--duration", "3s", "--warmup", "1s"];
const LIMIT: Duration = Duration::from_secs(15);

/// A folder with the workload, if links can be created.
fn linked_place() -> Option<Place> {
    can_be_made().then(|| {
        let place = Place::new();
        place.write("linked.yaml", WORKLOAD);
        place
    })
}

/// As above, if a router is installed.
fn place() -> Option<Place> {
    if install::found(&Definition::load("zenoh").unwrap()).is_none() {
        pubmark_testing::skip("zenoh is not installed (`pubmark install zenoh`)");
        return None;
    }
    linked_place()
}

/// Process numbers of the workers of a run.
fn workers(run: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // `pid (name) state parent …`; the name may contain any character.
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            parent == Some(run) && line.split(|byte| *byte == 0).nth(1) == Some(b"worker")
        })
        .collect()
}

fn by_type<'a>(record: &'a Value, name: &str) -> &'a Value {
    let rows = record["tables"]["by_type"].as_array().expect("rows by type");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

#[test]
fn a_library_is_behind_its_links_and_its_books_are_those_of_a_run_without() {
    let Some(place) = place() else { return };
    let run = ["linked.yaml", "--system", "zenoh", "--seed", "7"];
    let linked = place.record_with_processors(&[&run[..], &TIMES].concat());
    let plain = place.record_with_processors(&[&run[..], &TIMES, &["--link", "none"]].concat());
    for record in [&linked, &plain] {
        assert_closed(record);
        schema::assert_agrees(record);
        assert_delivered_once(record);
    }
    for name in ["offered", "skipped_planned", "sent", "expected", "delivered"] {
        assert_count_eq!(count(&linked, name), count(&plain, name), "{name}");
    }
    assert_behind_links(&linked);
    for name in ["sensor", "bench"] {
        let median_us = by_type(&plain, name)["latency"]["upper"]["p50_us"].as_f64().expect("a median");
        assert!(median_us < 20_000.0, "{name} without links: {median_us}");
    }
}

/// If there is nothing between two links, the parts of each message's latency add up to the total.
fn assert_parts_add_up(record: &Value) {
    let rows = record["latency"]["breakdown"]["rows"].as_array().expect("rows of the breakdown");
    assert!(rows.iter().any(|row| row["class"] == "sensor"), "{rows:?}");
    for row in rows {
        let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"));
        assert_count!(number("complete") > 0 && number("consistent") == number("complete"), "{row}");
    }
}

/// Messages of sensors crossed both links, those of other devices only the readers' link.
fn assert_behind_links(record: &Value) {
    for (name, least_us) in [("sensor", 25_000.0), ("bench", 5_000.0)] {
        let median_us = by_type(record, name)["latency"]["upper"]["p50_us"].as_f64().expect("a median");
        // A busy machine is slow; the packets show that no link was crossed twice.
        assert!((least_us..least_us + 60_000.0).contains(&median_us), "{name}: {median_us}");
    }
    for group in record["conditions"]["links"]["groups"].as_array().expect("links") {
        let entered = |way: &str| group[way]["traffic"]["entered_packets"].as_u64().expect("a count");
        // 300 or 360 messages, of which few share a packet; most of the others are acknowledgements.
        let both = entered("up") + entered("down");
        assert!((200..1_500).contains(&both), "{group}");
    }
    assert_eq!(record["conditions"]["links"]["queue_drops"], 0);
}

#[test]
fn clients_without_a_broker_meet_across_links() {
    let Some(place) = linked_place() else { return };
    for system in [&["zeromq-peers"][..], &["zenoh-peers"], &["dds"], &["dds", "--client", "rustdds"]] {
        let record = place.record(&[&["linked.yaml", "--system"], system, &TIMES].concat());
        assert_closed(&record);
        schema::assert_agrees(&record);
        assert_delivered_once(&record);
        assert_count_eq!(count(&record, "delivered"), 360, "{system:?}");
        assert_behind_links(&record);
        assert_parts_add_up(&record);
    }
}

#[test]
fn subscribers_who_are_to_be_met_at_one_address_are_behind_one_link() {
    let place = Place::new();
    place.write("linked.yaml", format!("{WORKLOAD}  - {{name: other, filters: ['linked/#'], qos: 0, link: far}}\n"));
    let called = place.call(&["run", "linked.yaml", "--system", "zenoh-peers"]);
    let text = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(called.code() == 2 && text.contains("these are behind several links"), "{called:?}");
}

#[test]
fn a_worker_that_is_killed_ends_the_run_and_says_so() {
    let Some(place) = place() else { return };
    let options = ["--system", "zenoh", "--quiet", "--duration", "120s", "--json"];
    let call = place.start_with_events(&[&["run", "linked.yaml"], &options[..]].concat());
    wait_for("two workers", LIMIT, || workers(call.pid()).len() == 2);
    place.wait_until_measured(1.0);
    signal(workers(call.pid())[0], libc::SIGKILL);
    let called = call.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    assert!(called.took < Duration::from_secs(20), "{:?}", called.took);
    let record = called.json();
    schema::assert_agrees(&record);
    let lost = record["tables"]["lost_workers"].as_array().expect("a lost worker");
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0]["reason"].as_str().unwrap().contains("it has ended (signal: 9"), "{lost:?}");
}

#[test]
fn workers_are_gone_with_the_run_that_started_them() {
    let Some(place) = place() else { return };
    for how in [libc::SIGKILL, libc::SIGINT] {
        let call = place.start(&["run", "linked.yaml", "--system", "zenoh", "--quiet", "--duration", "120s"]);
        wait_for("two workers", LIMIT, || workers(call.pid()).len() == 2);
        let started = workers(call.pid());
        call.signal(how);
        let called = call.wait();
        assert!(called.took < Duration::from_secs(5), "{called:?}");
        let gone = |pid: &u32| !std::path::Path::new(&format!("/proc/{pid}")).exists();
        wait_for("the end of the workers", Duration::from_secs(3), || started.iter().all(gone));
    }
}

#[test]
fn a_worker_without_a_parent_reports_it_and_ends() {
    let called = Place::new().call(&["worker"]);
    assert_ne!(called.code(), 0, "{called:?}");
}
