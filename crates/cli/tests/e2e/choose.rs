//! Choosing, end to end: the exit code of each state, the files, an interruption. The ranking itself is tested by
//! `bars`, which have the machine to themselves.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::support::place::{Called, Place};
use crate::support::processes::wait_for;
use crate::support::schema;

/// Runs as short as they can be.
const SHORT: [&str; 10] =
    ["--duration", "1s", "--warmup", "0s", "--drain", "2s", "--no-headroom", "--json", "--within", "40s"];
/// Longest wait for an event.
const LIMIT: Duration = Duration::from_secs(40);

/// A system that ends as soon as it is started.
const ENDS_AT_ONCE: &str = "\
name: ends
title: Ends at once
description: a test's
ranked: true
listeners:
  mqtt: {scheme: mqtt}
protocols:
  mqtt5: {listener: mqtt, highest_qos: 2}
back_ends:
  process:
    program: \"false\"
    install: it is everywhere
    arguments: []
profiles:
  default: {description: as it comes}
";

fn choose(place: &Place, arguments: &[&str]) -> Called {
    place.call(&[&["choose", "--workload", "hello"][..], arguments, &SHORT].concat())
}

/// The printed record, which agrees with its schema and is equal to the file.
fn choice(place: &Place, called: &Called) -> Value {
    let printed = called.json();
    schema::assert_choice_agrees(&printed);
    assert_eq!(written(place), printed);
    printed
}

fn folder(place: &Place) -> PathBuf {
    std::fs::canonicalize(place.path().join("runs/latest")).unwrap()
}

