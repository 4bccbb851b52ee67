//! `pubmark table`: prints runs as a table for other programs.

use std::path::PathBuf;

use clap::Args;
use pubmark_choose::Choice;
use pubmark_choose::table::{Records, tables};
use pubmark_record::record::Record;
use pubmark_record::store;
use pubmark_report::table::{self, Format};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;
use crate::values::{Word, one_of};

/// Print runs as a table for other programs: one row for each run.
///
/// Columns are the settings of the run (system, version, protocol, QoS, workload, scale, seed), its verdict, its
/// messages, and every figure with its unit in its name. Invalid runs have rows, too: filter by `verdict` or `reasons`.
/// docs/how-to/analyse-records.md shows queries.
///
/// A choice has one row per figure instead: of each run of each candidate, of its headroom and of its cost, with the
/// interval of the figure.
#[derive(Debug, Args)]
pub struct Table {
    /// Folders of runs, or of experiments and searches for capacity with all their runs; or of choices; or their
    /// record.json, experiment.json, capacity.json, choice.json
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Format of the table; a figure that was not measured is empty in CSV, null in NDJSON, a dash in Markdown
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
        let choices = self.runs.iter().filter(|path| store::is_a::<Choice>(path)).count();
        if choices > 0 && choices < self.runs.len() {
            return Err(Failure::usage("a table of choices has other columns than one of runs")
                .hint("give choices in a call of their own; `pubmark table CHOICE/runs/*` has their runs"));
        }
        if choices > 0 {
            printer.result(&self.of_choices()?)?;
            return Ok(ExitCode::Ok);
        }
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

    fn of_choices(&self) -> Result<String, Failure> {
        let mut choices = Vec::new();
        for path in &self.runs {
            let choice: Choice = rendering::load_as(path)?;
            let base = store::folder_of(path);
            let mut records = Records::new();
            for name in
                choice.candidates.iter().flat_map(|candidate| &candidate.runs).filter_map(|run| run.folder.as_ref())
            {
                // A folder that was moved or thinned out still has its choice.
                let folder = base.join(name);
                if store::is_a::<Record>(&folder) {
                    records.insert(name.clone(), rendering::load(&folder)?);
                }
            }
            choices.push((choice, records));
        }
        Ok(tables(choices.iter().map(|(choice, records)| (choice, records)), self.format))
    }
}
