//! The help of the program and of each verb.

use crate::call::{assert_fits, call};

/// Every verb, the hidden ones too.
const VERBS: &[&str] = &[
    "demo",
    "run",
    "compare",
    "experiment",
    "paper",
    "check",
    "capacity",
    "choose",
    "node",
    "cluster",
    "devices",
    "deploy",
    "serve",
    "runs",
    "report",
    "table",
    "list",
    "install",
    "explain",
    "doctor",
    "schema",
    "completions",
    "manual",
    "broker",
    "supervisor",
    "idle-loops",
    "reference",
];

#[test]
fn compare_has_an_option_for_every_axis() {
    let text = call(&["compare", "--help"]);
    for row in pubmark_model::experiment::AXES {
        let option = match row.name {
            "workload" => "<WORKLOAD".to_owned(),
            "nodes" => "--local-nodes ".to_owned(),
            name => format!("--{name}"),
        };
        assert!(text.contains(&option), "`{option}` is missing");
    }
}

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

/// Largest number of options in the short help of a verb.
const SHORT: usize = 25;

#[test]
fn the_short_help_shows_what_matters_and_the_long_help_all() {
    for verb in VERBS {
        let (short, long) = (call(&[verb, "-h"]), call(&[verb, "--help"]));
        assert_fits(&short);
        let (few, all) = (options(&short), options(&long));
        assert!(few.len() <= SHORT, "{verb}: {} options in the short help", few.len());
        assert!(few.iter().all(|option| all.contains(option)), "{verb}: {few:?} {all:?}");
        if few.len() < all.len() {
            assert!(short.contains("see more with '--help'"), "{verb} does not say where the others are");
            insta::assert_snapshot!(format!("short-help-{verb}"), short);
        }
    }
}

/// Options that a help lists, by their long names.
fn options(help: &str) -> Vec<String> {
    let names = help.lines().filter_map(|line| {
        let entry = line.trim_start();
        let name = entry.strip_prefix("--").or_else(|| entry.split_once(", --").map(|(_, name)| name))?;
        // Options stand six columns in, short ones two; text of theirs further.
        let is_entry = line.starts_with("      --") || line.starts_with("  -");
        is_entry.then(|| name.split([' ', '<', '[']).next().unwrap_or_default().to_owned())
    });
    names.collect()
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
