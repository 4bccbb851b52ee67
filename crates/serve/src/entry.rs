//! What the interface says of a submission, or of a folder of results that was there before.

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

/// Bytes at the end of a file of events in which the newest progress is looked for.
const TAIL_BYTES: u64 = 16 << 10;

/// A submission, or a folder of results that was made without the server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunEntry {
    /// Its name in this interface: of a submission, or of the folder.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// How far it is.
    pub state: State,
    /// Submissions in front of it; `null` unless it waits.
    pub position: Option<usize>,
    /// What it waits for besides those in front of it: a run of another server on this machine; `null` otherwise.
    pub waits_for: Option<String>,
    /// Workload, or experiment.
    pub name: String,
    /// Systems.
    pub systems: Vec<String>,
    /// When it was submitted, RFC 3339; `null` for a folder that was made without the server.
    pub submitted_at: Option<String>,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended; `null` where that is not known.
    pub ended_at: Option<String>,
    /// What the process ended with (docs/reference/exit-codes.md); `null` where that is not known, or a signal ended it.
    pub exit_code: Option<i32>,
    /// Folders of its results in the folder of results; one for each repetition of a run.
    pub folders: Vec<String>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// What came of it: of its last folder.
    pub headline: Option<Headline>,
    /// Messages offered per second, of a run; `null` where that is not known.
    pub offered_per_s: Option<f64>,
    /// Devices of a run; `null` where that is not known.
    pub devices: Option<u64>,
    /// Note and tags, of its last folder; `null` without a result.
    pub note: Option<Note>,
    /// Why the note cannot be read; `null` if it can.
    pub note_problem: Option<String>,
    /// How a run that is under way goes; `null` in a list.
    pub progress: Option<Progress>,
}

impl RunEntry {
    /// Of a submission.
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

    /// Of a folder.
    pub fn of_folder(result: &Listed) -> RunEntry {
        let headline = result.headline.clone();
        let facts = result.facts.as_ref();
        RunEntry {
            id: headline.folder.clone(),
            kind: headline.kind,
            state: match headline.status {
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

    /// When it began, or was submitted: lists are in this order.
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
