//! The plan of a search for capacity.

use crate::call::{assert_fits, call};

#[test]
fn a_search_says_what_it_would_try_and_starts_nothing() {
    let text = call(&["capacity", "pairs", "--dry-run"]);
    assert_fits(&text);
    assert!(text.ends_with("[exit code 0]\n"), "{text}");
    let plan = text.split("The first trial:").next().unwrap();
    insta::assert_snapshot!("capacity-plan", plan);
    assert!(text.contains("pairs, ") && text.contains("needs"), "{text}");
}

#[test]
fn what_cannot_be_searched_is_refused_before() {
    let text = call(&["capacity", "pairs", "--set", "arrival=flood", "--dry-run"]);
    assert!(text.contains("it has no load to vary") && text.ends_with("[exit code 2]\n"), "{text}");
}
