//! The page for each code of a verdict or a warning, for `pubmark explain` and for the reference.

use crate::verdict::rules::{RETIRED, RULES};
use crate::warnings::WARNINGS;

/// Explanation of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Stable code: `V…` for rules of the verdict, `W…` for warnings.
    pub code: &'static str,
    /// Title of a few words.
    pub title: &'static str,
    /// Meaning and importance, with the limits.
    pub meaning: &'static str,
    /// Which figures remain usable if this code makes a run invalid; empty if none do, and for warnings.
    pub spoils: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

impl Page {
    fn paragraphs(&self) -> impl Iterator<Item = &'static str> {
        [self.meaning, self.spoils].into_iter().filter(|paragraph| !paragraph.is_empty())
    }

    /// The page as text, with lines of at most `columns` where words permit.
    pub fn text(&self, columns: usize) -> String {
        let paragraphs: Vec<String> = self.paragraphs().map(|paragraph| wrapped(paragraph, columns)).collect();
        let remedy = wrapped(self.remedy, columns);
        format!("{}  {}\n\n{}\n\nWhat to do\n\n{remedy}\n", self.code, self.title, paragraphs.join("\n\n"))
    }
}

/// All pages: the rules of the verdict first, in the order in which they are applied.
pub fn pages() -> Vec<Page> {
    RULES.iter().map(|rule| rule.page()).chain(WARNINGS.iter().map(|warning| warning.page())).collect()
}

/// The page of a code, case-insensitive; retired codes are included.
pub fn explain(code: &str) -> Option<Page> {
    pages()
        .into_iter()
        .chain(RETIRED.iter().map(|rule| rule.page()))
        .find(|page| page.code.eq_ignore_ascii_case(code.trim()))
}

/// The reference page `docs/reference/verdicts.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "# Verdicts and warnings\n\n\
         Generated from the tables in `crates/record`; do not edit.\n\n\
         Each run ends with a verdict: **valid**, **suspect** (read the reasons before quoting a figure) or **invalid** \
         (the figures do not describe the system, or where a rule says so, its times do not). The verdict is the worst of the rules below. Warnings do not change \
         it. `pubmark explain CODE` prints the page of a code.\n",
    );
    let mut section = |title: &str, pages: &mut dyn Iterator<Item = Page>| {
        text.push_str(&format!("\n## {title}\n"));
        for page in pages {
            let paragraphs = page.paragraphs().collect::<Vec<_>>().join("\n\n");
            text.push_str(&format!(
                "\n### {}: {}\n\n{paragraphs}\n\n**What to do:** {}\n",
                page.code, page.title, page.remedy
            ));
        }
    };
    section("Rules of the verdict", &mut RULES.iter().map(|rule| rule.page()));
    section("Retired rules", &mut RETIRED.iter().map(|rule| rule.page()));
    section("Warnings", &mut WARNINGS.iter().map(|warning| warning.page()));
    text
}

fn wrapped(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<&str> = pages().iter().map(|page| page.code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }

    #[test]
    fn a_page_is_found_in_either_case_and_wraps() {
        let page = explain(" v01 ").unwrap();
        assert_eq!(page.code, "V01");
        assert!(page.text(60).lines().all(|line| line.chars().count() <= 60), "{}", page.text(60));
        assert!(explain("V99").is_none());
        assert!(explain("V03").unwrap().meaning.contains("interval now"), "retired codes have a history");
    }

    #[test]
    fn every_page_says_what_it_means_and_what_to_do() {
        for page in pages() {
            assert!(page.meaning.ends_with('.') && page.remedy.ends_with('.'), "{}", page.code);
        }
    }
}
