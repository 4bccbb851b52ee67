//! What is built in, and the pages behind codes.

use crate::call::{assert_fits, call};

#[test]
fn each_table_fits_a_terminal() {
    for table in ["workloads", "systems", "protocols", "experiments", "links", "exit-codes"] {
        let text = call(&["list", table]);
        assert_fits(&text);
        insta::assert_snapshot!(format!("list-{table}"), without_what_is_here(&text));
    }
}

/// The text without the lines that differ from machine to machine: which systems are installed.
fn without_what_is_here(text: &str) -> String {
    let mut kept = String::new();
    let mut is_here = false;
    for line in text.lines() {
        is_here = line.starts_with("  here ") || (is_here && line.starts_with("   "));
        if !is_here {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn a_system_is_listed_with_whether_it_is_installed() {
    let text = call(&["list", "systems"]);
    let programs = text.lines().filter(|line| line.starts_with("  here ")).count();
    assert!(text.contains("  here      ") && programs >= 8, "{text}");
    assert!(text.lines().any(|line| line.starts_with("  here ") && line.ends_with("this program")), "{text}");
}

#[test]
fn without_a_name_the_tables_of_what_can_be_named_are_listed() {
    let all = call(&["list"]);
    for table in ["workloads", "systems", "protocols", "experiments", "links"] {
        let one = call(&["list", table]);
        let body = one.lines().skip(1).take_while(|line| !line.starts_with('[')).collect::<Vec<_>>().join("\n");
        assert!(all.contains(&body), "{table} is missing from\n{all}");
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
    assert_eq!(marks, 17, "{text}");
}
