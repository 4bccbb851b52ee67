//! Which system suits which requirement, from the records of publications on one machine. Each sentence is based on a table
//! of a record.

mod page;
mod ranking;

use std::fs;
use std::io;
use std::path::Path;

use pubmark_record::record::Environment;
use pubmark_record::store::{self, StoreError};

use crate::definition::{self, Guideline};
use crate::record::{PaperRecord, RunsSummary, TableResult};
use ranking::{Ranking, ranking};

/// Name of the page's file.
pub const GUIDELINES_FILE: &str = "guidelines.md";

/// Records of publications, from subfolders of one folder.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Names of the subfolders, with their records, sorted by name.
    records: Vec<(String, PaperRecord)>,
}

/// Reasons why there are no guidelines.
#[derive(Debug, thiserror::Error)]
pub enum GuidelinesError {
    /// The folder cannot be read.
    #[error("failed to read the folder `{folder}`")]
    Folder {
        /// The folder.
        folder: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] StoreError),
    /// The records are of two machines, so that their systems cannot be compared.
    #[error("`{one}` and `{other}` are of different machines: {first} and {second}")]
    Machines {
        /// Folder of the first record.
        one: String,
        /// Folder of the other record.
        other: String,
        /// Machine of the first record.
        first: String,
        /// Machine of the other record.
        second: String,
    },
}

impl Collection {
    /// Loads the records in the subfolders of a folder; `None` if there are none.
    ///
    /// # Errors
    /// The folder or one of the records cannot be read, or the records are not of the same machine.
    pub fn load(folder: &Path) -> Result<Option<Collection>, GuidelinesError> {
        let unreadable = |source: io::Error| GuidelinesError::Folder { folder: folder.display().to_string(), source };
        let mut records = vec![];
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if entry.path().is_dir() && store::is_a::<PaperRecord>(&entry.path()) {
                let record = store::load_as(&entry.path())?;
                records.push((entry.file_name().to_string_lossy().into_owned(), record));
            }
        }
        records.sort_by(|(one, _), (other, _)| one.cmp(other));
        if records.is_empty() {
            return Ok(None);
        }
        let collection = Collection { records };
        collection.refuse_two_machines()?;
        Ok(Some(collection))
    }

    fn refuse_two_machines(&self) -> Result<(), GuidelinesError> {
        let mut first: Option<(&str, String)> = None;
        for (folder, record) in &self.records {
            let parts = record.experiments.iter().filter_map(|part| part.runs.as_ref());
            for machine in parts.map(|runs| machine(&runs.environment)) {
                match &first {
                    None => first = Some((folder, machine)),
                    Some((one, of_first)) if *of_first != machine => {
                        return Err(GuidelinesError::Machines {
                            one: (*one).to_owned(),
                            other: folder.clone(),
                            first: of_first.clone(),
                            second: machine,
                        });
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The publications, by the names of their subfolders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.iter().map(|(folder, _)| folder.as_str())
    }

    /// The page as Markdown.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// The evidence of all records, in the order of the folders and of the publications' definitions.
    fn answers(&self) -> impl Iterator<Item = Evidence<'_>> {
        self.records.iter().flat_map(|(folder, record)| {
            let guidelines = definition::find(&record.paper).map_or_else(Vec::new, |paper| paper.guidelines);
            guidelines.into_iter().filter_map(move |guideline| {
                let table = table(record, &guideline.table)?;
                let delivered = guideline.delivered.as_ref().and_then(|title| self::table(record, title));
                let part = record.experiments.iter().find(|part| part.name == table.experiment)?;
                let ranking = ranking(&guideline, table, delivered)?;
                Some(Evidence { folder, guideline, table, ranking, runs: part.runs.as_ref()? })
            })
        })
    }
}

fn table<'a>(record: &'a PaperRecord, title: &str) -> Option<&'a TableResult> {
    record.tables.iter().find(|table| table.title == title)
}

/// A requirement with a table of a record that answers it.
struct Evidence<'a> {
    folder: &'a str,
    guideline: Guideline,
    table: &'a TableResult,
    ranking: Ranking<'a>,
    runs: &'a RunsSummary,
}

/// The identity of a machine; software updates do not change it.
fn machine(environment: &Environment) -> String {
    let gibibytes = (environment.memory_bytes as f64 / (1u64 << 30) as f64).round();
    let kind = environment.virtualization.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
    format!("{} × {}, {gibibytes} GiB{kind}", environment.cores, environment.cpu)
}
