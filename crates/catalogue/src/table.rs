//! The list of tables: name and content of each, details of one item, an overview of all.

use pubmark_report::wrapping::wrap;
use pubmark_runner::{RunError, suggestion};

use crate::{experiments, links, protocols, systems, workloads};

/// A table of named items.
#[derive(Debug)]
pub struct Table {
    /// Name of the table on the command line.
    pub word: &'static str,
    /// Description of its items.
    pub about: &'static str,
    /// A line or two for each item.
    pub text: fn() -> Result<String, RunError>,
    /// Names of its items.
    pub names: fn() -> Result<Vec<String>, RunError>,
    /// Details of one item; `None` if there is none of that name.
    pub details: fn(&str) -> Result<Option<String>, RunError>,
    /// The table as a page of the reference.
    pub markdown: fn() -> Result<String, RunError>,
}

/// Items that a run or an experiment can name. A new table is a row here.
pub static TABLES: [Table; 5] = [
    Table {
        word: "workloads",
        about: "Who sends what to whom",
        text: workloads::text,
        names: workloads::names,
        details: workloads::details,
        markdown: workloads::markdown,
    },
    Table {
        word: "systems",
        about: "What pubmark can start and measure",
        text: systems::text,
        names: systems::names,
        details: systems::details,
        markdown: systems::markdown,
    },
    Table {
        word: "protocols",
        about: "What clients can speak",
        text: || Ok(protocols::text()),
        names: || Ok(protocols::names()),
        details: |name| Ok(protocols::details(name)),
        markdown: || Ok(protocols::markdown()),
    },
    Table {
        word: "experiments",
        about: "What `pubmark experiment` can run",
        text: experiments::text,
        names: experiments::names,
        details: experiments::details,
        markdown: experiments::markdown,
    },
    Table {
        word: "links",
        about: "Emulated networks that groups can be put behind",
        text: links::text,
        names: links::names,
        details: links::details,
        markdown: links::markdown,
    },
];

impl Table {
    /// Details of one item.
    ///
    /// # Errors
    /// There is no item of that name; the hint lists the names.
    pub fn one(&self, name: &str) -> Result<String, RunError> {
        if let Some(text) = (self.details)(name)? {
            return Ok(text);
        }
        let names = (self.names)()?;
        Err(RunError::input(format!("`{name}` is not in `pubmark list {}`", self.word))
            .hint(suggestion::choices(name, names.iter().map(String::as_str))))
    }
}

/// The built-in item of that name, in any table.
///
/// # Errors
/// A built-in item cannot be loaded.
pub fn find(name: &str) -> Result<Option<String>, RunError> {
    for table in &TABLES {
        if let Some(text) = (table.details)(name)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// The names of all items.
///
/// # Errors
/// A built-in item cannot be loaded.
pub fn overview() -> Result<String, RunError> {
    let mut text = String::new();
    for table in &TABLES {
        let names = (table.names)()?;
        text.push_str(&format!("{} ({}): {}\n", table.word, names.len(), table.about));
        text.push_str(&wrap("  ", 2, &names.join(", ")));
        text.push('\n');
    }
    text.push_str("`pubmark list systems` prints a line for each, `pubmark list systems mosquitto`\nall about one\n");
    Ok(text)
}

/// All tables as pages, one after the other.
///
/// # Errors
/// A built-in item cannot be loaded.
pub fn markdown() -> Result<String, RunError> {
    Ok(TABLES.iter().map(|table| (table.markdown)()).collect::<Result<Vec<_>, RunError>>()?.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_report::wrapping::COLUMNS;

    #[test]
    fn everything_that_is_named_has_details_that_fit_a_terminal() {
        for table in &TABLES {
            let names = (table.names)().expect("built in");
            let listed = (table.text)().expect("built in");
            assert!(!names.is_empty(), "{} is empty", table.word);
            for name in names {
                assert!(listed.contains(&name), "{name} is missing from {}", table.word);
                let details = table.one(&name).expect("named");
                assert!(details.lines().all(|line| line.chars().count() <= COLUMNS), "{details}");
            }
        }
    }

    #[test]
    fn a_wrong_name_is_mended() {
        let error = TABLES[1].one("mosqitto").expect_err("a wrong name");
        assert_eq!(error.chain, ["`mosqitto` is not in `pubmark list systems`"]);
        assert!(error.hint.is_some_and(|hint| hint.starts_with("did you mean `mosquitto`?")));
    }
}
