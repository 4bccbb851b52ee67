//! `pubmark report`: everything that is shown of a run, made again from its record.

use std::path::PathBuf;

use clap::Args;
use pubmark_record::store;

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;
use crate::rendering;

/// Rebuild the report of a run from its record.
///
/// Prints the summary and writes report.html and the tables into the run's folder.
#[derive(Debug, Args)]
pub struct Report {
    /// Folder of the run, or its record.json
    pub run: PathBuf,

    /// Folder to write into, in place of the run's
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the record as JSON to standard output, write nothing
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}

impl Report {
    /// Renders the record again.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let record = rendering::load(&self.run)?;
        if self.json {
            printer.result(&store::to_json(&record).map_err(|error| rendering::unstored(&error))?)?;
            return Ok(ExitCode::Ok);
        }
        let folder = self.out.unwrap_or_else(|| rendering::folder_of(&self.run));
        rendering::write_exports(&record, &folder)?;
        printer.result(&rendering::summary(&record, printer, Some(&folder)))?;
        Ok(ExitCode::Ok)
    }
}
