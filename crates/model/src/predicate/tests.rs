//! Tests of predicates: values for documents, and errors.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::{Predicate, Unreadable};

const DOCUMENT: &str = r#"{"temperature": 31.5, "room": "hall \"A\"", "alarm": true, "n": -3, "list": [1, {"n": 4}], "none": null,
    "air": {"humidity": 40, "a b": "x"}, "big": 9007199254740993} "#;

fn holds(text: &str) -> Result<bool, Unreadable> {
    Predicate::parse(text).unwrap().holds(DOCUMENT.as_bytes())
}

#[test]
fn expressions_have_their_values() {
    for (text, expected) in [
        ("payload.temperature > 30", true),
        ("payload.temperature>31.5", false),
        ("payload.temperature >= 31.5 && payload.n == -3", true),
        ("30 < payload.temperature", true),
        ("payload.n < -2.5e0", true),
        (r#"payload.room == "hall \"A\"""#, true),
        (r#"payload.room == 'hall "A"'"#, true),
        (r#"payload.room < "hallo""#, true),
        ("payload.alarm", true),
        ("!payload.alarm || payload.air.humidity == 40", true),
        ("!(payload.alarm && payload.n > 0)", true),
        ("payload.alarm == false", false),
        (r#"payload.air["a b"] != "x""#, false),
        (r#"payload["air"].humidity <= 40"#, true),
        // `&&` binds more than `||`.
        ("true || false && false", true),
        ("(true || false) && false", false),
        ("payload.n > 0 || payload.n < 0 && payload.alarm", true),
        // One side determines the result.
        ("payload.missing > 3 || payload.alarm", true),
        ("payload.missing > 3 && payload.n > 0", false),
        ("payload.alarm || payload.missing > 3", true),
        ("!payload.alarm && payload.missing > 3", false),
    ] {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_field_that_a_document_lacks_is_reported() {
    for text in [
        "payload.missing > 3",
        "payload.room > 3",
        "payload.none == 1",
        "payload.list == 1",
        "payload.air",
        "payload.n",
        "payload.missing > 3 && payload.alarm",
        "payload.missing > 3 || payload.n > 0",
    ] {
        assert_eq!(holds(text), Err(Unreadable), "{text}");
    }
    let predicate = Predicate::parse("payload.n > 0").unwrap();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for document in ["", "{", "[]", "17", "{\"n\": 1} x", "\u{0}", "{\"n\": 1, \"m\": nope}", &deep] {
        assert_eq!(predicate.holds(document.as_bytes()), Err(Unreadable), "{}", &document[..document.len().min(40)]);
    }
    assert_eq!(predicate.holds(b"{\"n\": 1}      "), Ok(true), "padding is no part of it");
}

/// A text, what is underlined, parts of the reason and of the hint.
fn wrong(text: &str, underlined: &str, reason: &str, hint: &str) {
    let error = match Predicate::parse(text) {
        Ok(predicate) => predicate.check("hall/sensor", &[DOCUMENT.into()]).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(&text[error.at.clone()], underlined, "{text}: {error:?}");
    assert!(error.reason.contains(reason) && error.hint.contains(hint), "{text}: {error:?}");
}

#[test]
fn mistakes_are_named_at_their_place() {
    let many = (0..17).map(|number| format!("payload.a{number} > 1")).collect::<Vec<_>>().join(" && ");
    wrong("", "", "ends where a value should be", "behind it");
    wrong("payload.temperature >", "", "ends where a value should be", "behind it");
    wrong("payload.temperature = 30", "=", "unexpected `=`", "`==`");
    wrong("payload.alarm & true", "&", "unexpected `&`", "`&&`");
    wrong("payload.n > 1 payload.n < 3", "payload", "is over before this", "`&&`");
    wrong("temperature > 30", "temperature", "`temperature` is not known", "`payload.temperature`");
    wrong("payload.room == kitchen", "kitchen", "`kitchen` is not known", "in quotes");
    wrong("payload > 3", "payload", "whole payload", "payload.temperature");
    wrong("payload. > 3", ">", "behind the dot", "payload.temperature");
    wrong("payload[0] > 3", "0", "in quotes", "air temperature");
    wrong("payload[\"n\" > 3", "payload[\"n\" >", "bracket", "payload.temperature");
    wrong("payload.room == \"hall", "\"hall", "without its end", "quote");
    wrong("payload.room == \"\\q\"", "\\", "unknown escape", "escapes are");
    wrong("(payload.n > 1", "(", "not closed", "`)`");
    wrong("payload.n > 3x", "3x", "`3x` is no number", "-3.5");
    wrong("payload.n > 1e999", "1e999", "no number", "");
    wrong(&"!".repeat(40), "!", "32 deep", "simpler");
    wrong(&many, "payload.a16", "16 different fields", "simpler");
    wrong("payload.temprature > 30", "payload.temprature", "have no field `temprature`", "`temperature`");
    wrong("payload.air.x > 30", "payload.air.x", "no field `x`", "`humidity`");
    wrong("payload.n.x > 30", "payload.n.x", "no field `x`", "nothing has fields");
    wrong(
        "payload.temperature > \"30\"",
        "payload.temperature > \"30\"",
        "is a number, and `\"30\"` is a text",
        "no quotes",
    );
    wrong("payload.alarm > false", "payload.alarm > false", "no order", "`==`");
    wrong("payload.temperature", "payload.temperature", "the expression is a number", "> 30");
    wrong("payload.temperature && true", "payload.temperature", "is a number, not true or false", "> 30");
    wrong("!payload.room", "payload.room", "is a text, not true or false", "> 30");
    wrong("payload.air == 1", "payload.air", "is an object", "a number");
    wrong("payload.list == 1", "payload.list", "is a list", "a number");
    wrong("payload.none == 1", "payload.none", "is nothing", "a number");
    let long = format!("payload.n > 1{}", " ".repeat(5_000));
    wrong(&long, &long, "4096 B at most", "shorter");
}

#[test]
fn a_predicate_survives_its_text() {
    let predicate = Predicate::parse("payload.n > 1 && payload.room == 'a'").unwrap();
    let text = serde_json::to_string(&predicate).unwrap();
    assert_eq!(serde_json::from_str::<Predicate>(&text).unwrap(), predicate);
    assert!(serde_json::from_str::<Predicate>("\"payload.\"").is_err());
}

/// Booleans in a tree, as text and as value.
fn any_tree() -> impl Strategy<Value = (String, bool)> {
    let leaf = (-3i32..4, -3i32..4, 0usize..6).prop_map(|(left, right, sign)| {
        let signs = ["==", "!=", "<", "<=", ">", ">="];
        let value = [left == right, left != right, left < right, left <= right, left > right, left >= right][sign];
        (format!("{left} {} {right}", signs[sign]), value)
    });
    leaf.prop_recursive(5, 32, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|((a, x), (b, y))| (format!("({a}) && ({b})"), x && y)),
            (inner.clone(), inner.clone()).prop_map(|((a, x), (b, y))| (format!("({a}) || ({b})"), x || y)),
            inner.prop_map(|(a, x)| (format!("!({a})"), !x)),
        ]
    })
}

proptest! {
    #[test]
    fn trees_have_the_value_of_rust((text, expected) in any_tree()) {
        prop_assert_eq!(holds(&text), Ok(expected), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_within_it(text in "[a-z.\"'0-9<>=!&|() \\\\\\[\\]-]{0,40}|\\PC{0,20}") {
        if let Err(error) = Predicate::parse(&text) {
            prop_assert!(text.get(error.at).is_some());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = Predicate::parse("payload.a.b > 1").unwrap().holds(&bytes);
    }
}
