//! No input causes a panic or unbounded work.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use pubmark_model::builtin;
use pubmark_model::load::{self, LoadOptions};
use pubmark_model::workload::Variant;

use super::{read, variant, with};

/// Loads a text and renders its diagnostic; the test is that this returns.
fn survive(text: &str, options: &LoadOptions) {
    if let Err(error) = load::parse("hostile.yaml", text, options) {
        let mut shown = String::new();
        let rendered = miette::NarratableReportHandler::new().render_report(&mut shown, &error);
        assert!(rendered.is_ok() && !shown.is_empty());
    }
}

fn texts() -> Vec<&'static str> {
    builtin::all().map(|builtin| builtin.text()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survive(&String::from_utf8_lossy(&bytes), &LoadOptions::default());
    }

    #[test]
    fn yaml_like_text(text in "([a-z_]{1,8}: |- |[\\[\\]{}&*!|>'\"%@`#,?:]|\n {0,8}|[0-9.]{1,5}(s|ms|%|KB|/s)?|\\$\\{[a-z]\\}|every|é|\u{0}){0,60}") {
        survive(&text, &LoadOptions::default());
    }

    #[test]
    fn mutated_files(
        file in 0usize..17,
        published in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[ -~\n]{0,6}"), 1..4),
    ) {
        let mut text = texts()[file].to_owned();
        for (place, removed, added) in edits {
            let start = place.index(text.len() + 1);
            let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let end = (start + removed).min(text.len());
            let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap();
            text.replace_range(start..end, &added);
        }
        survive(&text, &variant(if published { Variant::Published } else { Variant::Corrected }));
    }

    #[test]
    fn arbitrary_settings(key in "[a-z_.0-9/]{0,30}", value in "[ -~]{0,20}") {
        for text in [texts()[9], texts()[12]] {
            survive(text, &with(&[(&key, &value)]));
        }
    }

    #[test]
    fn settings_on_real_paths(
        path in prop::sample::select(vec![
            "defaults.every", "defaults.churn.disconnect", "devices.0.payload", "devices.0.payload.mean", "devices.0", "devices",
            "subscribers.0.filters", "subscribers.0.filters.0", "placement", "placement.devices", "parameters.x.default", "name",
            "device_types.a.every", "defaults", "published", "subscribers.everything.count",
        ]),
        value in "[ -~]{0,12}",
    ) {
        survive(texts()[9], &with(&[(path, &value)]));
    }
}

#[test]
fn bombs_are_refused_quickly() {
    let start = Instant::now();
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        laughs.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", ")));
    }
    let deep = format!("name: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long =
        format!("name: t\ndevices:\n{}subscribers: []\n", "  - {name: a, every: 1s, payload: 1KB}\n".repeat(20_000));
    let large = format!("name: {}", "x".repeat(5_000_000));
    let merges = "a: &a {<<: *a}\n".to_owned();
    for text in [laughs, deep, long, large, merges] {
        assert!(read(&text).is_err());
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn an_endless_file_ends() {
    let error = load::load("/dev/zero", &LoadOptions::default()).unwrap_err();
    assert!(matches!(error, load::LoadError::Wrong(_) | load::LoadError::Unreadable { .. }), "{error}");
}
