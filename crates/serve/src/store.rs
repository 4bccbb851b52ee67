//! Submissions as files: a folder for each in `<runs>/.serve/queue`, which is created atomically, and whose files are
//! replaced atomically. Nothing else is stored, so that a server that was killed finds everything again.

mod deleting;
mod reading;
mod state;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pubmark_record::headline::{Kind, Unreadable};
use pubmark_record::store::write_whole;
use pubmark_record::time::UtcTime;
use pubmark_runner::now;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::submission::Submission;
use crate::token::random_hex;
pub(crate) use deleting::deleted;
use deleting::unless_gone;
use reading::{read_all, read_one, submissions};
pub use state::State;

/// Folder of the server within the results folder.
pub const SERVE_FOLDER: &str = ".serve";
/// File of what was submitted.
const SUBMISSION_FILE: &str = "submission.json";
/// File of the status.
const STATUS_FILE: &str = "status.json";
/// File of the password that the run authenticates with.
pub const PASSWORD_FILE: &str = "password";
/// File of the child's progress events.
pub const EVENTS_FILE: &str = "events.jsonl";
/// File of the child's messages for people.
pub const MESSAGES_FILE: &str = "messages.txt";
/// Maximum number of queued submissions.
pub const MOST_WAITING: usize = 1_000;

/// What was submitted; it never changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submitted {
    /// Identifier, and name of the folder.
    pub id: String,
    /// Position in the order, ns since 1970.
    pub order: u128,
    /// Time of the submission, RFC 3339.
    pub submitted_at: String,
    /// Kind of the submission.
    pub kind: Kind,
    /// Name of the workload or experiment.
    pub name: String,
    /// Systems of the run.
    pub systems: Vec<String>,
    /// The verb of the child.
    pub verb: String,
    /// Name of the file that is the first argument, if there is one.
    pub file: Option<String>,
    /// Command-line options.
    pub options: Vec<String>,
    /// The command line that repeats this run elsewhere, which is in records; empty in files of earlier versions.
    #[serde(default)]
    pub command: Vec<String>,
}

/// Status of a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// State of the submission.
    pub state: State,
    /// Time of the start, RFC 3339.
    pub started_at: Option<String>,
    /// Time of the end, RFC 3339.
    pub ended_at: Option<String>,
    /// Exit code of the child.
    pub exit_code: Option<i32>,
    /// Names of the results folders.
    pub folders: Vec<String>,
    /// Reason of the failure.
    pub error: Option<Failure>,
}

/// Reason why a submission failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What was tried, then the causes, outermost first.
    pub chain: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Failure {
    /// The reason in one line.
    pub fn reason(&self) -> String {
        let first_lines = self.chain.iter().map(|part| part.lines().next().unwrap_or_default());
        first_lines.collect::<Vec<_>>().join(": ")
    }
}

impl Status {
    fn queued() -> Status {
        Status { state: State::Queued, started_at: None, ended_at: None, exit_code: None, folders: vec![], error: None }
    }
}

/// A submission and its status.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What was submitted.
    pub submitted: Submitted,
    /// Its status.
    pub status: Status,
}

/// All submissions, in memory and as files.
pub struct Store {
    runs: PathBuf,
    entries: Mutex<BTreeMap<String, Entry>>,
    left_over: Vec<StoreError>,
    /// Locked while this server runs.
    _lock: File,
}

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another server uses the store.
    #[error("another `pubmark serve` uses `{}`", .0.display())]
    InUse(PathBuf),
    /// An operation on a file failed.
    #[error("failed to {action} `{}`", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
}

