//! A writer of readable YAML, for values that are mappings, lists, strings and numbers.

use serde_json::Value;

/// Keys that come first in a mapping, in this order.
const FIRST: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "image"];

/// Formats one document.
pub fn document(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text
}

/// Formats several documents for one file.
pub fn documents(values: &[Value]) -> String {
    values.iter().map(document).collect::<Vec<_>>().join("---\n")
}

fn write(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            // Scalar fields come before nested ones, as a human reader expects.
            fields.sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
            for (key, value) in fields {
                text.push_str(&format!("{indent}{}:", scalar(key)));
                below(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                write(&mut inner, item, depth + 1);
                match item {
                    // The first line of a mapping in a list is on the line of the dash.
                    Value::Object(fields) if !fields.is_empty() => {
                        text.push_str(&format!("{indent}- {}", inner.trim_start()));
                    }
                    _ => {
                        text.push_str(&format!("{indent}-"));
                        below(text, item, depth);
                    }
                }
            }
        }
        _ => text.push_str(&format!("{indent}{}\n", flat(value))),
    }
}

/// Formats a value that follows a key or a dash.
fn below(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if fields.is_empty() => text.push_str(" {}\n"),
        Value::Array(items) if items.is_empty() => text.push_str(" []\n"),
        Value::Object(_) | Value::Array(_) => {
            text.push('\n');
            write(text, value, depth + 1);
        }
        Value::String(lines) if is_block(lines) => {
            let indent = "  ".repeat(depth + 1);
            let keeps = if lines.ends_with('\n') { "" } else { "-" };
            text.push_str(&format!(" |{keeps}\n"));
            for line in lines.trim_end_matches('\n').split('\n') {
                if line.is_empty() {
                    text.push('\n');
                } else {
                    text.push_str(&format!("{indent}{line}\n"));
                }
            }
        }
        _ => text.push_str(&format!(" {}\n", flat(value))),
    }
}

/// Returns whether the text can be a literal block: its first line is not empty and does not begin with a space, at most one
/// line break ends it, and it has no other control characters.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(|c| c == '\n' || !c.is_control())
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A string without quotes if it cannot be read as another type; otherwise as JSON writes it, which is valid YAML.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && text.chars().all(plain);
    let means_something =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    match is_word && !means_something {
        true => text.to_owned(),
        false => Value::String(text.to_owned()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_written_as_people_do() {
        let value = json!({"kind": "Job", "spec": {"count": 3, "words": ["run", "yes", "--nodes", ""], "none": {},
                           "files": {"a.conf": "one\n two\n\nthree\n"}, "list": [{"name": "a", "at": "1:2"}, {"name": "b"}]}});
        assert_eq!(
            document(&value),
            "kind: Job\nspec:\n  count: 3\n  files:\n    a.conf: |\n      one\n       two\n\n      three\n  list:\n    \
             - name: a\n      at: \"1:2\"\n    - name: b\n  none: {}\n  words:\n    - run\n    - \"yes\"\n    - \"--nodes\"\n    \
             - \"\"\n"
        );
    }
}
