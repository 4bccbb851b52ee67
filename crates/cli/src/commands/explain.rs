//! `pubmark explain`: the page behind a code of a verdict or a warning, and what a built-in link does.

use clap::Args;
use pubmark_record::codes;

use crate::catalogue::links;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::wrapping::COLUMNS;

/// Explain a code of a verdict or a warning, or a built-in link.
///
/// Codes stand in brackets beside each reason and warning, for instance V01 or W03. Without a code, all are listed.
/// Links are those of `pubmark list links`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The code, or the name of a link
    pub code: Option<String>,
}

impl Explain {
    /// Prints the page, or the list of pages.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let Some(code) = self.code else {
            let list = codes::pages().iter().map(|page| format!("{}  {}\n", page.code, page.title)).collect::<String>();
            printer.result(&list)?;
            return Ok(ExitCode::Ok);
        };
        let Some(page) = codes::explain(&code) else {
            let Some(link) = links::find(&code)? else {
                return Err(Failure::usage(format!("there is no code `{code}`"))
                    .hint("`pubmark explain` lists them; `pubmark list links` lists links"));
            };
            printer.result(&links::one(&link))?;
            return Ok(ExitCode::Ok);
        };
        printer.result(&page.text(COLUMNS))?;
        Ok(ExitCode::Ok)
    }
}
