//! The record of a results folder, of any kind, with its tables and report, and the files that it names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use pubmark_choose::Choice;
use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::headline::Kind;
use pubmark_record::plain;
use pubmark_record::record::Record;
use pubmark_record::store::{self, StoreError, Stored};
use pubmark_report::{csv, html};

use crate::problem::Problem;

/// All kinds of records.
const KINDS: [Kind; 4] = [Kind::Run, Kind::Experiment, Kind::Capacity, Kind::Choice];
/// Folder of the tables.
const TABLES_FOLDER: &str = "csv/";

/// A record of any kind.
pub enum Loaded {
    /// The record of a run.
    Run(Box<Record>),
    /// The record of an experiment.
    Experiment(Box<ExperimentRecord>),
    /// The record of a capacity search.
    Capacity(Box<CapacityRecord>),
    /// Of a choice of a system.
    Choice(Box<Choice>),
}

impl Loaded {
    /// Reads the record in a folder.
    ///
    /// # Errors
    /// There is no record yet, or it cannot be read.
    pub fn of(folder: &Path) -> Result<Loaded, Problem> {
        regular(folder)?;
        let found = match kind_of(folder) {
            Kind::Run => store::load(folder).map(|record| Loaded::Run(Box::new(record))),
            Kind::Experiment => store::load_as(folder).map(|record| Loaded::Experiment(Box::new(record))),
            Kind::Capacity => store::load_as(folder).map(|record| Loaded::Capacity(Box::new(record))),
            Kind::Choice => store::load_as(folder).map(|record| Loaded::Choice(Box::new(record))),
        };
        found.map_err(|error| match error {
            StoreError::NotFound { .. } => Problem::new(StatusCode::CONFLICT, "there is no record yet")
                .hint("it is written when the run has ended"),
            error => Problem::internal(&error),
        })
    }

    /// The record as JSON.
    ///
    /// # Errors
    /// A value cannot be serialised.
    pub fn json(&self) -> Result<String, StoreError> {
        match self {
            Loaded::Run(record) => store::to_json(record.as_ref()),
            Loaded::Experiment(record) => store::to_json(record.as_ref()),
            Loaded::Capacity(record) => store::to_json(record.as_ref()),
            Loaded::Choice(record) => store::to_json(record.as_ref()),
        }
    }

    /// The report as an HTML page, with control characters of other programs' texts as in the folder's file.
    pub fn report(&self) -> String {
        let page = match self {
            Loaded::Run(record) => html::run(record),
            Loaded::Experiment(record) => html::experiment(record),
            Loaded::Capacity(record) => html::capacity(record),
            Loaded::Choice(record) => pubmark_choose::html(record),
        };
        plain::masked(&page).into_owned()
    }

