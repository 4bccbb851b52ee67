//! The library of results: every folder of results with what a list shows of it. [`Library::list`] reads a record again only when its
//! file has changed, so that a list of thousands is fast.

pub mod export;
mod files;
pub mod history;
pub mod list;
pub mod note;
pub mod removal;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::headline::{self, Headline, Unreadable};
use pubmark_record::past_runs::{NotListed, newest_first};
use pubmark_record::record::Record;
use pubmark_record::store::Stored as _;
use serde::Deserialize;

use crate::problem::Problem;
use note::{NOTE_FILE, Note};

/// Files that make a folder one of results, in the order in which they are looked for.
const RECORDS: [&str; 3] = [ExperimentRecord::FILE, CapacityRecord::FILE, Record::FILE];

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What its record says.
    pub headline: Headline,
    /// What else of a run's record a list and a history need; `None` for other kinds, and for records of before.
    pub facts: Option<Facts>,
    /// Its note.
    pub note: Note,
}

/// Fields of a run's record.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Facts {
    /// The run.
    pub run: RunFacts,
    /// Its workload.
    pub workload: WorkloadFacts,
    /// Its rates.
    pub throughput: RateFacts,
}

/// Of the run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RunFacts {
    /// Version of pubmark that made it.
    pub pubmark_version: String,
}

/// Of the workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct WorkloadFacts {
    /// Hash of its schedule.
    pub schedule_hash: String,
    /// Devices.
    pub devices: u64,
}

/// Of the rates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RateFacts {
    /// Messages offered per second.
    pub offered_per_s: f64,
}

/// All folders, and those that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The newest first.
    pub results: Vec<Arc<Listed>>,
    /// Folders whose record cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// A file as it was when it was read: another time, size or inode is another file. `None` where there is none.
type Stamp = Option<(i64, i64, u64, u64)>;

/// What is known of a folder, and of which files.
#[derive(Clone)]
struct Known {
    stamps: [Stamp; 2],
    read: Result<Option<Arc<Listed>>, String>,
}

/// What was read of the folders of results.
#[derive(Default)]
pub struct Library {
    known: Mutex<HashMap<String, Known>>,
}

impl Library {
    /// All folders of results. Records that did not change since the last call are not read again.
    ///
    /// # Errors
    /// The folder cannot be listed. Records that cannot be read are in the list.
    pub fn list(&self, root: &Path) -> Result<Listing, NotListed> {
        let names = newest_first(root)?;
        // Not held meanwhile: the first list takes long, and requests for one folder need not wait for it.
        let mut before = self.known().clone();
        let mut known = HashMap::with_capacity(names.len());
        let mut found = Listing::default();
        for name in names {
            let folder = root.join(&name);
            let name = name.to_string_lossy().into_owned();
            let now = Known::of(&folder, before.remove(&name));
            match &now.read {
                Ok(Some(one)) => found.results.push(Arc::clone(one)),
                Ok(None) => {}
                Err(reason) => {
                    found.unreadable.push(Unreadable { folder: name.clone(), reason: reason.clone() });
                }
            }
            known.insert(name, now);
        }
        *self.known() = known;
        Ok(found)
    }

    /// One folder of results; `None` where nothing can be read.
    pub fn one(&self, root: &Path, name: &str) -> Option<Arc<Listed>> {
        let before = self.known().get(name).cloned();
        let now = Known::of(&root.join(name), before);
        let found = now.read.as_ref().ok().cloned().flatten();
        self.known().insert(name.to_owned(), now);
        found
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What is known now: the same as before, if its files are the same.
    fn of(folder: &Path, before: Option<Known>) -> Known {
        let stamps = [record_stamp(folder), stamp(&folder.join(NOTE_FILE))];
        before.filter(|known| known.stamps == stamps).unwrap_or_else(|| Known { stamps, read: read(folder) })
    }
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
    let Some(headline) = headline::of_folder(folder).map_err(|error| reason(&error))? else { return Ok(None) };
    let note = note::read(folder).map_err(|error| reason(&error))?;
    // Only a run of this version of the schema has all of them.
    let facts = fs::read(folder.join(Record::FILE)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok(Some(Arc::new(Listed { headline, facts, note })))
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
