//! Records that are broken: a thousand changes of a valid one, rendered, judged and compared. Each is read or refused
//! with a message, without a panic or a hang.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use pubmark_model::random::Stream;
use pubmark_record::comparison::compare;
use pubmark_record::record::Record;
use pubmark_record::verdict::{VerdictInput, judge};
use pubmark_record::{sample, store};
use pubmark_report::exports;
use pubmark_report::terminal::{TerminalOptions, summary};
use serde_json::Value;

use crate::call::call_in;

/// Values that a field may be replaced by.
fn strange(draw: u64) -> Value {
    let all = [
        Value::Null,
        true.into(),
        0.into(),
        (-1).into(),
        u64::MAX.into(),
        i64::MIN.into(),
        1e308.into(),
        (-1e308).into(),
        f64::MIN_POSITIVE.into(),
        "".into(),
        "\u{1b}[2J<script>alert(1)</script>".into(),
        "x".repeat(100_000).into(),
        "NaN".into(),
        Value::Array(vec![]),
        serde_json::json!({}),
        serde_json::json!([[], {}, null]),
    ];
    all[(draw % all.len() as u64) as usize].clone()
}

/// Paths in a document: the steps to each value.
fn places(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => vec![],
    };
    for (name, child) in children {
        path.push(name);
        found.push(path.clone());
        places(child, path, found);
        path.pop();
    }
}

fn at<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(value, |value, step| match value {
        Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
        other => &mut other[step.as_str()],
    })
}

/// A change of a document, determined by its number.
fn changed(whole: &Value, places: &[Vec<String>], number: u64) -> String {
    let stream = Stream::new(number, 7);
    let place = &places[(stream.bits(0) % places.len() as u64) as usize];
    let mut value = whole.clone();
    match stream.bits(1) % 6 {
        0 | 1 => *at(&mut value, place) = strange(stream.bits(2)),
        2 => {
            let (last, parent) = place.split_last().unwrap();
            match at(&mut value, parent) {
                Value::Object(fields) => drop(fields.remove(last)),
                Value::Array(items) => drop(items.remove(last.parse().unwrap())),
                _ => unreachable!(),
            }
        }
        3 => {
            // A list becomes long.
            if let Value::Array(items) = at(&mut value, place)
                && let Some(first) = items.first().cloned()
            {
                items.extend(std::iter::repeat_n(first, 2_000));
            } else {
                *at(&mut value, place) = strange(stream.bits(2));
            }
        }
        kind => {
            // The text itself is truncated, or one of its bytes is changed.
            let mut text = serde_json::to_vec(&value).unwrap();
            let byte = (stream.bits(2) % text.len() as u64) as usize;
            match kind {
                4 => text.truncate(byte),
                _ => text[byte] = b' ' + (stream.bits(3) % 94) as u8,
            }
            return String::from_utf8_lossy(&text).into_owned();
        }
    }
    value.to_string()
}

/// Makes everything that can be made from a record.
fn use_it(record: &Record, beside: &Record) {
    summary(record, &TerminalOptions::default());
    exports::all(record);
    judge(&VerdictInput::of(record));
    // It may be refused; the error must have a text.
    if let Err(error) = compare(&[record.clone(), beside.clone()]) {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_thousand_changed_records_are_used_or_refused() {
    let valid = sample::record();
    let whole: Value = serde_json::from_str(&store::to_json(&valid).unwrap()).unwrap();
    let mut found = vec![];
    places(&whole, &mut vec![], &mut found);
    let count = if crate::is_full() { 20_000 } else { 1_000 };
    let (mut read, mut slowest) = (0, Duration::ZERO);
    for number in 0..count {
        let text = changed(&whole, &found, number);
        let Ok(record) = store::read::<Record>(Path::new(store::RECORD_FILE), &text) else { continue };
        read += 1;
        let began = Instant::now();
        let used = catch_unwind(AssertUnwindSafe(|| use_it(&record, &valid)));
        assert!(used.is_ok(), "change {number} makes it panic");
        slowest = slowest.max(began.elapsed());
    }
    // If no changed record could be read, the test would show nothing.
    assert!(read > count / 20, "{read} of {count} were read");
    assert!(slowest < Duration::from_secs(20), "the slowest took {slowest:?}");
}

#[test]
fn the_program_explains_what_is_wrong_with_a_record() {
    let whole: Value = serde_json::from_str(&store::to_json(&sample::record()).unwrap()).unwrap();
    let mut found = vec![];
    places(&whole, &mut vec![], &mut found);
    for number in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("one", changed(&whole, &found, 5_000 + number)), ("other", whole.to_string())] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("record.json"), text).unwrap();
        }
        let calls: [&[&str]; 3] =
            [&["report", "one"], &["check", "one", "--require", "loss<=1%"], &["compare", "one", "other"]];
        let call = calls[(number % 3) as usize];
        let called = call_in(folder, call);
        assert!(!called.hung && !called.errors.contains("panicked"), "{call:?} of change {number}: {}", called.errors);
        assert!(matches!(called.code, Some(0 | 2 | 3 | 4 | 5)), "{call:?} of change {number}: {:?}", called.code);
        assert!(called.code != Some(2) || called.errors.contains("error"), "{call:?}: {}", called.errors);
    }
}