    /// Names of the record's tables; the first one is the default.
    pub fn tables(&self) -> Vec<&'static str> {
        match self {
            Loaded::Run(_) => {
                let mut names: Vec<&str> = csv::TABLES.iter().map(|table| bare(table.file)).collect();
                names.sort_by_key(|name| *name != "by_type");
                names
            }
            Loaded::Experiment(_) => vec!["cells", "runs"],
            Loaded::Capacity(_) => vec!["trials"],
            Loaded::Choice(_) => vec!["candidates"],
        }
    }

    /// A table as CSV; the first one if no name is given.
    ///
    /// # Errors
    /// There is no table with this name.
    pub fn table(&self, name: Option<&str>) -> Result<String, Problem> {
        let names = self.tables();
        let name = name.unwrap_or(names[0]);
        let of_run = |record: &Record| {
            let table = csv::TABLES.iter().find(|table| bare(table.file) == name)?;
            Some((table.render)(record))
        };
        let found = match (self, name) {
            (Loaded::Run(record), _) => of_run(record),
            (Loaded::Experiment(record), "cells") => Some(csv::cells(record)),
            (Loaded::Experiment(record), "runs") => Some(csv::runs(record)),
            (Loaded::Capacity(record), "trials") => Some(csv::trials(record)),
            (Loaded::Choice(record), "candidates") => Some(pubmark_choose::table::table(record)),
            _ => None,
        };
        let hint = || match names.as_slice() {
            [one] => format!("the table is {one}"),
            names => format!("the tables are {}", names.join(", ")),
        };
        let text = found.ok_or_else(|| Problem::not_found("table", name).hint(hint()))?;
        Ok(plain::masked(&text).into_owned())
    }

    /// The table whose file in the folder has this name.
    pub fn table_file(&self, name: &str) -> Option<String> {
        let table = name.strip_prefix(TABLES_FOLDER)?.strip_suffix(".csv")?;
        self.table(Some(table)).ok()
    }

    fn kind(&self) -> Kind {
        match self {
            Loaded::Run(_) => Kind::Run,
            Loaded::Experiment(_) => Kind::Experiment,
            Loaded::Capacity(_) => Kind::Capacity,
            Loaded::Choice(_) => Kind::Choice,
        }
    }

    /// Name of the record's file.
    pub fn record_file(&self) -> &'static str {
        record_file(self.kind())
    }

    /// Name of the report's file.
    pub fn report_file(&self) -> &'static str {
        report_file(self.kind())
    }

    /// Names of the files that are unchanged since the run: the record, and the files that it names.
    pub fn files(&self) -> Vec<String> {
        let mut names = vec![self.record_file().to_owned()];
        if let Loaded::Run(record) = self {
            names.extend(record.run.files.values().filter(|name| is_plain(name)).cloned());
        }
        names
    }

    /// Folders of the runs of an experiment, of the trials of a search, or of the runs and searches of a choice, relative to
    /// its folder.
    pub fn inner(&self) -> Vec<String> {
        let all = match self {
            Loaded::Run(_) => vec![],
            Loaded::Experiment(record) => record.run_folders(),
            Loaded::Capacity(record) => record.trials.iter().filter_map(|trial| trial.folder.clone()).collect(),
            Loaded::Choice(choice) => {
                let runs = choice.candidates.iter().flat_map(|one| &one.runs).filter_map(|run| run.folder.clone());
                let searches = choice.candidates.iter().filter_map(|one| one.headroom.folder.clone());
                runs.chain(searches).collect()
            }
        };
        all.into_iter().filter(|name| is_plain(name)).collect()
    }
}

/// The record of a run in a folder. `name` is the name in the request; `what` is the data that only single runs have.
///
/// # Errors
/// It is of another kind, which the message states, or there is no record yet.
pub fn run_of(folder: &Path, name: &str, what: &str) -> Result<Record, Problem> {
    let conflict = |text: String, hint: &str| Err(Problem::new(StatusCode::CONFLICT, text).hint(hint));
    match Loaded::of(folder)? {
        Loaded::Run(record) => Ok(*record),
        Loaded::Experiment(_) => conflict(
            format!("`{name}` is an experiment: {what} is of single runs"),
            "its report compares its cells; `POST /check` holds it against another one as its `baseline`",
        ),
        Loaded::Capacity(_) => conflict(
            format!("`{name}` is a search for capacity: {what} is of single runs"),
            "its report shows its trials; `GET /runs?kind=run` lists single runs",
        ),
        Loaded::Choice(_) => conflict(
            format!("`{name}` is a choice: {what} is of single runs"),
            "its report links its runs; `GET /runs?kind=run` lists single runs",
        ),
    }
}

/// Name of the record's file of each kind.
pub fn record_file(kind: Kind) -> &'static str {
    match kind {
        Kind::Run => Record::FILE,
        Kind::Experiment => ExperimentRecord::FILE,
        Kind::Capacity => CapacityRecord::FILE,
        Kind::Choice => Choice::FILE,
    }
}

/// Name of the report's file of each kind.
pub fn report_file(kind: Kind) -> &'static str {
    match kind {
        Kind::Run => "report.html",
        Kind::Experiment => "experiment.html",
        Kind::Capacity => "capacity.html",
        Kind::Choice => "choice.html",
    }
}

/// Name of the report that a folder has, of any kind; `None` if it has none.
pub fn report_in(folder: &Path) -> Option<&'static str> {
    KINDS.map(report_file).into_iter().find(|report| folder.join(report).is_file())
}

/// Kind of the record of a folder; a run if there is no record.
pub fn kind_of(folder: &Path) -> Kind {
    let mut of_many = KINDS.into_iter().filter(|kind| *kind != Kind::Run);
    of_many.find(|kind| folder.join(record_file(*kind)).is_file()).unwrap_or(Kind::Run)
}

