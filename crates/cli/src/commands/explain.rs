//! `pubmark explain`: the page about a code of a verdict or a warning, a term that is printed, or a built-in
//! definition.

use clap::Args;
use pubmark_catalogue::explain;

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Explain a code, a term that pubmark prints, or a built-in definition.
///
/// Codes stand in brackets beside each reason and warning, for instance V01 or W03. Terms are those of summaries and
/// reports: `pubmark explain scheduler lag`. Names are those of `pubmark list`. Without an argument, all codes and
/// terms are listed.
#[derive(Debug, Args)]
pub struct Explain {
    /// The code, term or name
    #[arg(value_name = "CODE|WORD|NAME")]
    pub code: Vec<String>,
}

impl Explain {
    /// Prints the explanation, or the list of all codes and terms.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let text = match self.code.join(" ") {
            none if none.is_empty() => explain::all(),
            word => explain::page(&word)?,
        };
        printer.result(&text)?;
        Ok(ExitCode::Ok)
    }
}
