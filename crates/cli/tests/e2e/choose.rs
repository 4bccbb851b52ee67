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
fn a_candidate_without_what_is_needed_is_excluded_and_nothing_is_run() {
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
}

#[test]
fn an_interruption_ends_in_order_with_what_is_known() {
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
