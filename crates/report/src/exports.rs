//! Files made from a record, in one table for each kind of record. The record itself is written by the caller that
//! executed the run.

use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::plain;
use pubmark_record::record::Record;

use crate::{csv, html, markdown};

/// A file made from a record.
pub struct Export<Source = Record> {
    /// Name on the command line.
    pub name: &'static str,
    /// Paths of the files, relative to the record's folder, with their text.
    pub render: fn(&Source) -> Vec<(String, String)>,
}

/// All exports of a run. A new one is a row here.
pub const EXPORTS: [Export; 3] = [
    Export { name: "html", render: |record| vec![("report.html".to_string(), html::run(record))] },
    Export { name: "markdown", render: |record| vec![("summary.md".to_string(), markdown::run(record))] },
    Export {
        name: "csv",
        render: |record| {
            csv::TABLES.iter().map(|table| (format!("csv/{}", table.file), (table.render)(record))).collect()
        },
    },
];

/// All exports of an experiment. A new one is a row here.
pub const EXPERIMENT_EXPORTS: [Export<ExperimentRecord>; 3] = [
    Export { name: "html", render: |record| vec![("experiment.html".to_string(), html::experiment(record))] },
    Export { name: "markdown", render: |record| vec![("experiment.md".to_string(), markdown::experiment(record))] },
    Export {
        name: "csv",
        render: |record| {
            vec![("csv/cells.csv".to_string(), csv::cells(record)), ("csv/runs.csv".to_string(), csv::runs(record))]
        },
    },
];

/// All exports of a capacity search. A new one is a row here.
pub const CAPACITY_EXPORTS: [Export<CapacityRecord>; 3] = [
    Export { name: "html", render: |record| vec![("capacity.html".to_string(), html::capacity(record))] },
    Export { name: "markdown", render: |record| vec![("capacity.md".to_string(), markdown::capacity(record))] },
    Export { name: "csv", render: |record| vec![("csv/trials.csv".to_string(), csv::trials(record))] },
];

/// Files of all exports of a run: (path relative to the run folder, text).
pub fn all(record: &Record) -> Vec<(String, String)> {
    files(&EXPORTS, record)
}

/// Files of all exports of an experiment: (path relative to its folder, text).
pub fn experiment(record: &ExperimentRecord) -> Vec<(String, String)> {
    files(&EXPERIMENT_EXPORTS, record)
}

/// Files of all exports of a capacity search: (path relative to its folder, text).
pub fn capacity(record: &CapacityRecord) -> Vec<(String, String)> {
    files(&CAPACITY_EXPORTS, record)
}

fn files<Source>(exports: &[Export<Source>], record: &Source) -> Vec<(String, String)> {
    let files = exports.iter().flat_map(|export| (export.render)(record));
    // The texts include messages of peers; our own text has no control characters except line ends and tabs.
    files.map(|(name, text)| (name, plain::masked(&text).into_owned())).collect()
}
