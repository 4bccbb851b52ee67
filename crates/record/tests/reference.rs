//! Checks that the generated reference pages agree with the code. `UPDATE=1 cargo test -p pubmark-record --test
//! reference` writes them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

fn assert_same(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/reference/{name} is out of date: run again with UPDATE=1");
}

#[test]
fn the_schema_of_the_record_is_published() {
    assert_same("record.schema.json", &pubmark_record::schema::record_schema());
}

#[test]
fn the_page_of_verdicts_and_warnings_is_published() {
    assert_same("verdicts.md", &pubmark_record::codes::reference());
}
