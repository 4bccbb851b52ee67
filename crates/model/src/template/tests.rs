//! Tests of templates: rendered messages, and errors with their positions.

use super::*;

const ALL: &str = r#"{"device": "{{device}}", "t": {{normal 21 0.5}}, "h": {{uniform 0 100}}, "n": {{counter}},
 "at": "{{timestamp}}", "ms": {{timestamp ms}}, "state": "{{enum on off stand-by}}", "id": "{{string 20}}",
 "ok": {{bool 0.25}}, "down": {{counter -5 -10}}, "z": {{uniform -1.00 1}}, "deep": {"x":{{counter 0 1}}}}"#;

fn message(template: &Template, key: u64, number: u32) -> String {
    let filling = Filling {
        draw: BodyDraw { key, number },
        device: "0-7",
        due_unix_ns: 1_769_860_800_007_000_000 + u64::from(number) * 1_000_000_000,
    };
    let mut out = Vec::new();
    template.append(&filling, &mut out);
    assert_eq!(out.len(), template.bytes(filling.draw, 3), "the size is known beforehand");
    assert!((template.least_bytes()..=template.most_bytes()).contains(&out.len()), "{}", out.len());
    String::from_utf8(out).unwrap()
}

#[test]
fn every_message_is_json_of_the_kind_that_the_template_says() {
    let template = Template::parse(ALL).unwrap();
    let mut states = std::collections::BTreeSet::new();
    let mut truths = 0;
    let mut sum = 0.0;
    for number in 0..2_000 {
        let json: serde_json::Value = serde_json::from_str(&message(&template, 5, number)).unwrap();
        assert_eq!((json["device"].as_str(), json["n"].as_u64()), (Some("0-7"), Some(u64::from(number) + 1)));
        assert_eq!(json["down"].as_i64(), Some(-5 - 10 * i64::from(number)));
        assert_eq!(json["ms"].as_u64(), Some(1_769_860_800_007 + u64::from(number) * 1_000));
        assert!((0..=100).contains(&json["h"].as_u64().unwrap()));
        assert!((-1.0..=1.0).contains(&json["z"].as_f64().unwrap()));
        assert_eq!(json["id"].as_str().map(str::len), Some(20));
        assert_eq!(json["deep"]["x"].as_u64(), Some(u64::from(number)));
        states.insert(json["state"].as_str().unwrap().to_owned());
        truths += u32::from(json["ok"].as_bool().unwrap());
        sum += json["t"].as_f64().unwrap();
    }
    assert_eq!(states.into_iter().collect::<Vec<_>>(), ["off", "on", "stand-by"]);
    assert!((400..600).contains(&truths), "{truths} of 2000, about 500");
    assert!((sum / 2_000.0 - 21.0).abs() < 0.05, "{}", sum / 2_000.0);
    let first: serde_json::Value = serde_json::from_str(&message(&template, 5, 0)).unwrap();
    assert_eq!(first["at"].as_str(), Some("2026-01-31T12:00:00.007Z"));
}

#[test]
fn a_message_can_be_made_again_and_depends_on_key_and_number() {
    let template = Template::parse(ALL).unwrap();
    assert_eq!(message(&template, 5, 9), message(&template, 5, 9));
    assert_ne!(message(&template, 5, 9), message(&template, 6, 9));
    let id = |key, number| {
        let json: serde_json::Value = serde_json::from_str(&message(&template, key, number)).unwrap();
        json["id"].as_str().unwrap().to_owned()
    };
    assert_ne!(id(5, 9), id(5, 10));
}

#[test]
fn numbers_have_as_many_decimals_as_the_longer_of_their_two() {
    for (field, decimals) in [("{{normal 21 0.5}}", 1), ("{{normal 21.00 0.5}}", 2), ("{{uniform 0 9}}", 0)] {
        let text = message(&Template::parse(&format!("[{field}]")).unwrap(), 1, 1);
        let found = text.trim_matches(['[', ']']).split_once('.').map_or(0, |(_, decimals)| decimals.len());
        assert_eq!(found, decimals, "{field}: {text}");
    }
}

#[test]
fn the_largest_size_covers_every_draw() {
    let template = Template::parse("[{{normal 9.5 1}}, {{uniform -3 120}}, {{enum 1 22 333}}, {{bool 1}}]").unwrap();
    let sizes: Vec<usize> = (0..20_000).map(|number| template.bytes(BodyDraw { key: 3, number }, 0)).collect();
    assert!(sizes.iter().all(|bytes| (template.least_bytes()..=template.most_bytes()).contains(bytes)));
    let mean = sizes.iter().sum::<usize>() as f64 / 20_000.0;
    assert!((mean - template.mean_bytes()).abs() < 0.1, "{mean} {}", template.mean_bytes());
}

