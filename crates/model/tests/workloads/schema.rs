//! The JSON Schema allows every built-in file and forbids what the loader forbids, checked by a small validator.

use pubmark_model::{builtin, experiment, jsonschema};
use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(&jsonschema::workload_schema()).unwrap()
}

/// A YAML text as JSON, without the positions that only the loader has.
fn json(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// Problems of `value` under `part` of the schema; knows the keywords that our schema uses, and fails on any other.
fn problems(root: &Value, part: &Value, value: &Value, place: &str) -> Vec<String> {
    let Some(keywords) = part.as_object() else { return Vec::new() };
    let mut found = Vec::new();
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                found.extend(problems(root, root.pointer(pointer).unwrap(), value, place));
            }
            "type" => {
                let types: Vec<&str> = match rule {
                    Value::String(one) => vec![one],
                    Value::Array(many) => many.iter().map(|one| one.as_str().unwrap()).collect(),
                    _ => panic!("{rule}"),
                };
                if !types.iter().any(|kind| is(kind, value)) {
                    found.push(format!("{place}: {value} is not {types:?}"));
                }
            }
            "enum" => found
                .extend((!rule.as_array().unwrap().contains(value)).then(|| format!("{place}: {value} not in {rule}"))),
            "const" => found.extend((rule != value).then(|| format!("{place}: {value} is not {rule}"))),
            "anyOf" | "oneOf" => {
                let branches: Vec<_> =
                    rule.as_array().unwrap().iter().map(|branch| problems(root, branch, value, place)).collect();
                if !branches.iter().any(Vec::is_empty) {
                    found.extend(branches.into_iter().flatten());
                }
            }
            "pattern" => {
                let ok =
                    value.as_str().is_none_or(|text| regex::Regex::new(rule.as_str().unwrap()).unwrap().is_match(text));
                found.extend((!ok).then(|| format!("{place}: {value} does not look like {rule}")));
            }
            "required" => {
                let missing = rule.as_array().unwrap().iter().filter(|key| value.get(key.as_str().unwrap()).is_none());
                found.extend(missing.map(|key| format!("{place}: {key} is missing")));
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(problems(root, rule, item, &format!("{place}.{index}")));
                }
            }
            "properties" => {
                for (key, item) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(key) {
                        found.extend(problems(root, rule, item, &format!("{place}.{key}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = part.get("properties").and_then(Value::as_object);
                let others = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
                for (key, item) in others {
                    match rule {
                        Value::Bool(false) => found.push(format!("{place}: unknown key {key}")),
                        rule => found.extend(problems(root, rule, item, &format!("{place}.{key}"))),
                    }
                }
            }
            "$schema" | "$defs" | "title" | "description" | "default" => {}
            other => panic!("the schema uses `{other}`, which this check does not know"),
        }
    }
    found
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
fn every_builtin_file_is_allowed() {
    let schema = schema();
    for builtin in builtin::all() {
        let found = problems(&schema, &schema, &json(builtin.text()), builtin.name);
        assert!(found.is_empty(), "{found:#?}");
    }
}

fn experiment_schema() -> Value {
    serde_json::from_str(&jsonschema::experiment_schema()).unwrap()
}

#[test]
fn every_built_in_experiment_is_allowed_as_its_file_and_as_it_is_written() {
    let schema = experiment_schema();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    for listed in experiment::all().unwrap() {
        let file = std::fs::read_to_string(format!("{folder}/{}.yaml", listed.name)).unwrap();
        for text in [file, listed.experiment.to_yaml()] {
            let found = problems(&schema, &schema, &json(&text), listed.name);
            assert!(found.is_empty(), "{found:#?}");
        }
    }
}

#[test]
fn what_the_loader_refuses_in_an_experiment_is_forbidden() {
    let schema = experiment_schema();
    for (axes, place) in [
        ("{}", "system"),
        ("{system: a, qoss: 0}", "qoss"),
        ("{system: a, qos: [0, high]}", "high"),
        ("{system: a, topology: 3 ring}", "3 ring"),
        ("{system: {label: b}}", "system"),
        ("{system: a, payload: 3 parsec}", "3 parsec"),
    ] {
        let text = format!("{{name: t, workload: hello, axes: {axes}}}");
        let found = problems(&schema, &schema, &json(&text), "file").join("\n");
        assert!(found.contains(place), "{text} gave {found:?}");
        assert!(experiment::parse("t.yaml", &text, &|_, _| Ok(())).is_err(), "{text}");
    }
}

#[test]
fn what_the_loader_refuses_by_shape_is_forbidden() {
    let schema = schema();
    for (text, place) in [
        ("name: t\ndevices: []\n", "subscribers"),
        ("name: t\ndevices: [{nmae: a}]\nsubscribers: []\n", "nmae"),
        ("name: t\ndevices: [{name: a, every: 10 sec}]\nsubscribers: []\n", "10 sec"),
        ("name: t\ndevices: [{name: a, payload: {mean: 1KB, sdd: 10%}}]\nsubscribers: []\n", "sdd"),
        ("name: t\ndevices: [{name: a, arrival: sometimes}]\nsubscribers: []\n", "sometimes"),
        ("name: t\ndevices: [{name: a, qos: 3}]\nsubscribers: [{}]\n", "filters"),
        ("name: t\ndevices: [{name: a, churn: {disconnect: 5%, reconnect: 5% every 1s}}]\nsubscribers: []\n", "5%"),
    ] {
        let found = problems(&schema, &schema, &json(text), "file").join("\n");
        assert!(found.contains(place), "{text} gave {found:?}");
    }
}

#[test]
fn every_key_is_described() {
    fn walk(part: &Value, place: &str, bare: &mut Vec<String>) {
        for (key, property) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if property.get("description").is_none() {
                bare.push(format!("{place}.{key}"));
            }
        }
        for (name, definition) in part.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            walk(definition, name, bare);
        }
    }
    let mut bare = Vec::new();
    walk(&schema(), "workload", &mut bare);
    walk(&experiment_schema(), "experiment", &mut bare);
    assert!(bare.is_empty(), "{bare:?}");
}
