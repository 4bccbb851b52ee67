//! `pubmark reference`: the generated pages of docs/reference, written or checked.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use pubmark_catalogue as catalogue;
use pubmark_record::store;
use pubmark_report::wrapping::COLUMNS;

use crate::commands::schema::Of;
use crate::exit_code::{self, ExitCode};
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Write the generated pages of docs/reference.
#[derive(Debug, Args)]
pub struct Reference {
    /// The folder
    pub folder: PathBuf,

    /// Write nothing; fail if a page differs from what would be written
    #[arg(long)]
    pub check: bool,
}

/// A page: its file name, and the function that writes its text from the program's arguments.
type Page = (&'static str, fn(&mut Command) -> Result<String, Failure>);

/// The pages. To add one, add a row here.
const PAGES: &[Page] = &[
    ("cli.md", command_line),
    ("workloads.md", |_| Ok(catalogue::workloads::markdown()?)),
    ("systems.md", |_| Ok(catalogue::systems::markdown()?)),
    ("protocols.md", |_| Ok(catalogue::protocols::markdown())),
    ("experiments.md", |_| Ok(catalogue::experiments::markdown()?)),
    ("links.md", |_| Ok(catalogue::links::markdown()?)),
    ("exit-codes.md", |_| Ok(exit_code::markdown())),
    ("verdicts.md", |_| Ok(pubmark_record::codes::reference())),
    ("workload.schema.json", |_| Ok(Of::Workload.text())),
    ("run.schema.json", |_| Ok(Of::Run.text())),
    ("experiment.schema.json", |_| Ok(Of::Experiment.text())),
    ("record.schema.json", |_| Ok(Of::Record.text())),
    ("capacity-record.schema.json", |_| Ok(Of::CapacityRecord.text())),
    ("requirements.schema.json", |_| Ok(Of::Requirements.text())),
    ("choice.schema.json", |_| Ok(Of::Choice.text())),
    ("run-list.schema.json", |_| Ok(Of::RunList.text())),
    ("events.schema.json", |_| Ok(Of::Events.text())),
    #[cfg(feature = "serve")]
    ("metrics.md", |_| Ok(pubmark_serve::metrics::markdown())),
    #[cfg(feature = "serve")]
    ("openapi.json", |_| Ok(pubmark_serve::document())),
    ("experiment-record.schema.json", |_| Ok(Of::ExperimentRecord.text())),
    ("paper-record.schema.json", |_| Ok(Of::PaperRecord.text())),
];

impl Reference {
    /// Writes the pages, or lists those that differ.
    pub fn perform(self, program: &mut Command, printer: &Printer) -> Outcome {
        let mut differing = Vec::new();
        for (name, page) in PAGES {
            let path = self.folder.join(name);
            let wanted = page(program)?;
            if std::fs::read_to_string(&path).is_ok_and(|present| present == wanted) {
                continue;
            }
            if !self.check {
                write(&path, &wanted)?;
                printer.note(&format!("wrote {}", path.display()));
            }
            differing.push(path.display().to_string());
        }
        if self.check && !differing.is_empty() {
            let message = format!("the reference is not what the code says: {}", differing.join(", "));
            return Err(Failure::usage(message).hint("`make reference` writes it again"));
        }
        printer.note(&format!("{}: {} pages, as the code says", self.folder.display(), PAGES.len()));
        Ok(ExitCode::Ok)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    store::write_whole(path, text.as_bytes()).map_err(|error| Failure::from_error(ExitCode::Usage, &error))
}

/// The page of the command line: the long help of every visible verb.
fn command_line(program: &mut Command) -> Result<String, Failure> {
    let mut program = program.clone().term_width(COLUMNS);
    program.build();
    let mut text = String::from("# Command line\n\n```text\n");
    text.push_str(program.render_long_help().to_string().trim_end());
    text.push_str("\n```\n");
    for verb in program.get_subcommands_mut().filter(|verb| !verb.is_hide_set()) {
        text.push_str(&format!("\n## {}\n\n```text\n", verb.get_name()));
        let help = verb.clone().term_width(COLUMNS).render_long_help().to_string();
        for line in help.trim_end().lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str("```\n");
    }
    Ok(text)
}
