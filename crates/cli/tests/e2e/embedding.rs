//! A run in another program that uses the library.

use std::path::Path;
use std::process::Command;

use crate::support::place::PUBMARK;

#[test]
fn the_example_runs_a_fleet_and_prints_its_latency() {
    let example = Path::new(PUBMARK).with_file_name("examples").join("embed");
    let output = Command::new(&example).arg(PUBMARK).output().unwrap_or_else(|error| panic!("{example:?}: {error}"));
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{printed}{said}");
    assert!(printed.starts_with("p99 ") && printed.contains(" ms of "), "{printed}{said}");
    assert!(said.contains("Measure") && said.contains("Drain"), "{said}");
    let medians = said.lines().filter(|line| line.starts_with("p50 between ") && line.ends_with(" s")).count();
    assert!(medians >= 2, "{said}");
}

#[test]
fn the_example_is_short() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runner/examples/embed.rs");
    let lines = std::fs::read_to_string(source).unwrap().lines().count();
    assert!(lines <= 40, "{lines} lines: the example shows how little an embedder writes");
}

#[test]
fn a_program_that_is_not_pubmark_is_named() {
    let example = Path::new(PUBMARK).with_file_name("examples").join("embed");
    let output = Command::new(&example).arg("/bin/true").output().expect("the example is built with the tests");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("/bin/true"), "{said}");
}
