//! The journal of an experiment: a line of JSON for each event, synchronised to disk before the next step begins.
//! However an experiment ends, it can be resumed from its journal.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pubmark_record::experiment::FailureKind;
use pubmark_record::in_use::JOURNAL_FILE;
use pubmark_record::record::VerdictStatus;
use serde::{Deserialize, Serialize};

/// Version of the format.
const VERSION: u32 = 1;
/// Largest journal that is read: 500 cells × 1,000 repetitions, and as many again, × two lines of 300 bytes.
const LARGEST_BYTES: u64 = 1 << 30;

/// Longest wait for the lock. The lock is released with the last copy of its descriptor, and a child process of the
/// former owner has a copy until it executes its own program (flock(2), fork(2)).
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// An event of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The experiment was planned. The first line.
    Planned(Planned),
    /// Further values of its axes were added.
    Extended(Extended),
    /// pubmark was started on it, the first time or again.
    #[serde(rename = "sitting")]
    Started {
        /// When, RFC 3339, UTC.
        at: String,
        /// Its version.
        pubmark_version: String,
    },
    /// A run began; until it ends, the content of its folder is undefined.
    Began(RunPosition),
    /// A run ended and counts.
    Counted {
        /// The run.
        #[serde(flatten)]
        place: RunPosition,
        /// Its folder, relative to the experiment's.
        folder: String,
        /// Its verdict.
        verdict: VerdictStatus,
        /// Its wait for a quiet machine and its duration.
        #[serde(flatten)]
        effort: Effort,
    },
    /// A run failed and has no figures.
    Failed {
        /// The run.
        #[serde(flatten)]
        place: RunPosition,
        /// Kind of the failure.
        kind: FailureKind,
        /// Code of the verdict's rule that decided it; `None` without a record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The reason in a sentence.
        text: String,
        /// Its folder, if it has a record.
        folder: Option<String>,
        /// Its wait for a quiet machine and its duration.
        #[serde(flatten)]
        effort: Effort,
    },
    /// A run was skipped because its cell had failed before.
    Skipped(RunPosition),
    /// A run was stopped; it will be repeated.
    Stopped {
        /// The run.
        #[serde(flatten)]
        place: RunPosition,
        /// Its folder, if it has a record.
        folder: Option<String>,
        /// Its wait for a quiet machine and its duration.
        #[serde(flatten)]
        effort: Effort,
    },
}

/// The plan, to check that the same experiment is resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Version of the lines.
    pub version: u32,
    /// When, RFC 3339, UTC.
    pub at: String,
    /// The command line.
    pub command: Vec<String>,
    /// Hash of the schedule by cell; cells that cannot be run have none.
    pub schedules: BTreeMap<String, String>,
    /// Hashes of the definition, by its keys, and of the files that it names; empty in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definition: BTreeMap<String, String>,
    /// Number of machines that joined; `None` if all clients were on the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u16>,
    /// Node that starts the systems; `None` if the coordinator starts them, or if the experiment's file names the
    /// nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_node: Option<String>,
    /// Machines that observed the system at an endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observers: Option<u16>,
}

impl Planned {
    /// The first line of a journal written now.
    pub fn new(at: String, command: Vec<String>, schedules: BTreeMap<String, String>, nodes: Option<u16>) -> Planned {
        let definition = BTreeMap::new();
        Planned { version: VERSION, at, command, schedules, definition, nodes, system_node: None, observers: None }
    }
}

/// Values that were added to the axes of an experiment. The names of its cells depend on how many values an axis has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extended {
    /// When, RFC 3339, UTC.
    pub at: String,
    /// Ids of the earlier cells, with those that they have from here on.
    pub cells: BTreeMap<String, String>,
    /// Number of cells that were added.
    pub added: usize,
    /// Hash of the schedule by cell, as in the plan.
    pub schedules: BTreeMap<String, String>,
    /// Hashes of the definition, as in the plan.
    pub definition: BTreeMap<String, String>,
    /// The definition itself. It is written to its own file after this line, and again if the process ended before.
    pub text: String,
}

