//! `--events`: the progress of a command, as lines of JSON for programs.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pubmark_report::terminal::TerminalOptions;
use pubmark_runner::Host;
use pubmark_runner::stream::{EventStream, Listener};
use serde::Serialize;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::host;
use crate::printer::Printer;

/// Where events are written.
#[derive(Clone, Debug, Default, Args)]
pub struct Events {
    /// Write the progress to FILE as lines of JSON, once a second and when something happens (`pubmark schema events`);
    /// `-` writes it to standard output, in place of the summary
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub events: Option<PathBuf>,

    /// Command line that records store in place of this one, as a JSON array. `pubmark serve` passes a command that a
    /// reader can execute who has the folder of results and not the server's files
    #[arg(long, value_name = "WORDS", hide = true, value_parser = words, requires = "events")]
    pub recorded_command: Option<Words>,
}

/// The words of a command line.
#[derive(Clone, Debug)]
pub struct Words(Vec<String>);

fn words(text: &str) -> Result<Words, serde_json::Error> {
    serde_json::from_str(text).map(Words)
}

impl Events {
    /// This machine, with the command line that records store.
    pub fn host(&self) -> Host {
        let host = host::this();
        match &self.recorded_command {
            Some(Words(command)) => Host { command: command.clone(), ..host },
            None => host,
        }
    }

    /// Whether events are printed in place of the summary.
    pub fn take_output(&self) -> bool {
        self.events.as_deref() == Some(Path::new("-"))
    }

    /// Shows the result of a command that created a folder: as JSON, or as text if no events are printed.
    pub fn show<Kind: Serialize>(
        &self,
        json: bool,
        (record, folder): (&Kind, &Path),
        words: fn(&Kind, &TerminalOptions<'_>) -> String,
        printer: &Printer,
    ) -> Result<(), Failure> {
        if json {
            return printer.json(record);
        }
        let folder = folder.display().to_string();
        match self.take_output() {
            true => Ok(()),
            false => printer.result(&words(record, &printer.summary_options(Some(&folder)))),
        }
    }

    /// Opens the stream, passes it to the work, and writes an event if the work failed.
    pub fn during(
        &self,
        json: bool,
        listener: Option<Listener>,
        printer: &Printer,
        perform: impl FnOnce(&EventStream) -> Outcome,
    ) -> Outcome {
        if json && self.take_output() {
            return Err(Failure::usage("`--events -` and `--json` both write to standard output")
                .hint("write the events to a file: `--events events.jsonl`"));
        }
        let to = self.events.as_deref().map(open).transpose()?;
        let stream = EventStream::new(to, listener);
        let outcome = perform(&stream);
        if let Err(failure) = &outcome {
            failure.write(&stream);
        }
        // If the reader closed standard output, that is not an error, as for other results.
        if let Some(error) = stream.failure().filter(|_| !self.take_output()) {
            let name = self.events.as_deref().unwrap_or(Path::new("-")).display();
            printer.note(&format!("warning: events are missing in `{name}`: {error}"));
        }
        outcome
    }
}

fn open(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdout()));
    }
    let file = File::create(path).map_err(|error| {
        Failure::from_error(ExitCode::Usage, &error).during(format!("failed to create `{}`", path.display()))
    })?;
    Ok(Box::new(file))
}
