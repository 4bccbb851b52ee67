//! `pubmark list`: what is built in.

use clap::{Args, ValueEnum};

use crate::catalogue;
use crate::exit_code::{self, ExitCode};
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Show what is built in: workloads, systems, protocols, experiments, links.
#[derive(Debug, Args)]
pub struct List {
    /// Which table; all of them if not given
    pub table: Option<Table>,

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

impl Table {
    fn text(self) -> Result<String, Failure> {
        match self {
            Table::Workloads => catalogue::workloads::text(),
            Table::Systems => catalogue::systems::text(),
            Table::Protocols => Ok(catalogue::protocols::text()),
            Table::Experiments => catalogue::experiments::text(),
            Table::Links => catalogue::links::text(),
            Table::ExitCodes => Ok(exit_code::help() + "\n"),
        }
    }

    /// The table as a page of the reference.
    pub fn markdown(self) -> Result<String, Failure> {
        match self {
            Table::Workloads => catalogue::workloads::markdown(),
            Table::Systems => catalogue::systems::markdown(),
            Table::Protocols => Ok(catalogue::protocols::markdown()),
            Table::Experiments => catalogue::experiments::markdown(),
            Table::Links => catalogue::links::markdown(),
            Table::ExitCodes => Ok(exit_code::markdown()),
        }
    }
}

impl List {
    /// Prints the table, or those of things that can be named in a run or experiment.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let chosen = self.table.map_or_else(
            || vec![Table::Workloads, Table::Systems, Table::Protocols, Table::Experiments, Table::Links],
            |one| vec![one],
        );
        let tables: Vec<String> = chosen
            .into_iter()
            .map(|table| if self.markdown { table.markdown() } else { table.text() })
            .collect::<Result<_, Failure>>()?;
        printer.result(&tables.join("\n"))?;
        Ok(ExitCode::Ok)
    }
}
