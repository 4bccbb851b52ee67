//! `pubmark compare`: records of several runs side by side.

use std::path::PathBuf;

use clap::Args;
use pubmark_record::comparison;
use pubmark_report::html;
use pubmark_report::terminal::{self, TerminalOptions};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;

/// Put records of several runs side by side.
///
/// Runs must have the same schedule (workload, seed, length); others are refused. The built-in broker and invalid runs are
/// shown and never ranked.
#[derive(Debug, Args)]
pub struct Compare {
    /// Folders of the runs, or their record.json
    #[arg(required = true, num_args = 2..=comparison::MOST_RUNS, value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Write the comparison as one offline HTML file too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Compare {
    /// Loads the records and compares them.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let records = self.runs.iter().map(|run| rendering::load(run)).collect::<Result<Vec<_>, Failure>>()?;
        let compared = comparison::compare(&records).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error).hint("run each with the same workload, `--seed`, `--duration`")
        })?;
        let options = TerminalOptions { colour: printer.colours_result(), folder: None };
        if let Some(path) = &self.html {
            rendering::write(path, &html::comparison(&compared))?;
        }
        printer.result(&terminal::comparison(&compared, &options))?;
        Ok(ExitCode::Ok)
    }
}
