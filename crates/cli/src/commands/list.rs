//! `pubmark list`: the built-in items.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pubmark_catalogue::table::{self, TABLES, Table};

use crate::exit_code::{self, ExitCode};
use crate::failure::Outcome;
use crate::printer::Printer;

/// Show what is built in: workloads, systems, protocols, experiments, links.
///
/// Without arguments, it names everything; with a kind it prints a line or two for each; with a name, all details of
/// one: `pubmark list systems mosquitto`.
#[derive(Debug, Args)]
pub struct List {
    /// Table to show [default: an overview of all]
    #[arg(value_parser = one_of_tables())]
    pub table: Option<&'static Table>,

    /// Entry of the table, in detail
    #[arg(value_name = "NAME", conflicts_with = "markdown")]
    pub name: Option<String>,

    /// Print Markdown, as in docs/reference
    #[arg(long)]
    pub markdown: bool,
}

/// The table of exit codes, which belongs to this program only.
static EXIT_CODES: Table = Table {
    word: "exit-codes",
    about: "Exit codes of the command",
    text: || Ok(exit_code::help() + "\n"),
    names: || Ok(exit_code::names()),
    details: |name| Ok(exit_code::details(name)),
    markdown: || Ok(exit_code::markdown()),
};

fn tables() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().chain([&EXIT_CODES])
}

fn one_of_tables() -> impl TypedValueParser<Value = &'static Table> {
    let shown = tables().map(|table| PossibleValue::new(table.word).help(table.about));
    PossibleValuesParser::new(shown)
        .map(|word| tables().find(|table| table.word == word).expect("clap has refused all others"))
}

impl List {
    /// Prints the overview, a table, or one entry of a table.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let text = match (self.table, &self.name) {
            (Some(table), Some(name)) => table.one(name),
            (Some(table), None) if self.markdown => (table.markdown)(),
            (Some(table), None) => (table.text)(),
            (None, _) if self.markdown => table::markdown(),
            (None, _) => table::overview(),
        };
        printer.result(&text?)?;
        Ok(ExitCode::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_report::wrapping::COLUMNS;

    #[test]
    fn every_exit_code_has_details_that_fit_a_terminal() {
        for name in exit_code::names() {
            assert!(exit_code::help().contains(&name), "{name} is missing");
            let details = EXIT_CODES.one(&name).expect("named");
            assert!(details.lines().all(|line| line.chars().count() <= COLUMNS), "{details}");
        }
    }
}
