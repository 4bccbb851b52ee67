//! The library of results: every results folder with the data that a list shows. [`Library::list`] reads a record again
//! only when its file has changed, also after a restart of the server ([`index`]), so that a list of thousands is fast.

pub mod export;
pub mod files;
pub mod history;
mod index;
pub mod list;
pub mod loaded;
pub mod note;
pub mod removal;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pubmark_choose::Choice;
use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::headline::{self, Headline, RunFacts, Unreadable};
use pubmark_record::past_runs::{NotListed, newest_first};
use pubmark_record::record::Record;
use pubmark_record::store::Stored as _;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use index::Index;
use note::{NOTE_FILE, Note};

/// Record files that identify a results folder, in the order of the search.
const RECORDS: [&str; 4] = [ExperimentRecord::FILE, CapacityRecord::FILE, Choice::FILE, Record::FILE];

/// Number of records that are read before the index file is updated.
const NOTED_TOGETHER: usize = 500;

/// A results folder in the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Summary of its record.
    pub headline: Headline,
    /// Further data of a run's record for a list and a history; `None` for other kinds.
    pub facts: Option<RunFacts>,
    /// The note; empty if it cannot be read.
    pub note: Note,
    /// Why the note cannot be read.
    #[serde(default)]
    pub note_problem: Option<String>,
}

/// All results folders, and those that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Results, the newest first.
    pub results: Vec<Arc<Listed>>,
    /// Folders whose record cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// Identifies the version of a file: another time, size or inode is another version. `None` if there is no file.
type Stamp = Option<(i64, i64, u64, u64)>;

/// Data of a folder, and the stamps of the files that they come from.
#[derive(Clone)]
struct Known {
    stamps: [Stamp; 2],
    read: Result<Option<Arc<Listed>>, String>,
}

/// Data read from the results folders.
#[derive(Default)]
pub struct Library {
    known: Mutex<HashMap<String, Known>>,
    index: Mutex<Option<Index>>,
}

impl Library {
    /// A library with the data that another server has read, from a file.
    pub fn with_index(file: PathBuf) -> Library {
        let (index, known) = Index::open(file);
        Library { known: Mutex::new(known), index: Mutex::new(Some(index)) }
    }

    /// Lists all results folders. Records that did not change since the last call are not read again.
    ///
    /// # Errors
    /// The folder cannot be listed. Records that cannot be read are part of the list.
    pub fn list(&self, root: &Path) -> Result<Listing, NotListed> {
        let names = newest_first(root)?;
        // Cloned, so that the lock is not held: the first list takes long, and requests for one folder must not wait for
        // it.
        let mut before = self.known().clone();
        let mut known = HashMap::with_capacity(names.len());
        let mut found = Listing::default();
        let mut new = Vec::new();
        for name in names {
            let folder = root.join(&name);
            let name = name.to_string_lossy().into_owned();
            let one = before.remove(&name);
            let was = one.as_ref().map(|known| known.stamps);
            let now = Known::of(&folder, one);
            if was != Some(now.stamps) {
                new.push(name.clone());
            }
            match &now.read {
                Ok(Some(one)) => found.results.push(current(one, &folder)),
                Ok(None) => {}
                Err(reason) => {
                    found.unreadable.push(Unreadable { folder: name.clone(), reason: reason.clone() });
                }
            }
            known.insert(name, now);
            // A server that ends during a long first list does not have to start it again.
            if new.len() >= NOTED_TOGETHER {
                self.note_in_index(&new, &known, &before);
                new.clear();
            }
        }
        self.note_in_index(&new, &known, &HashMap::new());
        *self.known() = known;
        Ok(found)
    }

