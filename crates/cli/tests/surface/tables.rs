//! The built-in definitions, and the pages about codes.

use crate::call::{assert_fits, call};

#[test]
fn each_table_fits_a_terminal() {
    for table in ["workloads", "systems", "protocols", "experiments", "links", "exit-codes"] {
        let text = call(&["list", table]);
        assert_fits(&text);
        insta::assert_snapshot!(format!("list-{table}"), without_what_is_here(&text));
    }
}

/// The text without the parts that depend on the machine: which systems are installed.
fn without_what_is_here(text: &str) -> String {
    let mut kept = String::new();
    let mut is_here = false;
    for line in text.lines() {
        is_here = line.starts_with("  here ") || (is_here && line.starts_with("    "));
        if !is_here {
            kept.push_str(&without_version(line));
            kept.push('\n');
        }
    }
    kept
}

/// The line of a system in `list systems`, whose second column is its version here.
fn without_version(line: &str) -> String {
    const VERSION: std::ops::Range<usize> = 14..30;
    match (line.get(VERSION), line.get(VERSION.end..)) {
        (Some(version), Some(rest))
            if version.ends_with("  ")
                && (version.starts_with("not installed")
                    || version.starts_with(|digit: char| digit.is_ascii_digit())) =>
        {
            format!("{}{:16}{rest}", &line[..VERSION.start], "[here]")
        }
        _ => line.to_owned(),
    }
}

#[test]
fn a_system_is_listed_with_whether_it_is_installed() {
    let text = call(&["list", "systems"]);
    assert!(
        text.lines().any(|line| line.starts_with(&format!("builtin       {} ", env!("CARGO_PKG_VERSION")))),
        "{text}"
    );
    let one = call(&["list", "systems", "builtin"]);
    assert!(one.lines().any(|line| line.starts_with("  here ") && line.ends_with("this program")), "{one}");
}

#[test]
fn without_a_table_everything_is_named_on_one_screen() {
    let all = call(&["list"]);
    assert_fits(&all);
    assert!(all.lines().count() <= 40, "{all}");
    insta::assert_snapshot!("list", all);
    let named: Vec<&str> = all.split([' ', ',', '\n']).collect();
    for (table, name) in
        [("workloads", "pairs"), ("systems", "mosquitto"), ("experiments", "brokers"), ("links", "lte")]
    {
        assert!(named.contains(&name), "{name} of {table} is missing from\n{all}");
    }
}

#[test]
fn one_of_a_table_is_shown_in_detail() {
    for (table, name) in [
        ("workloads", "pairs"),
        ("systems", "mosquitto"),
        ("systems", "zenoh-peers"),
        ("protocols", "mqtt5"),
        ("experiments", "brokers"),
        ("links", "lte"),
        ("exit-codes", "3"),
        ("systems", "mosqito"),
    ] {
        let text = call(&["list", table, name]);
        assert_fits(&text);
        insta::assert_snapshot!(format!("list-{table}-{name}"), without_what_is_here(&text));
    }
}

#[test]
fn codes_are_listed_and_explained() {
    let list = call(&["explain"]);
    assert_fits(&list);
    insta::assert_snapshot!("explain", list);
    let page = call(&["explain", "v01"]);
    assert_fits(&page);
    insta::assert_snapshot!("explain-V01", page);
    let link = call(&["explain", "edge-cloud"]);
    assert_fits(&link);
    insta::assert_snapshot!("explain-edge-cloud", link);
    for words in [&["explain", "receive", "lateness"][..], &["explain", "Unknown"], &["explain", "suspct"]] {
        let text = call(words);
        assert_fits(&text);
        insta::assert_snapshot!(words.join("-"), text);
    }
}

#[test]
fn a_schema_is_json_that_names_its_dialect() {
    for of in ["workload", "experiment", "record", "experiment-record", "capacity-record", "run-list"] {
        let text = call(&["schema", of]);
        let body: String = text.lines().skip(1).take_while(|line| !line.starts_with('[')).collect();
        let schema: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert!(schema["$schema"].as_str().unwrap().starts_with("https://json-schema.org/"), "{of}");
    }
}

#[test]
fn the_doctor_gives_each_check_a_mark() {
    let text = call(&["doctor"]);
    assert_fits(&text);
    let marks = text.lines().filter(|line| line.starts_with(['✓', '!', '✗'])).count();
    assert_eq!(marks, 18, "{text}");
}
