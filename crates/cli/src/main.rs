//! The `pubmark` command: reads the command line, does one verb, prints why it failed, answers with an exit code.
//!
//! Start with [`arguments`] (the verbs) and `commands/<verb>.rs` (the execution of each). Only [`printer`] prints.

mod arguments;
mod commands;
mod events;
mod exit_code;
mod experiments;
mod failure;
mod host;
mod live;
mod metrics;
mod other_verbs;
mod printer;
mod progress;
mod rendering;
mod signals;
mod values;
mod watching;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::printer::Printer;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return unread(&error),
    };
    let printer = Printer::new(arguments.verb.is_quiet());
    match arguments.verb.perform(&printer) {
        Ok(code) => code.into(),
        Err(failure) => {
            printer.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Help and version are results; any other result of clap is a usage error, with clap's text.
fn unread(error: &clap::Error) -> ExitCode {
    let printer = Printer::new(false);
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    if let Some(failure) = other_verbs::refusal(error, &Arguments::command(), &verb.to_string_lossy()) {
        printer.failure(&failure);
        return failure.exit.into();
    }
    let text = error.render();
    if error.use_stderr() {
        let text = if printer.colours_messages() { text.ansi().to_string() } else { text.to_string() };
        // clap writes `tip`, pubmark `hint`.
        let text = text.replace("\n  tip: ", "\nhint: ");
        printer.note(pubmark_report::wrapping::wrap_lines(&text).trim_end());
        return exit_code::ExitCode::Usage.into();
    }
    let text = if printer.colours_result() { text.ansi().to_string() } else { text.to_string() };
    let code = printer.result(&text).map_or_else(|failure: Failure| failure.exit, |()| exit_code::ExitCode::Ok);
    code.into()
}
