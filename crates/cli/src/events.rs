//! `--events`: progress and events as lines of JSON, for programs.

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

/// Destination of events.
#[derive(Clone, Debug, Default, Args)]
pub struct Events {
    /// Write progress and events to FILE as lines of JSON, once a second and at each event (`pubmark schema events`); `-`
    /// writes them to standard output, instead of the summary
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub events: Option<PathBuf>,

    /// Command line for records, instead of this one: a JSON array. `pubmark serve` passes one that a reader can execute who
    /// has the folder of results but not the server's files
    #[arg(long, value_name = "WORDS", hide = true, value_parser = words, requires = "events")]
    pub recorded_command: Option<Words>,
}

/// Words of a command line.
#[derive(Clone, Debug)]
pub struct Words(Vec<String>);

fn words(text: &str) -> Result<Words, serde_json::Error> {
    serde_json::from_str(text).map(Words)
}

impl Events {
    /// This machine, with the command line that records contain.
    pub fn host(&self) -> Host {
        let host = host::this();
        match &self.recorded_command {
            Some(Words(command)) => Host { command: command.clone(), ..host },
            None => host,
        }
    }

    /// Returns whether events replace the output of results.
    pub fn take_output(&self) -> bool {
        self.events.as_deref() == Some(Path::new("-"))
    }

    /// Shows the result of a command that created a folder: as JSON, or as text unless events go to standard output.
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

    /// Opens the stream, passes it to `perform`, and writes the error if that fails.
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
        // A closed pipe is no error: the reader has what it needs, as on standard output.
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