#[test]
fn a_wrong_template_is_refused_at_its_position() {
    for (text, underlined, reason) in [
        ("[1, {{norml 1 2}}]", "{{norml 1 2}}", "unknown field"),
        ("[{{}}]", "{{}}", "unknown field"),
        ("[{{normal 1}}]", "{{normal 1}}", "other values"),
        ("[{{normal 1 -2}}]", "{{normal 1 -2}}", "standard deviation"),
        ("[{{normal x 2}}]", "{{normal x 2}}", "`x` is no number"),
        ("[{{normal 1e3 2}}]", "{{normal 1e3 2}}", "`1e3` is no number"),
        ("[{{uniform 5 1}}]", "{{uniform 5 1}}", "below the smallest"),
        ("[{{uniform 0 1.0123456789}}]", "{{uniform 0 1.0123456789}}", "10 decimals"),
        ("[{{uniform 0 9999999999999999}}]", "{{uniform 0 9999999999999999}}", "15 digits"),
        ("[{{counter 1}}]", "{{counter 1}}", "other values"),
        ("[{{counter 0 9999999999}}]", "{{counter 0 9999999999}}", "start or step"),
        ("[\"{{enum a \"b}}\"]", "{{enum a \"b}}", "cannot stand"),
        ("[\"{{enum}}\"]", "{{enum}}", "other values"),
        ("[\"{{string 0}}\"]", "{{string 0}}", "length"),
        ("[\"{{string 5000}}\"]", "{{string 5000}}", "length"),
        ("[{{bool 2}}]", "{{bool 2}}", "no chance"),
        ("[1, {{counter]", "{{counter]", "without its end"),
        ("[{{counter}}, oops]", "o", "no JSON here"),
        ("[\n{{string 8}}]", "{{string 8}}", "no JSON here"),
        ("[{{string 1}}]", "{{string 1}}", "no JSON here"),
        ("[{{enum 1 on}}]", "{{enum 1 on}}", "`on` without quotes"),
        ("[{{enum 7 07}}]", "{{enum 7 07}}", "`07` without quotes"),
        ("[{{device}}]", "{{device}}", "without quotes"),
        ("[-{{uniform -5 5}}]", "{{uniform -5 5}}", "next to it"),
        ("[1{{uniform 0 9}}]", "{{uniform 0 9}}", "next to it"),
        ("[{{uniform 0 9}}.5]", "{{uniform 0 9}}", "next to it"),
        ("[{{uniform 0 9}}{{uniform 0 9}}]", "{{uniform 0 9}}", "next to it"),
        ("[\"\\u00{{enum 41 zz}}\"]", "{{enum 41 zz}}", "escape"),
        ("[\"\\{{enum n x}}\"]", "{{enum n x}}", "escape"),
        ("{\"a\": \"\\u12é\", \"n\": {{counter}}}", "é", "no JSON here"),
    ] {
        let error = Template::parse(text).unwrap_err();
        assert!(error.reason.contains(reason), "{text}: {error}");
        assert_eq!(&text[error.at.clone()], underlined, "{text}: {error}");
    }
    for text in [
        "[{{enum 1 true null}}, \"{{enum 1 on}}{{string 1}}-{{uniform -5 5}}\", \"\\u0041{{counter}}\\\\{{device}}\"]",
        "{\"{{enum a b}}\": {{uniform 0 9}} }",
    ] {
        Template::parse(text).unwrap();
    }
    assert!(Template::parse(&"[{{counter}}] ".repeat(20_000)).unwrap_err().reason.contains("at most"));
    let many = format!("[{}0]", "{{counter}},".repeat(MOST_FIELDS + 1));
    assert!(Template::parse(&many).unwrap_err().reason.contains("257 fields"));
}

#[test]
fn a_template_travels_as_its_text() {
    let template = Template::parse(ALL).unwrap();
    let text = serde_json::to_string(&template).unwrap();
    let back: Template = serde_json::from_str(&text).unwrap();
    assert_eq!((message(&back, 1, 1), back.mean_bytes()), (message(&template, 1, 1), template.mean_bytes()));
    assert!(serde_json::from_str::<Template>("\"[{{what}}]\"").is_err());
}
