//! `pubmark table`: runs as a table for other programs.

use std::path::{Path, PathBuf};

use clap::Args;
use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::record::Record;
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

/// How a table is written.
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
            let folders = folders_of(path)?;
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

/// Where the records are that a path names: itself, or all that an experiment or a search saved.
fn folders_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let names: Vec<String> = if store::is_a::<ExperimentRecord>(path) {
        let experiment: ExperimentRecord = rendering::load_as(path)?;
        let of_cell = |cell: pubmark_record::experiment::Cell| {
            let failed = cell.failures.into_iter().filter_map(|failure| Some((failure.repetition, failure.folder?)));
            let mut all: Vec<(u32, String)> =
                cell.runs.into_iter().map(|run| (run.repetition, run.folder)).chain(failed).collect();
            all.sort();
            all.dedup();
            all.into_iter().map(|(_, folder)| folder)
        };
        experiment.cells.into_iter().flat_map(of_cell).collect()
    } else if store::is_a::<CapacityRecord>(path) {
        let search: CapacityRecord = rendering::load_as(path)?;
        search.trials.into_iter().filter_map(|trial| trial.folder).collect()
    } else {
        return Ok(vec![path.to_owned()]);
    };
    let base = rendering::folder_of(path);
    // A repetition that failed early may have left logs and no record.
    Ok(names.into_iter().map(|name| base.join(name)).filter(|folder| store::is_a::<Record>(folder)).collect())
}
