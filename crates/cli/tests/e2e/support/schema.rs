//! Checks that a record agrees with its published JSON Schema. The check implements the keywords that our schema uses
//! and fails on any other; it is stricter than the schema in one point: a record must not have a key that the schema
//! does not describe.

use serde_json::Value;

/// The schema as published.
const RECORD: &str = include_str!("../../../../../docs/reference/record.schema.json");

/// The same of `choice.json`.
const CHOICE: &str = include_str!("../../../../../docs/reference/choice.schema.json");

/// Fails with every position at which `record` differs from the schema.
pub fn assert_agrees(record: &Value) {
    assert_agrees_with(RECORD, record);
}

/// The same of a choice.
pub fn assert_choice_agrees(choice: &Value) {
    assert_agrees_with(CHOICE, choice);
}

fn assert_agrees_with(schema: &str, record: &Value) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let found = problems(&schema, &schema, record, "record");
    assert!(found.is_empty(), "{found:#?}");
}

fn problems(root: &Value, part: &Value, value: &Value, place: &str) -> Vec<String> {
    let Some(keywords) = part.as_object() else { return Vec::new() };
    let check = |(keyword, rule): (&String, &Value)| problems_of(root, part, keyword, rule, value, place);
    keywords.iter().flat_map(check).collect()
}

fn problems_of(root: &Value, part: &Value, keyword: &str, rule: &Value, value: &Value, place: &str) -> Vec<String> {
    let when = |wrong: bool, what: &str| if wrong { vec![format!("{place}: {value} {what} {rule}")] } else { vec![] };
    match keyword {
        "$ref" => {
            let target = root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
            problems(root, target, value, place)
        }
        "type" => {
            let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
            when(!kinds.iter().any(|kind| is(kind.as_str().unwrap(), value)), "is no")
        }
        "const" => when(rule != value, "is not"),
        "minimum" => when(value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()), "is below"),
        "maximum" => when(value.as_f64().is_some_and(|number| number > rule.as_f64().unwrap()), "is above"),
        "anyOf" | "oneOf" => {
            let branches = rule.as_array().unwrap().iter().map(|branch| problems(root, branch, value, place));
            let branches: Vec<Vec<String>> = branches.collect();
            let fitting = branches.iter().filter(|branch| branch.is_empty()).count();
            match fitting {
                0 => branches.into_iter().flatten().collect(),
                1 => vec![],
                _ => when(keyword == "oneOf", "fits more than one of"),
            }
        }
        "required" => {
            let missing = rule.as_array().unwrap().iter().filter(|key| value.get(key.as_str().unwrap()).is_none());
            missing.map(|key| format!("{place}: {key} is missing")).collect()
        }
        "items" => each(root, std::iter::repeat(rule), value, place),
        "prefixItems" => each(root, rule.as_array().unwrap().iter(), value, place),
        "minItems" => {
            when(value.as_array().is_some_and(|items| items.len() < rule.as_u64().unwrap() as usize), "has under")
        }
        "maxItems" => {
            when(value.as_array().is_some_and(|items| items.len() > rule.as_u64().unwrap() as usize), "has over")
        }
        "properties" => {
            let described = |(key, item): (&String, &Value)| match rule.get(key) {
                Some(rule) => problems(root, rule, item, &format!("{place}.{key}")),
                None => vec![format!("{place}: the schema has no `{key}`")],
            };
            value.as_object().into_iter().flatten().flat_map(described).collect()
        }
        // Keys beside `properties` are checked with `properties`.
        "additionalProperties" if rule == false => vec![],
        "additionalProperties" => {
            assert!(part.get("properties").is_none(), "this check knows it only for maps");
            let items = value.as_object().into_iter().flatten();
            items.flat_map(|(key, item)| problems(root, rule, item, &format!("{place}.{key}"))).collect()
        }
        // `default` is the meaning of a missing field in an older record; `format` limits numbers to Rust's types, as
        // `minimum` and `type` also do.
        "$schema" | "$defs" | "title" | "description" | "default" | "format" => vec![],
        other => panic!("the schema uses `{other}`, which this check does not know"),
    }
}

fn each<'a>(root: &Value, rules: impl Iterator<Item = &'a Value>, value: &Value, place: &str) -> Vec<String> {
    let items = value.as_array().into_iter().flatten().zip(rules).enumerate();
    items.flat_map(|(index, (item, rule))| problems(root, rule, item, &format!("{place}.{index}"))).collect()
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    }
}

#[test]
fn the_check_finds_mistakes() {
    let schema: Value = serde_json::from_str(RECORD).unwrap();
    let wrong = serde_json::json!({"run": {"status": "over"}, "tables": {"by_type": {}}, "new": 1, "delivery": {"too_large": -1}});
    let found = problems(&schema, &schema, &wrong, "record").join("\n");
    for words in ["\"latency\" is missing", "\"over\"", "record.tables.by_type: {}", "no `new`", "-1 is below"] {
        assert!(found.contains(words), "{words} is not in\n{found}");
    }
}
