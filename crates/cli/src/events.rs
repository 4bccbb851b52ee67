//! `--events`: what goes on, as lines of JSON for programs.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pubmark_record::record::{Record, Status};
use pubmark_runner::stream::{Begins, Counted, Ends, EventStream, Failed, Listener, STREAM_VERSION, StreamEvent};

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
        listener: Option<Listener>,
        printer: &Printer,
        perform: impl FnOnce(Option<&EventStream>) -> Outcome,
    ) -> Outcome {
        if json && self.take_output() {
            return Err(Failure::usage("`--events -` and `--json` both write to standard output")
                .hint("write the events to a file: `--events events.jsonl`"));
        }
        let to = self.events.as_deref().map(open).transpose()?;
        let is_wanted = to.is_some() || listener.is_some();
        let stream = is_wanted.then(|| EventStream::new(to, listener));
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

fn open(path: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdout()));
    }
    let file = File::create(path).map_err(|error| {
        Failure::from_error(ExitCode::Usage, &error).during(format!("failed to create `{}`", path.display()))
    })?;
    Ok(Box::new(file))
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

/// What is known of a run that begins, but not of an experiment or a search.
pub struct OfRun<'a> {
    /// The system.
    pub system: &'a str,
    /// What devices speak.
    pub protocol: &'a str,
    /// Number of this repetition, from 1, and repetitions in all.
    pub repetition: [u32; 2],
    /// Lengths of warm-up and window, seconds.
    pub window_s: [f64; 2],
}

/// Writes a sentence for people.
pub fn write_note(stream: Option<&EventStream>, text: String) {
    let Some(stream) = stream else { return };
    stream.write(&StreamEvent::Note { t_s: stream.now_s(), text });
}

/// Writes that something with a folder begins.
pub fn write_begin(stream: Option<&EventStream>, folder: &Path, name: &str, run: Option<OfRun<'_>>) {
    let Some(stream) = stream else { return };
    let [repetition, repetitions] = run.as_ref().map_or([1, 1], |run| run.repetition);
    let [warmup_s, duration_s] = run.as_ref().map_or([None, None], |run| run.window_s.map(Some));
    stream.write(&StreamEvent::Begins(Begins {
        t_s: stream.now_s(),
        stream_version: STREAM_VERSION,
        folder: folder.display().to_string(),
        name: name.to_owned(),
        repetition,
        repetitions,
        system: run.as_ref().map(|run| run.system.to_owned()),
        protocol: run.as_ref().map(|run| run.protocol.to_owned()),
        warmup_s,
        duration_s,
    }));
}

/// Writes that its folder is written; with the record of a run.
pub fn write_end(stream: Option<&EventStream>, folder: &Path, status: Status, record: Option<&Record>) {
    let Some(stream) = stream else { return };
    stream.write(&StreamEvent::Ends(Ends {
        t_s: stream.now_s(),
        folder: folder.display().to_string(),
        status: status.as_str().to_owned(),
        verdict: record.map(|record| record.verdict.status.as_str().to_owned()),
        counted: record.map(|record| {
            let messages = &record.delivery.messages;
            let (offered, sent) = (messages.offered, messages.sent);
            Counted { offered, sent, delivered: messages.delivered, lost: messages.lost }
        }),
    }));
}