fn written(place: &Place) -> Value {
    let text = std::fs::read_to_string(folder(place).join("choice.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn state(choice: &Value) -> &str {
    choice["candidates"][0]["state"]["state"].as_str().unwrap()
}

#[test]
fn a_candidate_that_lacks_a_need_is_excluded_without_a_run() {
    let place = Place::new();
    let called = choose(&place, &["--slo", "loss=0", "--systems", "builtin", "--shared-subscriptions"]);
    assert_eq!(called.code(), 3, "{called:?}");
    let choice = choice(&place, &called);
    assert_eq!(state(&choice), "excluded");
    assert!(choice["candidates"][0]["runs"].as_array().unwrap().is_empty());
    assert!(!folder(&place).join("runs").exists());
}

#[test]
fn a_system_that_ends_at_once_is_broken() {
    let place = Place::new();
    place.write("ends.yaml", ENDS_AT_ONCE);
    let called = choose(&place, &["--slo", "loss=0", "--systems", "./ends.yaml"]);
    assert_eq!(called.code(), 6, "{called:?}");
    let choice = choice(&place, &called);
    assert_eq!(state(&choice), "broken");
    assert_eq!(choice["candidates"][0]["runs"].as_array().unwrap().len(), 2, "a third start would tell nothing new");
    assert!(!choice["candidates"][0]["state"]["reason"].as_str().unwrap().is_empty());
}

#[test]
fn the_code_is_about_the_candidate_that_has_to_qualify() {
    let place = Place::new();
    let limits = ["--slo", "loss=0,max<1h", "--systems", "builtin,builtin"];
    let called = choose(&place, &[&limits[..], &["--require", "builtin (2)", "--undecided", "fail"]].concat());
    let choice = choice(&place, &called);
    let other = &choice["candidates"][1];
    // On a busy machine it is possible that no run counts; then it is undecided, and never failed.
    let expected = match other["state"]["state"].as_str().unwrap() {
        "qualifies" => 0,
        "undecided" => 3,
        wrong => panic!("{wrong}: {other}"),
    };
    assert_eq!(called.code(), expected, "{called:?}");
    assert!(choice["recommendation"]["candidate"].is_null(), "the built-in broker is never recommended");
    for run in other["runs"].as_array().unwrap() {
        let report = folder(&place).join(run["folder"].as_str().unwrap()).join("report.html");
        assert!(report.is_file(), "{}", report.display());
    }
    for file in ["choice.html", "choice.md"] {
        let text = std::fs::read_to_string(folder(&place).join(file)).unwrap();
        assert!(text.contains("builtin (2)") && text.contains("Not tested"), "{file}");
    }
    let file = folder(&place).join("requirements.yaml");
    let again = place.call(&["choose", file.to_str().unwrap(), "--dry-run"]);
    assert_eq!(again.code(), 0, "{again:?}");
    is_shown_again(&place, &choice);
}

/// The table, the report and the list have the same choice.
fn is_shown_again(place: &Place, choice: &Value) {
    let table = place.call(&["table", "runs/latest", "--format", "ndjson"]);
    assert_eq!(table.code(), 0, "{table:?}");
    let rows: Vec<Value> = table.printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in choice["candidates"].as_array().unwrap().iter().flat_map(|one| one["runs"].as_array().unwrap()) {
        let is_its = |row: &&Value| row["stage"] == run["phase"] && row["run"] == run["number"];
        let figures: Vec<&Value> = rows.iter().filter(is_its).map(|row| &row["figure"]).collect();
        // An objective that was judged, and a figure that only the record of the run has.
        assert!(figures.contains(&&"max".into()) && figures.contains(&&"delivered rate".into()), "{run}: {figures:?}");
    }
    let mixed = place.call(&["table", "runs/latest", folder(place).join("runs").to_str().unwrap()]);
    assert!(mixed.code() == 2 && mixed.errors.contains("other columns"), "{mixed:?}");
    let page = folder(place).join("choice.html");
    let before = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    let again = place.call(&["report", "runs/latest"]);
    assert!(again.code() == 0 && again.printed.contains("must hold"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), before);
    let list = place.call(&["runs", "kind=choice"]);
    assert!(list.printed.contains("choice: hello within stays up,loss=0,max<1h, 2 candidates"), "{list:?}");
}

/// Positions and folders of the runs that the journal says came to their end.
fn ended(place: &Place) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(place.path().join("runs")).into_iter().flatten().flatten();
    // Not the link to the newest.
    let runs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let journals = runs.filter_map(|run| std::fs::read_to_string(run.path().join("journal.jsonl")).ok());
    let lines: Vec<String> = journals.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ends = events.filter(|event| ["counted", "failed"].contains(&event["event"].as_str().unwrap()));
    ends.map(|event| (event["cell"].as_str().unwrap().to_owned(), event["repetition"].as_u64().unwrap())).collect()
}

fn folders(place: &Place) -> usize {
    let entries = std::fs::read_dir(place.path().join("runs")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).count()
}

#[test]
fn the_same_call_goes_on_after_an_interruption_and_after_a_kill_with_the_runs_that_were_made() {
    let place = Place::new();
    let arguments = [
        &["choose", "--workload", "hello", "--slo", "loss=0", "--systems", "builtin", "--duration", "2s"][..],
        &["--warmup", "0s", "--drain", "2s", "--no-headroom", "--within", "80s"],
    ]
    .concat();
    let until = |runs: usize, signal: libc::c_int| {
        let call = place.start(&arguments);
        wait_for("runs that ended", LIMIT, || ended(&place).len() >= runs);
        call.signal(signal);
        call.wait()
    };
    assert_eq!(until(1, libc::SIGINT).code(), 130);
    let first = ended(&place);
    let record = |name: &str| std::fs::read_to_string(folder(&place).join("runs").join(name).join("record.json"));
    let kept = record("1-builtin-screening-1").unwrap();
    let plan = place.call(&[&arguments[..], &["--dry-run"]].concat());
    assert!(plan.code() == 0 && plan.printed.contains("continues "), "{plan:?}");
    until(first.len() + 1, libc::SIGKILL);
    let second = ended(&place);
    assert!(second.len() > first.len() && second.starts_with(&first), "{first:?}, {second:?}");

    let last = place.call(&[&arguments[..], &["--json"]].concat());
    let choice = choice(&place, &last);
    assert!(last.errors.contains("continues `runs/"), "{last:?}");
    assert_eq!((choice["status"].as_str(), folders(&place)), (Some("complete"), 1));
    let all = ended(&place);
    assert!(all.starts_with(&second), "{all:?}");
    assert!((1..all.len()).all(|index| !all[..index].contains(&all[index])), "no run was made twice: {all:?}");
    let runs = choice["candidates"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), all.len(), "{choice}");
    assert_eq!(record("1-builtin-screening-1").unwrap(), kept, "a run that was made stays as it is");

    // It came to its end: the same call is a new choice.
    let call = place.start(&arguments);
    wait_for("another folder", LIMIT, || folders(&place) == 2);
    call.signal(libc::SIGINT);
    call.wait();
    // And `--fresh` leaves an interrupted one.
    let call = place.start(&[&arguments[..], &["--fresh"]].concat());
    wait_for("a third folder", LIMIT, || folders(&place) == 3);
    call.signal(libc::SIGINT);
    call.wait();
}

