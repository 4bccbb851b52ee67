//! `--events`: what goes on, as lines of JSON for programs.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use pubmark_record::record::{Status, VerdictStatus};
use pubmark_runner::stream::{Begins, Ends, EventStream, Failed, STREAM_VERSION, StreamEvent};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Where events go.
#[derive(Clone, Debug, Default, Args)]
pub struct Events {
    /// Write what goes on to FILE as lines of JSON, once a second and when something happens (`pubmark schema events`); `-` writes it to
    /// standard output, in place of the summary
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub events: Option<PathBuf>,
}

impl Events {
    /// Do they take the place of what is printed?
    pub fn take_output(&self) -> bool {
        self.events.as_deref() == Some(Path::new("-"))
    }

    /// Opens the stream, hands it to what is done, and writes how that failed.
    pub fn during(
        &self,
        json: bool,
        printer: &Printer,
        perform: impl FnOnce(Option<&EventStream>) -> Outcome,
    ) -> Outcome {
        if json && self.take_output() {
            return Err(Failure::usage("`--events -` and `--json` both write to standard output")
                .hint("write the events to a file: `--events events.jsonl`"));
        }
        let stream = self.events.as_deref().map(open).transpose()?;
        let outcome = perform(stream.as_ref());
        if let Err(failure) = &outcome {
            write_failure(stream.as_ref(), failure);
        }
        // A reader that went away has what it wanted, as on standard output.
        if let Some(error) = stream.and_then(|stream| stream.failure()).filter(|_| !self.take_output()) {
            let name = self.events.as_deref().unwrap_or(Path::new("-")).display();
            printer.note(&format!("warning: events are missing in `{name}`: {error}"));
        }
        outcome
    }
}

fn open(path: &Path) -> Result<EventStream, Failure> {
    if path == Path::new("-") {
        return Ok(EventStream::to(Box::new(std::io::stdout())));
    }
    let file = File::create(path).map_err(|error| {
        Failure::from_error(ExitCode::Usage, &error).during(format!("failed to create `{}`", path.display()))
    })?;
    Ok(EventStream::to(Box::new(file)))
}

/// Writes that something came to no outcome.
pub fn write_failure(stream: Option<&EventStream>, failure: &Failure) {
    let Some(stream) = stream else { return };
    stream.write(&StreamEvent::Failed(Failed {
        t_s: stream.now_s(),
        exit_code: failure.exit.number(),
        chain: failure.chain.clone(),
        hint: failure.hint.clone(),
    }));
}

/// Writes that something with a folder begins.
pub fn write_begin(
    stream: Option<&EventStream>,
    folder: &Path,
    name: &str,
    [repetition, repetitions]: [u32; 2],
    [warmup_s, duration_s]: [Option<f64>; 2],
) {
    let Some(stream) = stream else { return };
    stream.write(&StreamEvent::Begins(Begins {
        t_s: stream.now_s(),
        stream_version: STREAM_VERSION,
        folder: folder.display().to_string(),
        name: name.to_owned(),
        repetition,
        repetitions,
        warmup_s,
        duration_s,
    }));
}

/// Writes that its folder is written.
pub fn write_end(stream: Option<&EventStream>, folder: &Path, status: Status, verdict: Option<VerdictStatus>) {
    let Some(stream) = stream else { return };
    stream.write(&StreamEvent::Ends(Ends {
        t_s: stream.now_s(),
        folder: folder.display().to_string(),
        status: status.as_str().to_owned(),
        verdict: verdict.map(|verdict| verdict.as_str().to_owned()),
    }));
}
