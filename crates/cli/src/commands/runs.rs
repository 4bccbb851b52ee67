//! `pubmark runs`: past runs.

use std::path::PathBuf;

use clap::Args;
use pubmark_record::past_runs::filter::{Filter, FilterError, is_path};
use pubmark_record::past_runs::{DEFAULT_FOLDER, moment, search};
use pubmark_report::terminal::past_runs as text;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Number of entries shown without `--limit` or `--all`.
const SHOWN: usize = 20;

/// List past runs, experiments, capacity searches and choices, newest first.
///
/// Each entry has its folder, and below it what was run and the result. A word is searched for in everything that is
/// shown of an entry; `key=value` selects exactly that value; an entry has to match all of them. Keys: folder, kind
/// (run, experiment, capacity, choice), workload, variant, system, protocol, qos, verdict, status, reason. Several values are
/// separated by commas: `verdict=valid,suspect`.
///
/// The runs of an experiment or a choice are in its folder: `pubmark runs --folder runs/latest/runs`.
#[derive(Debug, Args)]
pub struct Runs {
    /// Words or key=value, such as `mosquitto`, `smart-home`, `verdict=valid`
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,

    /// Folder whose folders are listed
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    pub folder: PathBuf,

    /// Only those with this system; the same as `system=NAME`
    #[arg(long, value_name = "NAME")]
    pub system: Option<String>,

    /// Only those with this workload; the same as `workload=NAME`
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,

    /// Only those with this verdict; the same as `verdict=VERDICT`
    #[arg(long, value_name = "VERDICT", value_parser = ["valid", "suspect", "invalid"])]
    pub verdict: Option<String>,

    /// Only those that began at this time or later: `2h` ago, `2026-03-01`, `2026-03-01T09:05` (UTC)
    #[arg(long, value_name = "TIME", value_parser = moment::read)]
    pub since: Option<String>,

    /// Largest number of entries; the newest are shown [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "all", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,

    /// All entries
    #[arg(long)]
    pub all: bool,

    /// Print the list as JSON to standard output (`pubmark schema run-list`)
    #[arg(long)]
    pub json: bool,
}

impl Runs {
    /// Prints the list.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let filter = self.filter()?;
        let limit = if self.all { usize::MAX } else { self.limit.map_or(SHOWN, |limit| limit as usize) };
        let list = search(&self.folder, &filter, limit).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error)
                .hint("give the folder that runs were written to: `pubmark runs --folder runs`")
        })?;
        if self.json {
            printer.json(&list)?;
        } else if !list.runs.is_empty() {
            printer.result(&text::list(&list, &self.folder))?;
        }
        text::notes(&list, &self.folder, &filter).iter().for_each(|note| printer.note(note));
        Ok(ExitCode::Ok)
    }

    fn filter(&self) -> Result<Filter, Failure> {
        if let Some(path) = self.filter.iter().find(|word| is_path(word)) {
            return Err(Failure::usage(format!("`{path}` is a path, and words are searched for in what is listed"))
                .hint(format!("list the runs of a folder with `pubmark runs --folder {path}`")));
        }
        let unread = |error: FilterError| Failure::from_error(ExitCode::Usage, &error).hint(error.hint());
        let mut filter = Filter::read(&self.filter).map_err(unread)?;
        for (key, value) in [("system", &self.system), ("workload", &self.workload), ("verdict", &self.verdict)] {
            if let Some(value) = value {
                filter.require(key, value).map_err(unread)?;
            }
        }
        filter.since = self.since.clone();
        Ok(filter)
    }
}
