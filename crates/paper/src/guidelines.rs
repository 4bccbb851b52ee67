//! Which system suits which requirement, from the records of publications on machines of one type. Each sentence is based on a
//! table of a record, so on one machine.

pub(crate) mod machines;
mod page;
mod ranking;
mod systems;
mod unconfirmed;

use std::fs;
use std::io;
use std::path::Path;

use pubmark_record::store::{self, StoreError};

use crate::definition::{self, Guideline};
use crate::record::{ComparedSystem, PaperRecord, RunsSummary, TableResult};
use machines::{Machine, is_of_one};
use ranking::{Ranking, ranking};
use systems::Systems;

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
    /// The records are of two types of machine, so that their systems cannot be compared.
    #[error("`{one}` and `{other}` are of different machines: {first} and {second}")]
    Machines {
        /// Folder of the first record.
        one: String,
        /// Folder of the other record.
        other: String,
        /// Type of the first record's machine.
        first: String,
        /// Type of the other record's machine.
        second: String,
    },
}

impl Collection {
    /// Loads the records in the subfolders of a folder; `None` if there are none.
    ///
    /// # Errors
    /// The folder or one of the records cannot be read, or the records are not of the same type of machine.
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
        collection.refuse_two_types()?;
        Ok(Some(collection))
    }

    fn refuse_two_types(&self) -> Result<(), GuidelinesError> {
        let mut machines = self
            .records
            .iter()
            .flat_map(|(folder, record)| machines_of(record).into_iter().map(move |one| (folder, one)));
        let Some((one, first)) = machines.next() else { return Ok(()) };
        match machines.find(|(_, second)| !second.is_of_type(&first)) {
            None => Ok(()),
            Some((other, second)) => Err(GuidelinesError::Machines {
                one: one.clone(),
                other: other.clone(),
                first: first.kind,
                second: second.kind,
            }),
        }
    }

    /// The machines of all records, each once, in the order of the folders.
    fn machines(&self) -> Vec<Machine> {
        let mut found: Vec<Machine> = vec![];
        for machine in self.records.iter().flat_map(|(_, record)| machines_of(record)) {
            if !found.iter().any(|known| known.is(&machine)) {
                found.push(machine);
            }
        }
        found
    }

    /// What a machine is called on the page; `None` if the records have only this one.
    fn name_of(&self, machine: &Machine) -> Option<String> {
        let all = self.machines();
        let number = all.iter().position(|other| other.is(machine)).filter(|_| all.len() > 1)?;
        Some(format!("machine {}", number + 1))
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
        self.records.iter().flat_map(move |(folder, record)| {
            let guidelines = definition::find(&record.paper).map_or_else(Vec::new, |paper| paper.guidelines);
            guidelines.into_iter().filter_map(move |guideline| {
                let table = table(record, &guideline.table)?;
                let delivered = guideline.delivered.as_ref().and_then(|title| self::table(record, title));
                let lacks_delivered = delivered.is_none() && !OF_DELIVERIES.contains(&table.figure.as_str());
                let part = record.experiments.iter().find(|part| part.name == table.experiment)?;
                let runs = part.runs.as_ref()?;
                let systems = if guideline.compare == SYSTEM { compared(record, &table.experiment) } else { vec![] };
                let ranking = ranking(&guideline, table, delivered, Systems(&systems))?;
                let name = self.name_of(&machine_of(runs));
                let machine = name.filter(|_| is_of_one(&runs.cautions));
                Some(Evidence { folder, guideline, table, ranking, lacks_delivered, runs, machine })
            })
        })
    }
}

/// Figures that show themselves how much a system delivers. All others are compared among systems that deliver.
const OF_DELIVERIES: [&str; 2] = ["delivered", "lost"];

/// Name of the axis of systems.
const SYSTEM: &str = "system";

/// The systems behind the labels of an experiment, which may have runs of several folders.
fn compared(record: &PaperRecord, experiment: &str) -> Vec<ComparedSystem> {
    let parts = record.experiments.iter().filter(|part| part.name == experiment);
    let mut found: Vec<ComparedSystem> = vec![];
    for system in parts.filter_map(|part| part.runs.as_ref()).flat_map(|runs| &runs.compared) {
        if !found.iter().any(|known| known.label == system.label) {
            found.push(system.clone());
        }
    }
    found
}

/// The machines of a record's experiments.
fn machines_of(record: &PaperRecord) -> Vec<Machine> {
    let runs = record.experiments.iter().filter_map(|part| part.runs.as_ref());
    runs.map(machine_of).collect()
}

/// The machine of an experiment, with those that joined it.
fn machine_of(runs: &RunsSummary) -> Machine {
    Machine::with_nodes(&runs.environment, runs.nodes.as_ref())
}

fn table<'a>(record: &'a PaperRecord, title: &str) -> Option<&'a TableResult> {
    record.tables.iter().find(|table| table.title == title)
}

/// A requirement with a table of a record that answers it.
struct Evidence<'a> {
    folder: &'a str,
    guideline: Guideline,
    table: &'a TableResult,
    ranking: Ranking,
    /// The record has no shares delivered, so systems that lost messages may be compared, too.
    lacks_delivered: bool,
    runs: &'a RunsSummary,
    /// What its machine is called on the page; `None` if all records are of one, or its runs are of several.
    machine: Option<String>,
}

impl Evidence<'_> {
    /// Why the ranking gives no order; `None` if it gives one.
    fn no_order(&self) -> Option<&'static str> {
        match (self.ranking.is_repeated, is_of_one(&self.runs.cautions)) {
            (true, true) => None,
            (false, _) => Some("so no order is shown"),
            (true, false) => Some("of several machines, so no order is shown"),
        }
    }
}