impl Store {
    /// Opens the store in the results folder; creates what is missing.
    ///
    /// # Errors
    /// Another server uses it, or it cannot be read or created.
    pub fn open(runs: &Path) -> Result<Store, StoreError> {
        let failed = |action, path: &Path, source| StoreError::File { action, path: path.to_owned(), source };
        let runs = std::path::absolute(runs).map_err(|source| failed("find", runs, source))?;
        let folder = runs.join(SERVE_FOLDER);
        let queue = folder.join("queue");
        DirBuilder::new()
            .recursive(true)
            .create(&runs)
            .and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(&queue))
            .map_err(|source| failed("create", &queue, source))?;
        let lock = folder.join("lock");
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
        let held = opened.map_err(|source| failed("open", &lock, source))?;
        match held.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(runs)),
            Err(TryLockError::Error(source)) => return Err(failed("lock", &lock, source)),
        }
        let (entries, left_over) =
            read_all(&queue, |path| fs::remove_dir_all(path)).map_err(|source| failed("read", &queue, source))?;
        Ok(Store { runs, entries: Mutex::new(entries), left_over, _lock: held })
    }

    /// What is no longer needed and could not be deleted at the start: folders of incomplete or removed submissions, and passwords
    /// and texts of submissions that are over.
    pub fn left_over(&self) -> &[StoreError] {
        &self.left_over
    }

    /// The results folder.
    pub fn runs(&self) -> &Path {
        &self.runs
    }

    /// Submissions that cannot be read now: they are not executed before the next start, and their files stay unchanged. A
    /// submission that the server has read is not among them: its state in memory is valid, and the next change writes it.
    ///
    /// # Errors
    /// The queue cannot be read.
    pub fn unreadable(&self) -> io::Result<Vec<Unreadable>> {
        // Listed before the submissions in memory: a submission that arrives meanwhile is in the folder first.
        let names = submissions(&self.serve_folder().join("queue"))?;
        let known = self.entries();
        let unknown = names.into_iter().filter(|name| !known.contains_key(name)).collect::<Vec<_>>();
        drop(known);
        let reason = |name: String| {
            let reason = match read_one(&self.folder(&name)) {
                // Repaired by hand, or copied from elsewhere.
                Ok(_) => "it can be read again: the server accepts it at its next start".to_owned(),
                Err(error) => error.to_string(),
            };
            Unreadable { folder: format!("{SERVE_FOLDER}/queue/{name}"), reason }
        };
        // A submission that was removed meanwhile is not reported.
        let is_there = |name: &String| self.folder(name).is_dir() && !self.entries().contains_key(name);
        Ok(unknown.into_iter().filter(is_there).map(reason).collect())
    }

    /// The server's folder within the results folder.
    pub fn serve_folder(&self) -> PathBuf {
        self.runs.join(SERVE_FOLDER)
    }

    /// The folder of a submission.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.serve_folder().join("queue").join(id)
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All submissions, in the order of submission.
    pub fn all(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = self.entries().values().cloned().collect();
        all.sort_by_key(|entry| entry.submitted.order);
        all
    }

    /// The submission with this identifier.
    pub fn get(&self, id: &str) -> Option<Entry> {
        self.entries().get(id).cloned()
    }

    /// The submission that has this results folder.
    pub fn of_folder(&self, folder: &str) -> Option<Entry> {
        self.entries().values().find(|entry| entry.status.folders.iter().any(|name| name == folder)).cloned()
    }

    /// Adds a submission: it is on the disk when this function returns.
    ///
    /// # Errors
    /// Too many submissions are queued, or it cannot be written.
    pub fn add(&self, submission: Submission) -> Result<Entry, Problem> {
        let internal = |error: io::Error| Problem::internal(&error);
        let mut entries = self.entries();
        if entries.values().filter(|entry| entry.status.state == State::Queued).count() >= MOST_WAITING {
            return Err(Problem::new(
                axum::http::StatusCode::TOO_MANY_REQUESTS,
                format!("the queue is full: {MOST_WAITING} submissions are waiting"),
            )
            .hint("cancel some of them, or wait"));
        }
        let id = format!("{}-{}", UtcTime::from_system_time(now()).compact(), random_hex(4).map_err(internal)?);
        // Later than all others, even if the clock was set back.
        let newest = entries.values().map(|entry| entry.submitted.order).max().unwrap_or(0);
        let order = since_1970_ns().max(newest + 1);
        let folder = self.folder(&id);
        let (kind, name, systems) = (submission.kind, submission.name.clone(), submission.systems.clone());
        let command = submission.command();
        let called = submission.order(&folder)?;
        let submitted = Submitted {
            id: id.clone(),
            order,
            submitted_at: UtcTime::from_system_time(now()).rfc3339(),
            kind,
            name,
            systems,
            verb: called.verb.to_owned(),
            file: called.file.as_ref().map(|(name, _)| (*name).to_owned()),
            options: called.options,
            command,
        };
        let status = Status::queued();
        let mut files = vec![(SUBMISSION_FILE, json(&submitted)), (STATUS_FILE, json(&status))];
        files.extend(called.file.map(|(name, text)| (name, text.into_bytes())));
        files.extend(called.password.map(|(name, secret)| (name, secret.expose().as_bytes().to_vec())));
        create_whole(&folder, &files).map_err(internal)?;
        let entry = Entry { submitted, status };
        entries.insert(id, entry.clone());
        Ok(entry)
    }

    /// Changes the status of a submission, on the disk first. Returns the new entry; `None` if there is none.
    ///
    /// # Errors
    /// The status cannot be written: then nothing changed.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut Status)) -> Result<Option<Entry>, Problem> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(id) else { return Ok(None) };
        let mut status = entry.status.clone();
        change(&mut status);
        if status != entry.status {
            let path = self.folder(id).join(STATUS_FILE);
            write_whole(&path, &json(&status)).map_err(|error| Problem::internal(&error))?;
            entry.status = status;
        }
        // Also if nothing changed, so that a repetition of a failed change repeats this step too.
        if entry.status.state.is_over() {
            remove_secrets(&self.folder(id), &entry.submitted).map_err(|error| Problem::internal(&error))?;
        }
        Ok(Some(entry.clone()))
    }

    /// Notes that a running submission was requested to end, and returns its new entry; `None` unless it is running. A run must not keep
    /// the machine because its disk is full, so this holds at once in memory. The file has it with the next change of the status; a
    /// server that starts before ends the run in any case.
    pub fn mark_cancelling(&self, id: &str) -> Option<Entry> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id).filter(|entry| entry.status.state == State::Running)?;
        entry.status.state = State::Cancelling;
        // An error is ignored for the reason above.
        let _ = write_whole(&self.folder(id).join(STATUS_FILE), &json(&entry.status));
        Some(entry.clone())
    }

    /// Removes a submission that is over, on the disk first; its results remain. Returns the reason if its files could not be
    /// deleted: then the next start of the server deletes them.
    ///
    /// # Errors
    /// It is not over, or cannot be removed.
    pub fn remove(&self, id: &str) -> Result<Option<StoreError>, Problem> {
        let mut entries = self.entries();
        let Some(entry) = entries.get(id) else { return Ok(None) };
        if !entry.status.state.is_over() {
            let state = entry.status.state.word();
            return Err(Problem::new(axum::http::StatusCode::CONFLICT, format!("`{id}` is {state}")));
        }
        // Renamed first, so that the next server completes the removal if this one is killed.
        let (folder, hidden) = (self.folder(id), self.folder(&format!(".{id}")));
        unless_gone(fs::rename(&folder, &hidden)).map_err(|error| Problem::internal(&error))?;
        entries.remove(id);
        Ok(deleted(&hidden, fs::remove_dir_all(&hidden)).err())
    }

    /// Removes a deleted results folder from the submission that created it, if there is one.
    ///
    /// # Errors
    /// The status cannot be written.
    pub fn forget_folder(&self, folder: &str) -> Result<(), Problem> {
        let Some(entry) = self.of_folder(folder) else { return Ok(()) };
        self.change(&entry.submitted.id, |status| status.folders.retain(|name| name != folder)).map(drop)
    }
}