impl Extended {
    /// Gives the cells in earlier events their present ids, and the plan its present hashes.
    fn apply(&self, events: &mut [Event]) {
        for event in events {
            match event {
                Event::Planned(planned) => {
                    planned.schedules.clone_from(&self.schedules);
                    planned.definition.clone_from(&self.definition);
                }
                Event::Began(place)
                | Event::Skipped(place)
                | Event::Counted { place, .. }
                | Event::Failed { place, .. }
                | Event::Stopped { place, .. } => {
                    if let Some(id) = self.cells.get(&place.cell) {
                        place.cell.clone_from(id);
                    }
                }
                Event::Extended(_) | Event::Started { .. } => {}
            }
        }
    }
}

/// The plan of the journal in a folder; `None` if there is no journal, or none with a plan. The journal may be in use.
pub(super) fn plan_of(folder: &Path) -> Option<Planned> {
    let mut line = String::new();
    let file = File::open(folder.join(JOURNAL_FILE)).ok()?.take(LARGEST_BYTES);
    BufReader::new(file).read_line(&mut line).ok()?;
    match serde_json::from_str(&line) {
        Ok(Event::Planned(planned)) => Some(planned),
        _ => None,
    }
}

/// The definition of an extension after which nothing was done: its own file lacks it if the process ended before it was written. `None`
/// if the last event is another one, or there is no journal. The journal may be in use.
pub(super) fn last_definition(folder: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(folder.join(JOURNAL_FILE)).ok()?.take(LARGEST_BYTES).read_to_string(&mut text).ok()?;
    // A truncated last line did not happen.
    let (whole, _) = text.rsplit_once('\n')?;
    let last = whole.lines().next_back()?;
    match serde_json::from_str(last) {
        Ok(Event::Extended(extended)) => Some(extended.text),
        _ => None,
    }
}

/// Appends an event. The events before it are those of the present cells, whatever their names were.
fn append(events: &mut Vec<Event>, event: Event) {
    if let Event::Extended(extended) = &event {
        extended.apply(events);
    }
    events.push(event);
}

/// One run of the plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunPosition {
    /// Position in the order, from 1.
    pub order: u32,
    /// Id of its cell.
    pub cell: String,
    /// Repetition, from 1.
    pub repetition: u32,
}

impl RunPosition {
    /// The run, whatever its position in the order: it changes when cells are added.
    pub fn run(&self) -> (String, u32) {
        (self.cell.clone(), self.repetition)
    }
}

/// Wait and duration of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Wait for a quiet machine, ms.
    pub waited_ms: u64,
    /// The machine did not become quiet.
    pub busy: bool,
    /// Time from the start of the wait to the end of the run, seconds.
    pub took_s: f64,
}

/// The reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no journal.
    #[error("found no experiment in `{}`", folder.display())]
    NotFound {
        /// Path that was tried.
        folder: PathBuf,
    },
    /// Another process has it open.
    #[error("another pubmark is running the experiment in `{}`", folder.display())]
    InUse {
        /// The experiment's folder.
        folder: PathBuf,
    },
    /// A line that cannot be read.
    #[error("failed to read line {line} of `{}`", path.display())]
    Line {
        /// The journal.
        path: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The first line is missing, or of another version.
    #[error("`{}` does not begin as this pubmark's journals do", path.display())]
    OtherVersion {
        /// The journal.
        path: PathBuf,
    },
    /// An operation of the operating system failed.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
}

/// An open journal, locked against other processes. The lock is released with the process, however it ends.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    events: Vec<Event>,
}

