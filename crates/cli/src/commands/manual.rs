//! `pubmark manual`: man pages.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::commands::completions::shown;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;

/// Write the man pages: one of the program, one of each verb.
///
/// `make install` puts them where `man pubmark-run` finds them.
#[derive(Debug, Args)]
pub struct Manual {
    /// Folder to write into, `…/share/man/man1`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

impl Manual {
    /// Writes the pages.
    pub fn perform(self, program: &Command, printer: &Printer) -> Outcome {
        let pages = pages(program)?;
        rendering::write_files(&pages, &self.folder)?;
        printer.note(&format!("{}: {} man pages", self.folder.display(), pages.len()));
        Ok(ExitCode::Ok)
    }
}

/// File name and text of each page.
fn pages(program: &Command) -> Result<Vec<(String, String)>, Failure> {
    let mut program = shown(program);
    program.build();
    let mut pages = vec![];
    add(program, "pubmark".to_owned(), &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command, and those of its subcommands.
fn add(command: Command, name: String, pages: &mut Vec<(String, String)>) -> Result<(), Failure> {
    let below: Vec<Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
    let mut text = vec![];
    let rendered = Man::new(command.display_name(name.clone())).render(&mut text);
    rendered.map_err(|error| Failure::from_error(ExitCode::Internal, &error).during("failed to make a man page"))?;
    pages.push((format!("{name}.1"), String::from_utf8_lossy(&text).into_owned()));
    below.into_iter().try_for_each(|verb| {
        let name = format!("{name}-{}", verb.get_name());
        add(verb, name, pages)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory as _;

    #[test]
    fn each_verb_has_a_page_with_all_its_options() {
        let program = Arguments::command();
        let pages = pages(&program).expect("pages");
        let text = |name: &str| {
            let page = pages.iter().find(|(file, _)| file == name);
            page.map(|(_, text)| text.replace("\\-", "-")).unwrap_or_else(|| panic!("{name} is missing"))
        };
        let whole = text("pubmark.1");
        for verb in program.get_subcommands() {
            let file = format!("pubmark-{}.1", verb.get_name());
            if verb.is_hide_set() {
                assert!(pages.iter().all(|(name, _)| *name != file), "{file} is of a hidden verb");
                continue;
            }
            assert!(whole.contains(&format!("pubmark-{}(1)", verb.get_name())), "{whole}");
            let page = text(&file);
            for option in verb.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                assert!(page.contains(&format!("--{long}")), "{file} lacks --{long}");
            }
        }
    }
}
