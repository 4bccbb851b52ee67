//! `pubmark list`: what is built in.

use clap::{Args, ValueEnum};
use pubmark_catalogue as catalogue;
use pubmark_report::wrapping::wrap;
use pubmark_runner::{RunError, suggestion};

use crate::exit_code;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Show what is built in: workloads, systems, protocols, experiments, links.
///
/// Alone, it names everything; with a kind it prints a line or two for each, with a name all that is known of one:
/// `pubmark list systems mosquitto`.
#[derive(Debug, Args)]
pub struct List {
    /// Which table; an overview of all if not given
    pub table: Option<Table>,

    /// One of the table, in detail
    #[arg(value_name = "NAME", conflicts_with = "markdown")]
    pub name: Option<String>,

    /// Print Markdown, as in docs/reference
    #[arg(long)]
    pub markdown: bool,
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// Who sends what to whom
    Workloads,
    /// What pubmark can start and measure
    Systems,
    /// What clients can speak
    Protocols,
    /// What `pubmark experiment` can run
    Experiments,
    /// Emulated networks that groups can be put behind
    Links,
    /// What the process answers
    ExitCodes,
}

/// Tables of things that can be named in a run or experiment.
const NAMED: [Table; 5] = [Table::Workloads, Table::Systems, Table::Protocols, Table::Experiments, Table::Links];

impl Table {
    fn text(self) -> Result<String, RunError> {
        match self {
            Table::Workloads => catalogue::workloads::text(),
            Table::Systems => catalogue::systems::text(),
            Table::Protocols => Ok(catalogue::protocols::text()),
            Table::Experiments => catalogue::experiments::text(),
            Table::Links => catalogue::links::text(),
            Table::ExitCodes => Ok(exit_code::help() + "\n"),
        }
    }

    /// What it has.
    fn names(self) -> Result<Vec<String>, RunError> {
        match self {
            Table::Workloads => catalogue::workloads::names(),
            Table::Systems => catalogue::systems::names(),
            Table::Protocols => Ok(catalogue::protocols::names()),
            Table::Experiments => catalogue::experiments::names(),
            Table::Links => catalogue::links::names(),
            Table::ExitCodes => Ok(exit_code::names()),
        }
    }

    /// One of it in detail; `None` if there is none of that name.
    fn details(self, name: &str) -> Result<Option<String>, RunError> {
        match self {
            Table::Workloads => catalogue::workloads::details(name),
            Table::Systems => catalogue::systems::details(name),
            Table::Protocols => Ok(catalogue::protocols::details(name)),
            Table::Experiments => catalogue::experiments::details(name),
            Table::Links => catalogue::links::details(name),
            Table::ExitCodes => Ok(exit_code::details(name)),
        }
    }

    /// The table as a page of the reference.
    pub fn markdown(self) -> Result<String, Failure> {
        Ok(match self {
            Table::Workloads => catalogue::workloads::markdown()?,
            Table::Systems => catalogue::systems::markdown()?,
            Table::Protocols => catalogue::protocols::markdown(),
            Table::Experiments => catalogue::experiments::markdown()?,
            Table::Links => catalogue::links::markdown()?,
            Table::ExitCodes => exit_code::markdown(),
        })
    }

    /// The word on the command line.
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What it is a table of.
    fn about(self) -> String {
        let about = self.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        about.unwrap_or_default()
    }
}

impl List {
    /// Prints the overview, a table, or one of a table.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let text = match (self.table, &self.name) {
            (Some(table), Some(name)) => one(table, name)?,
            (Some(table), None) if self.markdown => table.markdown()?,
            (Some(table), None) => table.text()?,
            (None, _) if self.markdown => {
                NAMED.into_iter().map(Table::markdown).collect::<Result<Vec<_>, Failure>>()?.join("\n")
            }
            (None, _) => overview()?,
        };
        printer.result(&text)?;
        Ok(ExitCode::Ok)
    }
}

/// What is built in under that name, in any table.
pub fn find(name: &str) -> Result<Option<String>, Failure> {
    for table in NAMED {
        if let Some(text) = table.details(name)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// The names of everything.
fn overview() -> Result<String, Failure> {
    let mut text = String::new();
    for table in NAMED {
        let names = table.names()?;
        text.push_str(&format!("{} ({}): {}\n", table.word(), names.len(), table.about()));
        text.push_str(&wrap("  ", 2, &names.join(", ")));
        text.push('\n');
    }
    text.push_str("`pubmark list systems` prints a line for each, `pubmark list systems mosquitto`\nall about one\n");
    Ok(text)
}

fn one(table: Table, name: &str) -> Result<String, Failure> {
    let unknown = |names: Vec<String>| {
        Failure::usage(format!("`{name}` is not in `pubmark list {}`", table.word()))
            .hint(suggestion::choices(name, names.iter().map(String::as_str)))
    };
    match table.details(name)? {
        Some(text) => Ok(text),
        None => Err(unknown(table.names()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_report::wrapping::COLUMNS;

    #[test]
    fn everything_that_is_named_has_details_that_fit_a_terminal() {
        for table in NAMED.into_iter().chain([Table::ExitCodes]) {
            let names = table.names().expect("built in");
            let listed = table.text().expect("built in");
            for name in names {
                assert!(listed.contains(&name), "{name} is missing from {}", table.word());
                let details = table.details(&name).expect("built in").expect("named");
                assert!(details.lines().all(|line| line.chars().count() <= COLUMNS), "{details}");
            }
        }
    }
}