/// Serialises as indented JSON.
fn json<Value: Serialize>(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain JSON");
    text.push(b'\n');
    text
}

/// Nanoseconds since 1970.
fn since_1970_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Creates a folder with its files atomically: under another name, flushed, then renamed.
fn create_whole(folder: &Path, files: &[(&str, Vec<u8>)]) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(Path::new("."));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let temporary = parent.join(format!(".{name}"));
    DirBuilder::new().mode(0o700).create(&temporary)?;
    let written = files
        .iter()
        .try_for_each(|(name, content)| {
            let path = temporary.join(name);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| File::open(&temporary)?.sync_all())
        .and_then(|()| fs::rename(&temporary, folder))
        .and_then(|()| File::open(parent)?.sync_all());
    if written.is_err() {
        // Best effort: the error that matters is the one returned.
        let _ = fs::remove_dir_all(&temporary);
    }
    written
}

/// Removes what is not needed after the end and may contain passwords: the password file and the submitted text. The
/// results folder has the specification without passwords.
fn remove_secrets(folder: &Path, submitted: &Submitted) -> Result<(), StoreError> {
    let paths = submitted.file.as_deref().into_iter().chain([PASSWORD_FILE]).map(|name| folder.join(name));
    // One that cannot be deleted does not keep the other one.
    let outcomes: Vec<_> = paths.map(|path| deleted(&path, fs::remove_file(&path))).collect();
    outcomes.into_iter().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::Host;

    use super::*;
    use crate::allow::{Allow, Right};

    fn submission() -> Submission {
        let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s"}"#;
        Submission::read(text, &Allow::default(), &Host::this()).unwrap()
    }

    /// Opens a folder again after its store was dropped. A process that another test starts meanwhile holds its lock until
    /// exec.
    fn open_again(folder: &Path) -> Store {
        let began = std::time::Instant::now();
        loop {
            match Store::open(folder) {
                Err(StoreError::InUse(_)) if began.elapsed().as_secs() < 10 => std::thread::yield_now(),
                opened => return opened.unwrap(),
            }
        }
    }

    #[test]
    fn submissions_are_found_again_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let ids: Vec<String> = {
            let store = Store::open(folder.path()).unwrap();
            let ids = (0..5).map(|_| store.add(submission()).unwrap().submitted.id).collect();
            // An incomplete submission.
            fs::create_dir(store.folder(".20260101-000000-x")).unwrap();
            ids
        };
        let store = open_again(folder.path());
        let found: Vec<String> = store.all().into_iter().map(|entry| entry.submitted.id).collect();
        assert_eq!(found, ids);
        store.change(&ids[0], |status| status.state = State::Complete).unwrap();
        drop(store);
        let store = open_again(folder.path());
        assert_eq!(store.get(&ids[0]).unwrap().status.state, State::Complete);
        assert!(!store.folder(".20260101-000000-x").exists());
    }

    #[test]
    fn a_submission_that_cannot_be_read_is_named_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let ids = {
            let store = Store::open(folder.path()).unwrap();
            [(); 3].map(|()| store.add(submission()).unwrap().submitted.id)
        };
        let queue = folder.path().join(SERVE_FOLDER).join("queue");
        fs::write(queue.join(&ids[1]).join(STATUS_FILE), "{").unwrap();
        // Files of a file system or an editor do not prevent the server from starting.
        fs::write(queue.join(".nfs0001"), "").unwrap();
        let store = open_again(folder.path());
        let read: Vec<String> = store.all().into_iter().map(|entry| entry.submitted.id).collect();
        assert_eq!(read, [ids[0].clone(), ids[2].clone()]);
        let unreadable = || store.unreadable().unwrap();
        let [one] = &unreadable()[..] else { panic!("{:?}", unreadable()) };
        assert_eq!(one.folder, format!(".serve/queue/{}", ids[1]));
        assert!(one.reason.contains(STATUS_FILE), "{one:?}");
        // Changes to the folder while the server runs are detected as well.
        fs::create_dir(queue.join("20260101-000000-copied")).unwrap();
        fs::copy(queue.join(&ids[0]).join(STATUS_FILE), queue.join(&ids[1]).join(STATUS_FILE)).unwrap();
        let found = unreadable();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].folder.ends_with("copied") && found[0].reason.contains(SUBMISSION_FILE), "{found:?}");
        assert!(found[1].reason.contains("next start"), "{found:?}");
        fs::remove_dir_all(queue.join("20260101-000000-copied")).unwrap();
        assert_eq!(unreadable().len(), 1);
        assert!(queue.join(&ids[1]).is_dir(), "it is there for whoever mends it");
    }

    #[test]
    fn a_copy_of_a_submission_and_files_that_would_block_are_named_and_do_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let ids = {
            let store = Store::open(folder.path()).unwrap();
            [(); 2].map(|()| store.add(submission()).unwrap().submitted.id)
        };
        let queue = folder.path().join(SERVE_FOLDER).join("queue");
        let [copy, pipe] = ["20260101-000000-copied", "20260101-000001-pipe"].map(|name| queue.join(name));
        for one in [&copy, &pipe] {
            fs::create_dir(one).unwrap();
            for file in [SUBMISSION_FILE, STATUS_FILE] {
                fs::copy(queue.join(&ids[0]).join(file), one.join(file)).unwrap();
            }
        }
        fs::remove_file(pipe.join(SUBMISSION_FILE)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(pipe.join(SUBMISSION_FILE)).status().unwrap();
        assert!(made.success());
        let store = open_again(folder.path());
        let read: Vec<String> = store.all().into_iter().map(|entry| entry.submitted.id).collect();
        assert_eq!(read, ids);
        let found = store.unreadable().unwrap();
        let reasons: Vec<&str> = found.iter().map(|one| one.reason.as_str()).collect();
        let [copied, piped] = reasons[..] else { panic!("{found:?}") };
        assert!(copied.contains(&format!("is a copy of `{}`", ids[0])), "{copied}");
        assert!(piped.contains("no regular file"), "{piped}");
    }

    #[test]
    fn a_submission_whose_files_are_gone_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let [renamed, removed] = [(); 2].map(|()| store.add(submission()).unwrap().submitted.id);
        for id in [&renamed, &removed] {
            store.change(id, |status| status.state = State::Cancelled).unwrap();
        }
        // As after a removal that renamed the folder and could not delete it.
        let hidden = store.folder(&format!(".{renamed}"));
        fs::rename(store.folder(&renamed), &hidden).unwrap();
        fs::remove_dir_all(store.folder(&removed)).unwrap();
        for id in [&renamed, &removed] {
            assert!(store.remove(id).is_ok() && store.get(id).is_none(), "{id}");
        }
        assert!(!hidden.exists() && store.all().is_empty());
    }

    #[test]
    fn what_cannot_be_deleted_is_named_and_does_not_prevent_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let id = {
            let store = Store::open(folder.path()).unwrap();
            let id = store.add(submission()).unwrap().submitted.id;
            store.change(&id, |status| status.state = State::Cancelled).unwrap();
            // As a file it cannot be deleted, by root neither.
            fs::create_dir(store.folder(&id).join(PASSWORD_FILE)).unwrap();
            id
        };
        let store = open_again(folder.path());
        let [password] = store.left_over() else { panic!("{:?}", store.left_over()) };
        assert!(password.to_string().ends_with(&format!("/queue/{id}/{PASSWORD_FILE}`")), "{password}");
        let hidden = store.folder(".20260101-000000-x");
        fs::create_dir(&hidden).unwrap();
        let refuse = |_: &Path| -> io::Result<()> { Err(io::ErrorKind::PermissionDenied.into()) };
        let (found, left) = read_all(hidden.parent().unwrap(), refuse).unwrap();
        assert_eq!((found.keys().collect::<Vec<_>>(), left.len()), (vec![&id], 2));
        assert_eq!(left[0].to_string(), format!("failed to delete `{}`", hidden.display()));
        assert!(store.unreadable().unwrap().is_empty());
    }

    #[test]
    fn a_folder_has_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let _store = Store::open(folder.path()).unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::InUse(_))));
    }

    #[test]
    fn a_password_is_in_no_file_but_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let text = r#"{"workload": "hello", "endpoint": "mqtt://127.0.0.1:9", "connection": {"user": "u", "password": "geheim-1"}}"#;
        let submission = Submission::read(text, &Allow(vec![Right::Endpoints]), &Host::this()).unwrap();
        let place = store.folder(&store.add(submission).unwrap().submitted.id);
        for entry in fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text.contains("geheim-1"), path.ends_with(PASSWORD_FILE), "{}: {text}", path.display());
        }
    }

    /// Texts of the files in a submission's folder.
    fn files(store: &Store, id: &str) -> String {
        let read = |entry: io::Result<fs::DirEntry>| fs::read_to_string(entry.unwrap().path()).unwrap();
        fs::read_dir(store.folder(id)).unwrap().map(read).collect()
    }

    #[test]
    fn a_password_is_gone_once_a_submission_is_over_however_that_came() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"workload": {"file_name": "t.yaml", "text": "name: t\ndevices: [{name: d, every: 1s, payload: 20B, credentials: {user: u, password: geheim-2}}]\nsubscribers: [{name: s, filters: '#'}]\n"}, "endpoint": "mqtt://127.0.0.1:9", "connection": {"user": "u", "password": "geheim-1"}}"#;
        let ids = {
            let store = Store::open(folder.path()).unwrap();
            [State::Cancelled, State::Failed, State::Complete, State::Interrupted].map(|state| {
                let submission = Submission::read(text, &Allow(vec![Right::Endpoints]), &Host::this()).unwrap();
                let id = store.add(submission).unwrap().submitted.id;
                let before = files(&store, &id);
                assert!(before.contains("geheim-1") && before.contains("geheim-2"), "the child needs them: {before}");
                store.change(&id, |status| status.state = state).unwrap();
                assert!(!files(&store, &id).contains("geheim"), "{state:?}");
                // Simulates a server that was killed between the two steps.
                fs::write(store.folder(&id).join(PASSWORD_FILE), "geheim-1").unwrap();
                id
            })
        };
        let store = open_again(folder.path());
        for id in ids {
            assert!(!files(&store, &id).contains("geheim"), "{id}");
        }
    }
}