/// Checks that no record of a folder is another kind of file: a FIFO would block, and a device could be read without end.
///
/// # Errors
/// One of them is no regular file.
fn regular(folder: &Path) -> Result<(), Problem> {
    let paths = KINDS.map(|kind| folder.join(record_file(kind)));
    let other = paths.into_iter().find(|path| fs::metadata(path).is_ok_and(|found| !found.is_file()));
    other.map_or(Ok(()), |path| {
        let source = io::Error::other("it is no regular file");
        Err(Problem::internal(&StoreError::Io { action: "read", path, source }))
    })
}

/// Whether the text is a safe relative path within a folder. A record may come from anywhere, so its paths are not trusted.
pub fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0']);
    name.len() <= 1_000 && name.split('/').all(is_part)
}

/// The path within a folder, if none of its folders is a link: a link may lead anywhere. The last component is checked by
/// the code that opens it.
pub fn beneath(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    let (parts, last) = name.rsplit_once('/').unwrap_or(("", name));
    for part in parts.split('/').filter(|part| !part.is_empty()) {
        path.push(part);
        fs::symlink_metadata(&path).ok().filter(|found| found.is_dir())?;
    }
    is_plain(name).then(|| path.join(last))
}

/// Name of a table without the file extension.
fn bare(file: &'static str) -> &'static str {
    file.strip_suffix(".csv").unwrap_or(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use pubmark_record::{sample, sample_experiment};

    use super::*;

    #[test]
    fn a_path_stays_in_its_folder() {
        for right in ["record.json", "csv/by_type.csv", "runs/1-a b/report.html", "ä"] {
            assert!(is_plain(right), "{right}");
        }
        for wrong in ["", "/", "/etc/passwd", "..", "a/../b", "a//b", "a/", ".token", "a/.b", "a\\b", "a\0"] {
            assert!(!is_plain(wrong), "{wrong}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runs")).unwrap();
        symlink("/etc", folder.path().join("link")).unwrap();
        assert_eq!(beneath(folder.path(), "runs/a"), Some(folder.path().join("runs/a")));
        for wrong in ["link/passwd", "none/a", "../a", "runs/../a"] {
            assert_eq!(beneath(folder.path(), wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_record_that_is_a_pipe_is_refused() {
        for kind in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let made =
                std::process::Command::new("mkfifo").arg(folder.path().join(record_file(kind))).status().unwrap();
            assert!(made.success());
            let refused = Loaded::of(folder.path()).map(|loaded| loaded.record_file()).unwrap_err();
            assert!(refused.body.error.contains("no regular file"), "{refused:?}");
        }
    }

    #[test]
    fn what_a_record_names_outside_its_folder_is_no_file_of_it() {
        let mut record = sample::record();
        record.run.files = [("a", "../../etc/passwd"), ("b", "/etc/passwd"), ("c", "latency.hdr")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into();
        assert_eq!(Loaded::Run(Box::new(record)).files(), ["record.json", "latency.hdr"]);
        let mut experiment = sample_experiment::experiment();
        let before = Loaded::Experiment(Box::new(experiment.clone())).inner().len();
        let runs = experiment.cells.iter_mut().flat_map(|cell| &mut cell.runs);
        assert!(before > 0 && runs.map(|run| run.folder = "../../other".to_owned()).count() > 0);
        assert!(Loaded::Experiment(Box::new(experiment)).inner().len() < before);
    }

    #[test]
    fn each_kind_has_its_tables_and_says_their_names() {
        let run = Loaded::Run(Box::new(sample::record()));
        let experiment = Loaded::Experiment(Box::new(sample_experiment::experiment()));
        let capacity = Loaded::Capacity(Box::new(sample_experiment::capacity()));
        let choice = Loaded::Choice(Box::new(pubmark_choose::sample::choice(1)));
        for (loaded, first) in
            [(&run, "by_type"), (&experiment, "cells"), (&capacity, "trials"), (&choice, "candidates")]
        {
            assert_eq!(loaded.tables()[0], first);
            assert_eq!(loaded.table(None).unwrap(), loaded.table(Some(first)).unwrap());
            for name in loaded.tables() {
                assert!(loaded.table_file(&format!("csv/{name}.csv")).is_some_and(|text| text.contains(',')), "{name}");
            }
            let none = loaded.table(Some("nonsense")).unwrap_err();
            assert!(none.status == StatusCode::NOT_FOUND && none.body.hint.unwrap().contains(first), "{first}");
        }
        assert_ne!(experiment.table(Some("runs")).unwrap(), experiment.table(Some("cells")).unwrap());
    }
}
