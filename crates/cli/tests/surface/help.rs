//! The help of the program and of each verb.

use crate::call::{assert_fits, call};

/// Every verb, the hidden ones too.
const VERBS: &[&str] = &[
    "demo",
    "run",
    "compare",
    "experiment",
    "check",
    "capacity",
    "node",
    "cluster",
    "deploy",
    "runs",
    "report",
    "table",
    "list",
    "install",
    "explain",
    "doctor",
    "schema",
    "broker",
    "supervisor",
    "reference",
];

#[test]
fn the_program_says_what_it_does_and_what_it_answers() {
    let text = call(&["--help"]);
    assert_fits(&text);
    insta::assert_snapshot!("help", text);
}

#[test]
fn each_verb_says_what_it_takes() {
    for verb in VERBS {
        let text = call(&[verb, "--help"]);
        assert_fits(&text);
        insta::assert_snapshot!(format!("help-{verb}"), text);
    }
}

#[test]
fn no_verb_is_missing_from_these_tests() {
    let help = call(&["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for line in listed {
        let verb = line.split_whitespace().next().unwrap();
        if line.starts_with("  ") && !line.starts_with("   ") {
            assert!(VERBS.contains(&verb), "{verb} has no snapshot of its help");
        }
    }
}

#[test]
fn without_a_verb_the_help_is_shown_and_it_is_an_error() {
    let text = call(&[]);
    assert!(text.contains("Usage: pubmark <COMMAND>"), "{text}");
    assert!(text.ends_with("[exit code 2]\n"), "{text}");
}
