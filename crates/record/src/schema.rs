//! JSON Schemas of records, derived from the types, so that they always agree with the code.

use crate::capacity::CapacityRecord;
use crate::experiment::ExperimentRecord;
use crate::headline::RunList;
use crate::record::Record;

/// The JSON Schema (draft 2020-12) of `record.json`, as indented JSON with a final newline.
pub fn record_schema() -> String {
    indented(&schemars::schema_for!(Record))
}

/// The JSON Schema of `experiment.json`, in the same form.
pub fn experiment_schema() -> String {
    indented(&schemars::schema_for!(ExperimentRecord))
}

/// The JSON Schema of `capacity.json`, in the same form.
pub fn capacity_schema() -> String {
    indented(&schemars::schema_for!(CapacityRecord))
}

/// The JSON Schema of the output of `pubmark runs --json`, in the same form.
pub fn run_list_schema() -> String {
    indented(&schemars::schema_for!(RunList))
}

fn indented(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
