//! The only module that prints: results to standard output; progress, warnings and errors to standard error. Control
//! characters are printed as escapes, so that no system, node or file can control the terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use pubmark_record::plain;
use pubmark_report::terminal::TerminalOptions;
use pubmark_report::wrapping::{COLUMNS, wrap_lines};
use serde::Serialize;

use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Where text is printed, and whether it may have colour.
#[derive(Clone, Debug)]
pub struct Printer {
    quiet: bool,
    result_terminal: bool,
    message_terminal: bool,
    colour_allowed: bool,
}

impl Printer {
    /// Reads the properties of the two streams, and `NO_COLOR` (no-color.org) and `TERM`.
    pub fn new(quiet: bool) -> Printer {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Printer {
            quiet,
            result_terminal: io::stdout().is_terminal(),
            message_terminal: io::stderr().is_terminal(),
            colour_allowed: !no_colour && !dumb,
        }
    }

    /// Whether the result may have colour.
    pub fn colours_result(&self) -> bool {
        self.result_terminal && self.colour_allowed
    }

    /// Options for printing a summary, with the folder that it names; the width is that of the terminal.
    pub fn summary_options<'a>(&self, folder: Option<&'a str>) -> TerminalOptions<'a> {
        let width = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let columns = if self.result_terminal { width() } else { None };
        TerminalOptions { colour: self.colours_result(), folder, columns, verbose: false }
    }

    /// Whether messages may have colour.
    pub fn colours_messages(&self) -> bool {
        self.message_terminal && self.colour_allowed
    }

    /// Whether messages go to a terminal. Then progress may be redrawn in place.
    pub fn is_watched(&self) -> bool {
        self.message_terminal && !self.quiet
    }

    /// Prints a result. A closed pipe is not an error: its reader has read all it wanted. Other failures are reported.
    pub fn result(&self, text: &str) -> Result<(), Failure> {
        let text = shown(text, self.colours_result());
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| {
            if !text.ends_with('\n') {
                out.write_all(b"\n")?;
            }
            out.flush()
        });
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::from_error(ExitCode::Internal, &error).during("failed to write to standard output"))
            }
            _ => Ok(()),
        }
    }

    /// Prints a value as JSON.
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text =
            serde_json::to_string_pretty(value).map_err(|error| Failure::from_error(ExitCode::Internal, &error))?;
        self.result(&text)
    }

    /// Prints progress or a note; prints nothing with `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.message(text);
        }
    }

    /// Prints a warning that needs attention, even with `--quiet`.
    #[cfg(any(feature = "cluster", feature = "serve"))]
    pub fn warning(&self, text: &str) {
        self.message(&format!("warning: {text}"));
    }

    /// Prints the reason of a failed call.
    pub fn failure(&self, failure: &Failure) {
        self.message(&self.failure_text(failure));
    }

    /// Writes a line to standard error. If that fails, there is no other stream to report it.
    fn message(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", shown(text, self.colours_messages()));
    }

    fn failure_text(&self, failure: &Failure) -> String {
        let mut text = String::new();
        // A diagnostic has its own text for the innermost cause.
        let own = failure.chain.len() - usize::from(failure.diagnostic.is_some());
        for (depth, line) in failure.chain[..own].iter().enumerate() {
            let head = if depth == 0 { self.paint("error:", RED) } else { "  caused by:".to_owned() };
            text.push_str(&wrap_lines(&format!("{head} {line}")));
        }
        if let Some(diagnostic) = &failure.diagnostic {
            self.diagnostic(diagnostic.as_ref(), &mut text);
        }
        if let Some(hint) = &failure.hint {
            text.push('\n');
            text.push_str(&wrap_lines(&format!("{} {hint}", self.paint("hint:", CYAN))));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Shows the position in the file: with lines drawn on a terminal, plain otherwise.
    fn diagnostic(&self, diagnostic: &dyn miette::Diagnostic, text: &mut String) {
        let theme = match (self.message_terminal, self.colour_allowed) {
            (true, true) => miette::GraphicalTheme::unicode(),
            (true, false) => miette::GraphicalTheme::unicode_nocolor(),
            (false, _) => miette::GraphicalTheme::none(),
        };
        let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(COLUMNS).with_links(false);
        if handler.render_report(text, diagnostic).is_err() {
            let _ = writeln!(text, "error: {diagnostic}");
        }
    }

    fn paint(&self, word: &str, colour: &str) -> String {
        if self.colours_messages() { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word.to_owned() }
    }
}

/// Bold red for failures.
const RED: &str = "1;31";
/// Cyan for something to type.
const CYAN: &str = "36";

/// A text that is safe to print on a terminal: texts of systems, nodes and files may contain control characters, which
/// could control the terminal. Our own colours stay if colour is allowed.
fn shown(text: &str, with_colour: bool) -> Cow<'_, str> {
    if with_colour { plain::masked_but_colours(text) } else { plain::masked(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Printer {
        Printer { quiet: false, result_terminal: false, message_terminal: false, colour_allowed: true }
    }

    #[test]
    fn a_failure_shows_its_causes_and_then_the_hint() {
        let failure = Failure::usage("cannot be resolved").during("failed to use `mqtt://x`").hint("check the name");
        assert_eq!(
            plain().failure_text(&failure),
            "error: failed to use `mqtt://x`\n  caused by: cannot be resolved\n\nhint: check the name"
        );
    }

    #[test]
    fn colour_is_only_for_a_terminal() {
        let failure = Failure::usage("no");
        assert!(!plain().failure_text(&failure).contains('\u{1b}'));
        let watched = Printer { message_terminal: true, ..plain() };
        assert!(watched.failure_text(&failure).contains("\u{1b}[1;31merror:"));
        let no_colour = Printer { message_terminal: true, colour_allowed: false, ..plain() };
        assert_eq!(no_colour.failure_text(&failure), "error: no");
    }
}
