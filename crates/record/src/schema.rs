//! JSON Schemas of records, derived from their types, so that they cannot say anything else than the code does.

use crate::capacity::CapacityRecord;
use crate::experiment::ExperimentRecord;
use crate::headline::RunList;
use crate::record::Record;

/// The JSON Schema (draft 2020-12) of `record.json`, as indented JSON with a final newline.
pub fn record_schema() -> String {
    indented(&schemars::schema_for!(Record))
}

/// The same of `experiment.json`.
pub fn experiment_schema() -> String {
    indented(&schemars::schema_for!(ExperimentRecord))
}

/// The same of `capacity.json`.
pub fn capacity_schema() -> String {
    indented(&schemars::schema_for!(CapacityRecord))
}

/// The same of what `pubmark runs --json` prints.
pub fn run_list_schema() -> String {
    indented(&schemars::schema_for!(RunList))
}

fn indented(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
