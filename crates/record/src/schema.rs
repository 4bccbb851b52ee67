//! The record's JSON Schema, derived from its types, so that it cannot say anything else than the code does.

use crate::record::Record;

/// The JSON Schema (draft 2020-12) of `record.json`, as indented JSON with a final newline.
pub fn record_schema() -> String {
    let schema = schemars::schema_for!(Record);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
