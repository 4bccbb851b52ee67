//! The explanation of a code of a verdict or a warning, a printed term, or the name of a built-in item.

use pubmark_record::codes;
use pubmark_report::wrapping::{COLUMNS, wrap};
use pubmark_runner::{RunError, suggestion};

use crate::{glossary, table};

/// All codes with their titles, and all terms.
pub fn all() -> String {
    let codes = codes::pages().iter().map(|page| format!("{}  {}\n", page.code, page.title)).collect::<String>();
    format!("{codes}\n{}", wrap("words  ", 7, &glossary::names().join(", ")))
}

/// The explanation of one code, term or name.
///
/// # Errors
/// The word is unknown; the hint has the nearest known one.
pub fn page(word: &str) -> Result<String, RunError> {
    if let Some(page) = codes::explain(word) {
        return Ok(page.text(COLUMNS));
    }
    if let Some(text) = glossary::explain(word) {
        return Ok(text);
    }
    if let Some(text) = table::find(word)? {
        return Ok(text);
    }
    let known = codes::pages();
    let names = known.iter().map(|page| page.code).chain(glossary::names());
    let nearest = suggestion::nearest(word, names).map(|name| format!("did you mean `{name}`? "));
    Err(RunError::input(format!("there is no code, word or name `{word}`"))
        .hint(format!("{}`pubmark explain` lists codes and words, `pubmark list` names", nearest.unwrap_or_default())))
}
