//! The error for an option that other verbs have and the one that was called lacks. clap would suggest to pass it as a
//! value, or another option that is written alike.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::failure::Failure;

/// Name of the program.
const PROGRAM: &str = "pubmark";
/// Verb behind whose `--` stand options of `pubmark run`, as clap suggests.
const DEPLOY: &str = "deploy";

/// The error for an option of other verbs; `None` for any other error. `command` is pubmark's, `verb` the one that was called.
pub fn refusal(error: &clap::Error, command: &Command, verb: &str) -> Option<Failure> {
    if error.kind() != ErrorKind::UnknownArgument || verb == DEPLOY || command.find_subcommand(verb).is_none() {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = option.strip_prefix("--")?;
    let shown = command.get_subcommands().filter(|other| !other.is_hide_set());
    let having = shown.filter(|other| other.get_arguments().any(|arg| is_called(arg, name)));
    let verbs: Vec<String> = having.map(|other| named(other.get_name())).collect();
    let have = match verbs.len() {
        0 => return None,
        1 => "has",
        _ => "have",
    };
    let own = named(&format!("{verb} --help"));
    let whose = format!("{} {have} it; {own} shows those of this one", verbs.join(", "));
    Some(Failure::usage(format!("{} has no `--{name}`", named(verb))).hint(whose))
}

/// A call of pubmark in a message.
fn named(words: &str) -> String {
    format!("`{PROGRAM} {words}`")
}

fn is_called(arg: &Arg, name: &str) -> bool {
    !arg.is_hide_set()
        && (arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    /// The error and its hint for a call that has an option of other verbs.
    fn refused(words: &[&str]) -> Option<(String, String)> {
        let words = [&["pubmark"][..], words].concat();
        let error = Arguments::command().try_get_matches_from(&words).unwrap_err();
        let failure = refusal(&error, &Arguments::command(), words[1])?;
        Some((failure.chain[0].clone(), failure.hint.unwrap()))
    }

    #[test]
    fn an_option_of_other_verbs_is_refused_with_their_names() {
        let choose = ["choose", "--workload", "hello", "--slo", "loss=0"];
        let (reason, hint) = refused(&[&choose[..], &["--pin", "system=0"]].concat()).unwrap();
        assert_eq!(reason, "`pubmark choose` has no `--pin`");
        assert_eq!(
            hint,
            "`pubmark run`, `pubmark compare`, `pubmark capacity` have it; `pubmark choose --help` shows those of this one"
        );
        let (reason, _) = refused(&["paper", "psmark", "--endpoint=ours=mqtt://host"]).unwrap();
        assert_eq!(reason, "`pubmark paper` has no `--endpoint`");
        assert_eq!(refused(&["run", "hello", "--qoss", "1"]), None, "clap knows an option that is written alike");
        assert_eq!(refused(&["deploy", "compose", "hello", "--qos", "1"]), None, "it stands behind `--`");
        assert_eq!(refused(&["run", "hello", "--qos", "7"]), None, "another error");
    }
}
