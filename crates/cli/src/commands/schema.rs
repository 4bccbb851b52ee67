//! `pubmark schema`: the JSON Schemas of input files and records.

use clap::{Args, ValueEnum};

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Print the JSON Schema of a file that people write, or of a record.
///
/// Editors use the schemas of workload, experiment, requirements and run.yaml files to complete and check them, programs those of
/// records to read record.json, experiment.json, capacity.json, choice.json and paper.json.
#[derive(Debug, Args)]
pub struct Schema {
    /// The file
    pub of: Of,
}

/// Files with a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Of {
    /// A workload file
    Workload,
    /// An experiment's file
    Experiment,
    /// run.yaml: the specification of a run
    Run,
    /// record.json of a run
    Record,
    /// experiment.json of an experiment
    ExperimentRecord,
    /// capacity.json of a search for capacity
    CapacityRecord,
    /// paper.json of `pubmark paper`
    PaperRecord,
    /// A file of requirements for `pubmark choose`
    Requirements,
    /// choice.json of a choice
    Choice,
    /// What `pubmark runs --json` prints
    RunList,
    /// A line of `pubmark run --events FILE`
    Events,
}

impl Of {
    /// The schema as indented JSON.
    pub fn text(self) -> String {
        match self {
            Of::Workload => pubmark_model::jsonschema::workload_schema(),
            Of::Experiment => pubmark_model::jsonschema::experiment_schema(),
            Of::ExperimentRecord => pubmark_record::schema::experiment_schema(),
            Of::CapacityRecord => pubmark_record::schema::capacity_schema(),
            Of::PaperRecord => pubmark_paper::record::schema(),
            Of::Requirements => pubmark_choose::requirements::schema(),
            Of::Choice => pubmark_choose::record::schema(),
            Of::RunList => pubmark_record::schema::run_list_schema(),
            Of::Events => pubmark_runner::stream::schema(),
            Of::Run => pubmark_runner::spec::schema(),
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