    /// One results folder; `None` if nothing can be read.
    pub fn one(&self, root: &Path, name: &str) -> Option<Arc<Listed>> {
        let before = self.known().get(name).cloned();
        let was = before.as_ref().map(|known| known.stamps);
        let now = Known::of(&root.join(name), before);
        let found = now.read.as_ref().ok().and_then(|read| read.as_ref().map(|one| current(one, &root.join(name))));
        let is_new = was != Some(now.stamps);
        if is_new && let Some(index) = self.index.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            index.add_one(&now);
        }
        self.known().insert(name.to_owned(), now);
        found
    }

    fn note_in_index(&self, new: &[String], known: &HashMap<String, Known>, before: &HashMap<String, Known>) {
        if let Some(index) = self.index.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            index.add(new, known, before);
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The current data of a folder: the same as before if its files are unchanged.
    fn of(folder: &Path, before: Option<Known>) -> Known {
        let stamps = [record_stamp(folder), stamp(&folder.join(NOTE_FILE))];
        before.filter(|known| known.stamps == stamps).unwrap_or_else(|| Known { stamps, read: read(folder) })
    }
}

/// The data with whether a command is at work in the folder now. The files do not tell: a command that is killed changes none.
fn current(one: &Arc<Listed>, folder: &Path) -> Arc<Listed> {
    let in_progress = one.headline.is_running(folder);
    match in_progress == one.headline.in_progress {
        true => Arc::clone(one),
        false => {
            let headline = Headline { in_progress, ..one.headline.clone() };
            Arc::new(Listed { headline, ..Listed::clone(one) })
        }
    }
}

/// Whether a folder contains a record.
pub fn holds_results(folder: &Path) -> bool {
    record_stamp(folder).is_some()
}

fn record_stamp(folder: &Path) -> Stamp {
    RECORDS.iter().find_map(|file| stamp(&folder.join(file)))
}

fn stamp(file: &Path) -> Stamp {
    let found = fs::metadata(file).ok()?;
    Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
}

