//! `pubmark completions`: scripts with which a shell completes the command line.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;

/// Print the completions of a shell.
///
/// `make install` puts those of bash, zsh and fish where the shells look for them. For the current session of bash
/// only: `source <(pubmark completions bash)`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn perform(self, program: &Command, printer: &Printer) -> Outcome {
        printer.result(&script(self.shell, program))?;
        Ok(ExitCode::Ok)
    }
}

/// The script of a shell.
fn script(shell: Shell, program: &Command) -> String {
    let mut program = shown(program);
    let mut script = vec![];
    clap_complete::generate(shell, &mut program, "pubmark", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The program without its internal verbs.
pub fn shown(program: &Command) -> Command {
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let mut shown = Command::new("pubmark")
        .args(program.get_arguments().cloned())
        .subcommands(verbs)
        .disable_help_subcommand(true)
        .version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = program.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(after) = program.get_after_help() {
        shown = shown.after_help(after.clone());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory as _;

    /// Every verb with its visible options.
    fn options(program: &Command) -> Vec<(String, String)> {
        let shown = shown(program);
        let of = |verb: &Command| {
            let name = verb.get_name().to_owned();
            let options = verb.get_arguments().filter(|option| !option.is_hide_set());
            options.filter_map(|option| Some((name.clone(), option.get_long()?.to_owned()))).collect::<Vec<_>>()
        };
        shown.get_subcommands().flat_map(of).collect()
    }

    #[test]
    fn each_shell_completes_every_verb_and_every_option_and_no_hidden_verb() {
        let program = Arguments::command();
        let options = options(&program);
        assert!(options.len() > 100, "the options are no longer found: {}", options.len());
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, &program);
            for (verb, option) in &options {
                // fish has the name alone, after `-l`.
                let written = [format!("--{option}"), format!("-l {option}")];
                let has = |word: &String| script.contains(word.as_str());
                assert!(script.contains(verb.as_str()) && written.iter().any(has), "{shell}: {verb} --{option}");
            }
            assert!(!script.contains("supervisor"), "{shell} offers what is hidden");
        }
    }

    /// The options of a verb must be in the completion of that verb, not somewhere else in the script.
    #[test]
    fn bash_completes_the_options_of_each_verb_with_that_verb() {
        let script = script(Shell::Bash, &Arguments::command());
        for (verb, option) in options(&Arguments::command()) {
            let case = script.split("\n        pubmark__subcmd__").find(|case| case.starts_with(&format!("{verb})")));
            assert!(
                case.is_some_and(
                    |case| case.contains(&format!("--{option} ")) || case.contains(&format!("--{option}\""))
                ),
                "{verb} --{option}: {case:?}"
            );
        }
    }
}
