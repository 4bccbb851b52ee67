//! The files made from a record, in one table. `record.json` itself is written by whoever ran.

use pubmark_record::record::Record;

use crate::{csv, html, markdown};

/// A file made from a record.
pub struct Export {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Its files relative to the run folder, with their text.
    pub render: fn(&Record) -> Vec<(String, String)>,
}

/// Every export. A new one is a row here.
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

/// The files of every export: (path relative to the run folder, text).
pub fn all(record: &Record) -> Vec<(String, String)> {
    EXPORTS.iter().flat_map(|export| (export.render)(record)).collect()
}
