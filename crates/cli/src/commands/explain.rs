//! `pubmark explain`: explains a code of a verdict or a warning, a printed term, or a built-in item.

use clap::Args;
use pubmark_catalogue::explain;

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Explain a code, a word that pubmark prints, or something that is built in.
///
/// Codes stand in brackets beside each reason and warning, for instance V01 or W03. Words are those of summaries and reports:
/// `pubmark explain scheduler lag`. Names are those of `pubmark list`. Without a word, all codes and words are listed.
#[derive(Debug, Args)]
pub struct Explain {
    /// The code, word or name
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