fn read(folder: &Path) -> Result<Option<Arc<Listed>>, String> {
    let reason = |error: &(dyn std::error::Error + 'static)| Problem::internal(error).body.error;
    let found = headline::with_facts(folder).map_err(|error| reason(&error))?;
    let Some((headline, facts)) = found else { return Ok(None) };
    // A note that was damaged by hand must not hide a result.
    let (note, note_problem) = match note::read(folder) {
        Ok(note) => (note, None),
        Err(error) => (Note::default(), Some(reason(&error))),
    };
    Ok(Some(Arc::new(Listed { headline, facts, note, note_problem })))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;

    use super::*;

    fn save(root: &Path, name: &str, change: impl FnOnce(&mut Record)) {
        let mut record = sample::record();
        record.run.name = name.to_owned();
        change(&mut record);
        RunFolder::at(&root.join(name)).unwrap().write_record(&record).unwrap();
    }

    #[test]
    fn a_record_is_read_again_only_when_it_changed() {
        let root = tempfile::tempdir().unwrap();
        save(root.path(), "20260301-090507-one", |_| ());
        let library = Library::default();
        let first = library.list(root.path()).unwrap().results;
        let again = library.list(root.path()).unwrap().results;
        assert!(Arc::ptr_eq(&first[0], &again[0]), "it was read twice");
        assert!(first[0].facts.is_some(), "a record of this version has its facts");
        note::save(&root.path().join("20260301-090507-one"), &Note::of("quiet machine", &[]).unwrap()).unwrap();
        let noted = library.list(root.path()).unwrap().results;
        assert_eq!(noted[0].note.text, "quiet machine");
        save(root.path(), "20260301-090507-one", |record| record.workload.name = "other".to_owned());
        assert_eq!(library.list(root.path()).unwrap().results[0].headline.workload, ["other"]);
        fs::remove_dir_all(root.path().join("20260301-090507-one")).unwrap();
        assert!(library.list(root.path()).unwrap().results.is_empty());
    }

    #[test]
    fn an_experiment_in_which_a_command_is_at_work_is_running() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("20260301-090507-one");
        let mut record = pubmark_record::sample_experiment::experiment();
        record.status = pubmark_record::record::Status::Interrupted;
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(ExperimentRecord::FILE), pubmark_record::store::to_json(&record).unwrap()).unwrap();
        let journal = fs::File::create(folder.join(pubmark_record::in_use::JOURNAL_FILE)).unwrap();
        let library = Library::default();
        let state = || crate::entry::RunEntry::of_folder(&library.list(root.path()).unwrap().results[0]).state.word();
        assert_eq!(state(), "interrupted");
        journal.lock().unwrap();
        assert_eq!(state(), "running");
        let one = library.one(root.path(), "20260301-090507-one").unwrap();
        assert!(one.headline.in_progress);
        drop(journal);
        assert_eq!(state(), "interrupted", "the command was killed: no file has changed");
    }

    #[test]
    fn another_server_reads_again_only_what_changed() {
        let root = tempfile::tempdir().unwrap();
        let index = root.path().join("index");
        for name in ["20260301-090507-one", "20260302-090507-two", "20260303-090507-three"] {
            save(root.path(), name, |_| ());
        }
        let before = Library::with_index(index.clone()).list(root.path()).unwrap().results;
        assert_eq!(before.len(), 3);
        // The data of the file are used as long as the record has the same stamp: this shows that the record was not read.
        let text = fs::read_to_string(&index).unwrap().replace("\"smart-home\"", "\"from the index\"");
        fs::write(&index, text).unwrap();
        save(root.path(), "20260302-090507-two", |record| record.workload.name = "changed".to_owned());
        fs::remove_dir_all(root.path().join("20260303-090507-three")).unwrap();
        let workloads = |library: &Library| -> Vec<String> {
            let results = library.list(root.path()).unwrap().results;
            results.into_iter().map(|one| one.headline.workload[0].clone()).collect()
        };
        assert_eq!(workloads(&Library::with_index(index.clone())), ["changed", "from the index"]);
        // The change is in the file as well.
        assert_eq!(workloads(&Library::with_index(index.clone())), ["changed", "from the index"]);
        for damage in ["", "{}\n", "pubmark 0\n", "\0\0\0"] {
            fs::write(&index, damage).unwrap();
            assert_eq!(workloads(&Library::with_index(index.clone())), ["changed", "smart-home"], "{damage:?}");
            assert_eq!(workloads(&Library::with_index(index.clone())), ["changed", "smart-home"], "{damage:?}");
        }
        // A truncated line affects only its record.
        let text = fs::read_to_string(&index).unwrap();
        fs::write(&index, &text[..text.len() - 20]).unwrap();
        assert_eq!(workloads(&Library::with_index(index.clone())), ["changed", "smart-home"]);
    }

    #[test]
    fn a_note_that_cannot_be_read_hides_no_result() {
        let root = tempfile::tempdir().unwrap();
        save(root.path(), "20260301-090507-one", |_| ());
        fs::write(root.path().join("20260301-090507-one").join(NOTE_FILE), "no note").unwrap();
        let found = Library::default().list(root.path()).unwrap();
        assert!(found.unreadable.is_empty() && found.results[0].note.is_empty(), "{found:?}");
        assert!(found.results[0].note_problem.as_ref().unwrap().contains(NOTE_FILE), "{found:?}");
    }

    #[test]
    fn a_record_that_cannot_be_read_is_named() {
        let root = tempfile::tempdir().unwrap();
        save(root.path(), "20260301-090507-good", |_| ());
        fs::create_dir(root.path().join("20260301-090508-<b>")).unwrap();
        fs::write(root.path().join("20260301-090508-<b>/record.json"), "{").unwrap();
        let found = Library::default().list(root.path()).unwrap();
        assert_eq!((found.results.len(), found.unreadable.len()), (1, 1));
        assert_eq!(found.unreadable[0].folder, "20260301-090508-<b>");
    }
}