impl Journal {
    /// Creates the journal in a new folder.
    pub fn create(folder: &Path, planned: Planned) -> Result<Journal, JournalError> {
        let path = folder.join(JOURNAL_FILE);
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(|source| JournalError::Io { action: "create", path: path.clone(), source })?;
        let mut journal = Journal { file, path, events: vec![] };
        journal.lock(folder)?;
        journal.add(Event::Planned(planned))?;
        // The directory entry must be synchronised to disk, too.
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| JournalError::Io { action: "write", path: folder.to_owned(), source })?;
        Ok(journal)
    }

    /// Opens the journal in a folder to resume the experiment. A truncated last line is removed: its event did not
    /// happen.
    pub fn open(folder: &Path) -> Result<Journal, JournalError> {
        let path = folder.join(JOURNAL_FILE);
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(JournalError::NotFound { folder: folder.to_owned() });
            }
            Err(source) => return Err(io("open")(source)),
        };
        let mut journal = Journal { file, path: path.clone(), events: vec![] };
        journal.lock(folder)?;
        let mut text = String::new();
        journal.file.seek(SeekFrom::Start(0)).map_err(io("read"))?;
        (&mut journal.file).take(LARGEST_BYTES).read_to_string(&mut text).map_err(io("read"))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            journal.file.set_len(whole as u64).map_err(io("mend"))?;
        }
        journal.events = parse(&text[..whole], &path)?;
        Ok(journal)
    }

    /// Reads the events of the journal in a folder, without opening it for writing.
    #[cfg(test)]
    pub fn read(folder: &Path) -> Vec<Event> {
        Journal::open(folder).unwrap().events
    }

    fn lock(&self, folder: &Path) -> Result<(), JournalError> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            // SAFETY: a system call on an open descriptor; it accesses no memory.
            if unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(());
            }
            let source = io::Error::last_os_error();
            // Where the file system has no locks, it is no other process.
            if !matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                return Err(JournalError::Io { action: "lock", path: self.path.clone(), source });
            }
            if Instant::now() >= deadline {
                return Err(JournalError::InUse { folder: folder.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All events so far, in order, with the present ids of the cells.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The largest position in the order before cells were last added; 0 if none were.
    pub fn last_order_before_extension(&self) -> u32 {
        let extended = self.events.iter().rposition(|event| matches!(event, Event::Extended(_))).unwrap_or(0);
        let order = |event: &Event| match event {
            Event::Began(place) | Event::Skipped(place) => Some(place.order),
            _ => None,
        };
        self.events[..extended].iter().filter_map(order).max().unwrap_or(0)
    }

    /// The plan.
    pub fn planned(&self) -> &Planned {
        match self.events.first() {
            Some(Event::Planned(planned)) => planned,
            _ => unreachable!("a journal is only made with this line in front"),
        }
    }

    /// Adds a line and waits until it is synchronised to disk.
    pub fn add(&mut self, event: Event) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { action: "write", path: self.path.clone(), source };
        let mut line = serde_json::to_string(&event).map_err(|error| failed(io::Error::other(error)))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(failed)?;
        append(&mut self.events, event);
        Ok(())
    }
}

fn parse(text: &str, path: &Path) -> Result<Vec<Event>, JournalError> {
    let mut events: Vec<Event> = vec![];
    for (line, number) in text.lines().zip(1..) {
        let event = serde_json::from_str(line);
        let event = event.map_err(|source| JournalError::Line { path: path.to_owned(), line: number, source })?;
        append(&mut events, event);
    }
    match events.first() {
        Some(Event::Planned(planned)) if planned.version == VERSION => Ok(events),
        _ => Err(JournalError::OtherVersion { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt as _;

    use super::*;

    fn planned() -> Planned {
        Planned::new("2026-01-01T00:00:00Z".to_owned(), vec!["pubmark".to_owned()], BTreeMap::new(), None)
    }

    fn place(order: u32) -> RunPosition {
        RunPosition { order, cell: "a".to_owned(), repetition: 1 }
    }

    fn events() -> Vec<Event> {
        let effort = Effort { waited_ms: 1_000, busy: true, took_s: 3.25 };
        vec![
            Event::Started { at: "2026-01-01T00:00:00Z".to_owned(), pubmark_version: "0".to_owned() },
            Event::Began(place(1)),
            Event::Counted { place: place(1), folder: "runs/a-1".to_owned(), verdict: VerdictStatus::Suspect, effort },
            Event::Failed {
                place: place(2),
                kind: FailureKind::DidNotStart,
                code: None,
                text: "a line\nand another".to_owned(),
                folder: None,
                effort,
            },
            Event::Skipped(place(3)),
            Event::Stopped { place: place(4), folder: None, effort },
        ]
    }

    #[test]
    fn written_events_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), planned()).unwrap();
        events().into_iter().for_each(|event| journal.add(event).unwrap());
        let written = journal.events().to_vec();
        drop(journal);
        let read = Journal::open(folder.path()).unwrap();
        assert_eq!(read.events(), written);
        assert_eq!(read.planned(), &planned());
    }

    #[test]
    fn cells_that_an_extension_renames_keep_their_runs() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), planned()).unwrap();
        events().into_iter().for_each(|event| journal.add(event).unwrap());
        let schedules: BTreeMap<String, String> = [("a_1".to_owned(), "00".to_owned())].into();
        let extended = Extended {
            at: "2026-01-02T00:00:00Z".to_owned(),
            cells: [("a".to_owned(), "a_1".to_owned())].into(),
            added: 1,
            schedules: schedules.clone(),
            definition: BTreeMap::new(),
            text: "name: t\n".to_owned(),
        };
        journal.add(Event::Extended(extended)).unwrap();
        let written = journal.events().to_vec();
        drop(journal);
        let read = Journal::open(folder.path()).unwrap();
        assert_eq!(read.events(), written);
        let ids = read.events().iter().filter_map(|event| match event {
            Event::Counted { place, folder, .. } => Some((place.cell.as_str(), folder.as_str())),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<_>>(), [("a_1", "runs/a-1")], "a folder is not renamed");
        assert_eq!(read.planned().schedules, schedules);
        assert_eq!(read.last_order_before_extension(), 3, "the largest that began or was skipped");
    }

    #[test]
    fn a_line_cut_short_did_not_happen() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), planned()).unwrap();
        events().into_iter().for_each(|event| journal.add(event).unwrap());
        drop(journal);
        let path = folder.path().join(JOURNAL_FILE);
        let whole = std::fs::read(&path).unwrap();
        let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for length in first_line..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            let mut journal = Journal::open(folder.path()).unwrap();
            assert_eq!(journal.events().len(), lines, "{length} bytes");
            journal.add(Event::Skipped(place(9))).unwrap();
            drop(journal);
            assert_eq!(Journal::read(folder.path()).last(), Some(&Event::Skipped(place(9))));
        }
    }

    #[test]
    fn two_cannot_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::create(folder.path(), planned()).unwrap();
        assert!(matches!(Journal::open(folder.path()), Err(JournalError::InUse { .. })));
        drop(journal);
        assert!(Journal::open(folder.path()).is_ok());
    }

    #[test]
    fn a_lock_that_cannot_be_had_for_another_reason_is_not_that_of_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JOURNAL_FILE);
        std::fs::write(&path, "").unwrap();
        // No operation on such a descriptor is possible but by its path.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).unwrap();
        let error = Journal { file, path, events: vec![] }.lock(folder.path()).unwrap_err();
        assert!(matches!(error, JournalError::Io { action: "lock", .. }), "{error:?}");
    }

    #[test]
    fn a_file_that_is_no_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Journal::open(folder.path()), Err(JournalError::NotFound { .. })));
        let path = folder.path().join(JOURNAL_FILE);
        std::fs::write(&path, "hello\n").unwrap();
        assert!(matches!(Journal::open(folder.path()), Err(JournalError::Line { line: 1, .. })));
        for other in ["", "{\"event\":\"skipped\",\"order\":1,\"cell\":\"a\",\"repetition\":1}\n"] {
            std::fs::write(&path, other).unwrap();
            assert!(matches!(Journal::open(folder.path()), Err(JournalError::OtherVersion { .. })));
        }
    }
}
