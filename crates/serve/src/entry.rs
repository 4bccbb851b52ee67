//! The representation of a submission, or of a results folder that existed before, in the interface.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use pubmark_record::headline::{Headline, Kind};
use pubmark_record::record::Status as RecordStatus;
use pubmark_runner::stream::{Progress, StreamEvent};
use schemars::JsonSchema;
use serde::Serialize;

use crate::library::Listed;
use crate::library::note::Note;
use crate::store::{Entry, Failure, State};

/// Number of bytes at the end of an event file in which the newest progress is searched.
const TAIL_BYTES: u64 = 16 << 10;

/// A submission, or a results folder that was created without the server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunEntry {
    /// Identifier of a submission, or name of a results folder.
    pub id: String,
    /// Kind of the entry.
    pub kind: Kind,
    /// State of the entry.
    pub state: State,
    /// Number of submissions before it in the queue; `null` unless it is queued.
    pub position: Option<usize>,
    /// What it waits for besides earlier submissions: a run of another server on this machine; `null` otherwise.
    pub waits_for: Option<String>,
    /// Name of the workload or experiment.
    pub name: String,
    /// Systems.
    pub systems: Vec<String>,
    /// Time of the submission, RFC 3339; `null` for a folder that was created without the server.
    pub submitted_at: Option<String>,
    /// Time of the start.
    pub started_at: Option<String>,
    /// Time of the end; `null` if it is not known.
    pub ended_at: Option<String>,
    /// Exit code of the process (docs/reference/exit-codes.md); `null` if it is not known, or if a signal ended the
    /// process.
    pub exit_code: Option<i32>,
    /// Results folders within the server's folder of results; one for each repetition of a run.
    pub folders: Vec<String>,
    /// Reason of the failure.
    pub error: Option<Failure>,
    /// Summary of the result in the folder that the request names, or else in its newest folder with a result.
    pub headline: Option<Headline>,
    /// Messages offered per second by a run; `null` if it is not known.
    pub offered_per_s: Option<f64>,
    /// Number of devices of a run; `null` if it is not known.
    pub devices: Option<u64>,
    /// Note and tags of the same folder; `null` without a result.
    pub note: Option<Note>,
    /// Why the note cannot be read; `null` if it can.
    pub note_problem: Option<String>,
    /// Progress of the current run; `null` in a list.
    pub progress: Option<Progress>,
}

impl RunEntry {
    /// The entry for a submission.
    pub fn of_submission(entry: Entry, position: Option<usize>, result: Option<&Listed>) -> RunEntry {
        let Entry { submitted, status } = entry;
        let facts = result.and_then(|one| one.facts.as_ref());
        RunEntry {
            id: submitted.id,
            kind: submitted.kind,
            state: status.state,
            position,
            waits_for: None,
            name: submitted.name,
            systems: submitted.systems,
            submitted_at: Some(submitted.submitted_at),
            started_at: status.started_at,
            ended_at: status.ended_at,
            exit_code: status.exit_code,
            folders: status.folders,
            error: status.error,
            headline: result.map(|one| one.headline.clone()),
            offered_per_s: facts.map(|facts| facts.offered_per_s),
            devices: facts.map(|facts| facts.devices),
            note: result.map(|one| one.note.clone()),
            note_problem: result.and_then(|one| one.note_problem.clone()),
            progress: None,
        }
    }

    /// The entry for a results folder.
    pub fn of_folder(result: &Listed) -> RunEntry {
        let headline = result.headline.clone();
        let facts = result.facts.as_ref();
        RunEntry {
            id: headline.folder.clone(),
            kind: headline.kind,
            state: match headline.status {
                _ if headline.in_progress => State::Running,
                RecordStatus::Complete => State::Complete,
                RecordStatus::Interrupted => State::Interrupted,
            },
            position: None,
            waits_for: None,
            name: headline.workload.join(", "),
            systems: headline.system.clone(),
            submitted_at: None,
            started_at: Some(headline.started_at.clone()),
            ended_at: None,
            exit_code: None,
            folders: vec![headline.folder.clone()],
            error: None,
            headline: Some(headline),
            offered_per_s: facts.map(|facts| facts.offered_per_s),
            devices: facts.map(|facts| facts.devices),
            note: Some(result.note.clone()),
            note_problem: result.note_problem.clone(),
            progress: None,
        }
    }

    /// Time of the start, or else of the submission: lists are in this order.
    pub fn at(&self) -> &str {
        self.started_at.as_deref().or(self.submitted_at.as_deref()).unwrap_or("")
    }
}

/// The newest progress that a child wrote.
pub fn newest_progress(events: &Path) -> Option<Progress> {
    let mut file = std::fs::File::open(events).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
    let mut text = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut text).ok()?;
    text.split(|byte| *byte == b'\n').rev().find_map(|line| match serde_json::from_slice(line) {
        Ok(StreamEvent::Progress(progress)) => Some(*progress),
        _ => None,
    })
}