#[test]
fn growth_is_answered_by_the_headroom_and_has_its_cost() {
    let place = Place::new();
    let arguments = ["--rate", "30", "--slo", "loss=0", "--systems", "builtin", "--growth", "2x", "--json"];
    let lengths = ["--duration", "1s", "--warmup", "0s", "--drain", "1s", "--within", "36s"];
    let called = place.call(&[&["choose", "--workload", "hello"][..], &arguments, &lengths].concat());
    let choice = choice(&place, &called);
    let candidate = &choice["candidates"][0];
    // A busy machine may leave the objectives open, or the load; it never turns one answer into another.
    let expected = match candidate["growth"].as_str() {
        Some("covered") => "qualifies",
        Some("not-covered") => "fails",
        Some("undecided") | None => "undecided",
        Some(other) => panic!("{other}"),
    };
    assert_eq!(candidate["state"]["state"], expected, "{candidate}");
    if candidate["growth"] == "covered" {
        assert!(candidate["headroom"]["holds_factor"].as_f64().unwrap() >= 2.0, "{candidate}");
        let grown = &candidate["cost"]["grown"];
        assert_eq!((&grown["times"], &grown["cores_basis"]), (&2.0.into(), &"measured".into()), "{candidate}");
    }
    let text = std::fs::read_to_string(folder(&place).join("choice.md")).unwrap();
    assert!(text.contains("`growth 2 ×`") && text.contains("| 2 × the load |"), "{text}");
}

#[test]
fn an_interruption_ends_in_order_with_a_record() {
    let place = Place::new();
    let arguments = ["--slo", "loss=0", "--systems", "builtin", "--duration", "60s", "--no-headroom"];
    let call = place.start(&[&["choose", "--workload", "hello"][..], &arguments].concat());
    let runs = || std::fs::read_dir(place.path().join("runs")).into_iter().flatten().flatten().count();
    wait_for("a folder", LIMIT, || runs() > 0);
    call.signal(libc::SIGINT);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    let choice = written(&place);
    schema::assert_choice_agrees(&choice);
    assert_eq!((choice["status"].as_str(), state(&choice)), (Some("interrupted"), "undecided"));
}

#[test]
fn a_password_of_an_endpoint_is_written_nowhere() {
    let place = Place::new();
    let endpoint = "mqtt://ann:planted@127.0.0.1:9";
    let arguments = ["--slo", "loss=0", "--endpoint", endpoint, "--qos", "1"];
    let called = place.call(&[&["choose", "--workload", "hello"][..], &arguments, &SHORT[..8]].concat());
    assert!(!format!("{called:?}").contains("planted"), "{called:?}");
    for file in ["choice.json", "choice.html", "choice.md", "requirements.yaml"] {
        let text = std::fs::read_to_string(folder(&place).join(file)).unwrap();
        assert!(!text.contains("planted"), "{file}");
    }
    assert_ne!(state(&written(&place)), "qualifies");
}
