//! JSON Schema of the workload file, for editors and for `pubmark schema workload`.

use crate::load::raw::RawWorkload;

/// The schema, indented, ending with a line feed.
pub fn workload_schema() -> String {
    let schema = schemars::schema_for!(RawWorkload);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
