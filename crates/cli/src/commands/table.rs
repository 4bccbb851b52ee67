//! `pubmark table`: prints runs as a table for other programs.

use std::path::PathBuf;

use clap::Args;
use pubmark_record::store;
use pubmark_report::table::{self, Format};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;
use crate::values::{Word, one_of};

/// Print runs as a table for other programs: one row a run.
///
/// Columns are what the run was (system, version, protocol, QoS, workload, scale, seed), its verdict, its messages, and every figure with
/// its unit in its name. Rows of invalid runs are there, too: filter by `verdict` or `reasons`. docs/how-to/analyse-records.md shows
/// queries.
#[derive(Debug, Args)]
pub struct Table {
    /// Folders of runs, experiments and searches for capacity, of which all runs are taken; or their record.json, experiment.json,
    /// capacity.json
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// How the table is written; what was not measured is empty in CSV, null in NDJSON, a dash in Markdown
    #[arg(long, value_name = "FORMAT", value_parser = one_of(FORMATS), default_value = "csv")]
    pub format: Format,
}

/// Formats of a table.
const FORMATS: &[Word<Format>] = &[
    ("csv", "Comma-separated, with a header", Format::Csv),
    ("ndjson", "A JSON object a line", Format::Ndjson),
    ("markdown", "A table of Markdown", Format::Markdown),
];

impl Table {
    /// Prints the table.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let mut records = Vec::new();
        for path in &self.runs {
            let folders = store::run_folders(path).map_err(rendering::unreadable)?;
            if folders.is_empty() {
                return Err(Failure::new(ExitCode::Usage, format!("`{}` holds no run", path.display()))
                    .hint("give a folder with runs that were made, for instance `runs/latest`"));
            }
            for folder in folders {
                records.push(rendering::load(&folder)?);
            }
        }
        printer.result(&table::table(&records, self.format))?;
        Ok(ExitCode::Ok)
    }
}
