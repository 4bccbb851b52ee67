//! `pubmark report`: everything that is shown about a run, generated again from its record.

use std::path::PathBuf;

use clap::Args;
use pubmark_choose::Choice;
use pubmark_paper::PaperRecord;
use pubmark_paper::guidelines::{Collection, GUIDELINES_FILE};
use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::record::Record;
use pubmark_record::store::{self, Stored};
use pubmark_report::exports;
use pubmark_report::terminal::{self, TerminalOptions};
use pubmark_runner::save;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;

/// Rebuild the report of a run, an experiment, a search for capacity, a choice or a publication from its record.
///
/// Prints the summary and writes the HTML report and the tables into the folder. For a folder that contains folders of
/// publications, it writes `guidelines.md`: which system suits which requirement.
#[derive(Debug, Args)]
pub struct Report {
    /// Folder of the run, experiment, search, choice or publication; or its record.json, experiment.json, capacity.json, choice.json,
    /// paper.json
    pub run: PathBuf,

    /// Folder to write into, in place of that of the record
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print all details, not only the first screen
    #[arg(long, short)]
    pub verbose: bool,

    /// Print the record as JSON to standard output, write nothing
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}

/// How a kind of record is rendered.
struct Kind<Source> {
    files: fn(&Source) -> Vec<(String, String)>,
    summary: fn(&Source, &TerminalOptions<'_>) -> String,
}

impl Report {
    /// Renders the record again.
    pub fn perform(self, printer: &Printer) -> Outcome {
        if store::is_a::<ExperimentRecord>(&self.run) {
            return self.show(&Kind { files: exports::experiment, summary: terminal::experiment }, printer);
        }
        if store::is_a::<CapacityRecord>(&self.run) {
            return self.show(&Kind { files: exports::capacity, summary: terminal::capacity }, printer);
        }
        if store::is_a::<PaperRecord>(&self.run) {
            return self.show(&Kind { files: pubmark_paper::files, summary: pubmark_paper::summary }, printer);
        }
        if store::is_a::<Choice>(&self.run) {
            return self.show(&Kind { files: pubmark_choose::files, summary: pubmark_choose::summary }, printer);
        }
        if let Some(collection) = self.collection()? {
            return self.guidelines(&collection, printer);
        }
        self.show(&Kind::<Record> { files: exports::all, summary: terminal::summary }, printer)
    }

    /// The publications of a folder that does not itself contain a record.
    fn collection(&self) -> Result<Option<Collection>, Failure> {
        if !self.run.is_dir() || store::is_a::<Record>(&self.run) {
            return Ok(None);
        }
        Collection::load(&self.run).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error)
                .hint("give a folder whose folders hold readable `paper.json` of one type of machine")
        })
    }

    fn guidelines(&self, collection: &Collection, printer: &Printer) -> Outcome {
        if self.json {
            return Err(Failure::usage("there is no JSON of guidelines")
                .hint("the publications' records are `paper.json` in their folders"));
        }
        let file = self.out.as_deref().unwrap_or(&self.run).join(GUIDELINES_FILE);
        rendering::write(&file, &collection.page())?;
        let publications = collection.names().collect::<Vec<_>>().join(", ");
        printer.result(&format!("  {:<12}{publications}\n  {:<12}{}\n", "from", "guidelines", file.display()))?;
        Ok(ExitCode::Ok)
    }

    fn show<Source: Stored>(&self, kind: &Kind<Source>, printer: &Printer) -> Outcome {
        let record: Source = rendering::load_as(&self.run)?;
        if self.json {
            printer.result(&store::to_json(&record).map_err(|error| save::no_folder(&error))?)?;
            return Ok(ExitCode::Ok);
        }
        let folder = self.out.clone().unwrap_or_else(|| store::folder_of(&self.run));
        rendering::write_files(&(kind.files)(&record), &folder)?;
        let shown = folder.display().to_string();
        let options = TerminalOptions { verbose: self.verbose, ..printer.summary_options(Some(&shown)) };
        printer.result(&(kind.summary)(&record, &options))?;
        Ok(ExitCode::Ok)
    }
}
