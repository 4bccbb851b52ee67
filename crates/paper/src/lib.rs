//! A publication, repeated: all its experiments in one call, and its tables with the results of this machine beside what is printed.
//!
//! Start with [`definition::find`]. [`Selection`] selects experiments and values of their axes. [`Repetition`] makes the
//! missing runs in a folder, and can be called again. [`mod@record`] contains the tables, [`collect`] builds them from the
//! records of the experiments, and [`guidelines`] combines several records. Nothing here prints.

pub mod collect;
pub mod definition;
pub mod guidelines;
mod html;
mod lock;
mod markdown;
mod merging;
mod missing;
mod notes;
pub mod record;
mod repetition;
mod selection;
mod series;
mod statement;
mod step;
mod table;
mod terminal;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use record::PaperRecord;
pub use repetition::{Part, Progress, Repetition, Step};
pub use selection::Selection;
pub use terminal::summary;

/// The files that are generated from a record: (name, text).
pub fn files(record: &PaperRecord) -> Vec<(String, String)> {
    vec![("paper.html".to_owned(), html(record)), ("paper.md".to_owned(), markdown(record))]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use pubmark_record::store;

    use super::*;

    /// Names and folders of the records in docs/results. Those of a machine of another type are in a folder of their own,
    /// because guidelines compare figures of one machine type.
    fn results() -> Vec<(&'static str, PathBuf)> {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let folders: Vec<(&str, PathBuf)> = [results.clone(), results.join("amd-epyc")]
            .iter()
            .flat_map(|machine| definition::names().into_iter().map(move |name| (name, machine.join(name))))
            .filter(|(_, folder)| folder.is_dir())
            .collect();
        assert!(folders.len() > 1, "results of publications are missing in docs/results");
        folders
    }

    #[test]
    fn the_pages_of_the_results_are_those_of_their_records() {
        for (name, folder) in results() {
            let record: PaperRecord = store::load_as(&folder).unwrap();
            assert_eq!(record.paper, name);
            let page = fs::read_to_string(folder.join("paper.md")).unwrap();
            // `pubmark report FOLDER` generates it again.
            assert!(page == markdown(&record), "paper.md in {} is not what its record says", folder.display());
        }
    }

    #[test]
    fn the_compared_systems_of_the_results_are_those_of_their_tables() {
        let mut compared = 0;
        for (name, folder) in results() {
            let record: PaperRecord = store::load_as(&folder).unwrap();
            for part in &record.experiments {
                let labels = part.runs.iter().flat_map(|runs| &runs.compared).map(|system| system.label.as_str());
                let labels: BTreeSet<&str> = labels.collect();
                for table in record.tables.iter().filter(|table| table.experiment == part.name) {
                    let axes = || table.rows.iter().chain(&table.columns);
                    let Some(place) = axes().position(|axis| axis == "system") else { continue };
                    let values = table.cells.iter().filter_map(|cell| cell.row.iter().chain(&cell.column).nth(place));
                    let values: BTreeSet<&str> = values.map(String::as_str).collect();
                    assert_eq!(labels, values, "{name}: {}", table.title);
                    compared += 1;
                }
            }
        }
        assert!(compared > 0, "no table of a result compares systems");
    }

    #[test]
    fn the_guidelines_are_those_of_the_records() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let collection = guidelines::Collection::load(&results).unwrap().unwrap();
        let page = fs::read_to_string(results.join(guidelines::GUIDELINES_FILE)).unwrap();
        // `pubmark report docs/results` generates it again.
        assert!(page == collection.page(), "docs/results/guidelines.md is not what the records say");
    }
}
