//! `pubmark schema`: the JSON Schemas of the files that people write and read.

use clap::{Args, ValueEnum};

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Print the JSON Schema of a workload file or of a record.
///
/// Editors use the first to complete and check workload files, programs the second to read record.json.
#[derive(Debug, Args)]
pub struct Schema {
    /// Which file's schema
    pub of: Of,
}

/// Files with a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Of {
    /// A workload file
    Workload,
    /// record.json of a run
    Record,
}

impl Of {
    /// The schema as indented JSON.
    pub fn text(self) -> String {
        match self {
            Of::Workload => pubmark_model::jsonschema::workload_schema(),
            Of::Record => pubmark_record::schema::record_schema(),
        }
    }
}

impl Schema {
    /// Prints the schema.
    pub fn perform(self, printer: &Printer) -> Outcome {
        printer.result(&self.of.text())?;
        Ok(ExitCode::Ok)
    }
}
