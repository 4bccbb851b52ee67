//! A publication, repeated: all its experiments in one call, and its tables with the results of this machine beside what is printed.
//!
//! Start with [`definition::find`]. [`Selection`] selects experiments and values; [`Repetition`] makes the missing runs
//! in a folder and can be called again; [`mod@record`] has the tables, [`collect`] makes them from the records of the
//! experiments, [`guidelines`] combines several records. Nothing here prints.

pub mod collect;
pub mod definition;
pub mod guidelines;
mod html;
mod markdown;
pub mod record;
mod repetition;
mod selection;
mod series;
mod statement;
mod table;
mod terminal;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use record::PaperRecord;
pub use repetition::{Part, Progress, Repetition, Step};
pub use selection::Selection;
pub use terminal::summary;

/// The files that are made from a record: (name, text).
pub fn files(record: &PaperRecord) -> Vec<(String, String)> {
    vec![("paper.html".to_owned(), html(record)), ("paper.md".to_owned(), markdown(record))]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::path::Path;

    use pubmark_record::store;

    use super::*;

    #[test]
    fn the_pages_of_the_results_are_those_of_their_records() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let mut pages = 0;
        for name in definition::names() {
            let folder = results.join(name);
            if !folder.is_dir() {
                continue;
            }
            let record: PaperRecord = store::load_as(&folder).unwrap();
            assert_eq!(record.paper, name);
            let page = fs::read_to_string(folder.join("paper.md")).unwrap();
            // `pubmark report docs/results/NAME` writes the page again.
            assert!(page == markdown(&record), "docs/results/{name}/paper.md is not what its record says");
            pages += 1;
        }
        assert!(pages > 0, "no result of a publication is in docs/results");
    }

    #[test]
    fn the_guidelines_are_those_of_the_records() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let collection = guidelines::Collection::load(&results).unwrap().unwrap();
        let page = fs::read_to_string(results.join(guidelines::GUIDELINES_FILE)).unwrap();
        // `pubmark report docs/results` writes the page again.
        assert!(page == collection.page(), "docs/results/guidelines.md is not what the records say");
    }
}
