//! JSON Schemas of the files that people write, for editors and for `pubmark schema`.

use crate::experiment::raw::RawExperiment;
use crate::load::raw::RawWorkload;

/// The schema of a workload file, indented, ending with a line feed.
pub fn workload_schema() -> String {
    indented(&schemars::schema_for!(RawWorkload))
}

/// The schema of an experiment file, in the same form.
pub fn experiment_schema() -> String {
    indented(&schemars::schema_for!(RawExperiment))
}

fn indented(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
