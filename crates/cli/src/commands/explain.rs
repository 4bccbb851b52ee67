//! `pubmark explain`: the page behind a code of a verdict or a warning, a word that is printed, a thing that is built in.

use clap::Args;
use pubmark_catalogue::glossary;
use pubmark_record::codes;
use pubmark_report::wrapping::{COLUMNS, wrap};
use pubmark_runner::suggestion;

use crate::commands::list;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
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
    /// Prints the page, or the list of pages.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let text = match self.code.join(" ") {
            none if none.is_empty() => all(),
            word => page(&word)?,
        };
        printer.result(&text)?;
        Ok(ExitCode::Ok)
    }
}

/// The codes with their titles, and the words.
fn all() -> String {
    let codes = codes::pages().iter().map(|page| format!("{}  {}\n", page.code, page.title)).collect::<String>();
    format!("{codes}\n{}", wrap("words  ", 7, &glossary::names().join(", ")))
}

fn page(word: &str) -> Result<String, Failure> {
    if let Some(page) = codes::explain(word) {
        return Ok(page.text(COLUMNS));
    }
    if let Some(text) = glossary::explain(word) {
        return Ok(text);
    }
    if let Some(text) = list::find(word)? {
        return Ok(text);
    }
    let known = codes::pages();
    let names = known.iter().map(|page| page.code).chain(glossary::names());
    let nearest = suggestion::nearest(word, names).map(|name| format!("did you mean `{name}`? "));
    Err(Failure::usage(format!("there is no code, word or name `{word}`"))
        .hint(format!("{}`pubmark explain` lists codes and words, `pubmark list` names", nearest.unwrap_or_default())))
}
