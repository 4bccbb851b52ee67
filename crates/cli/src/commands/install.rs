//! `pubmark install`: puts systems where pubmark finds them, by the commands of their definitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use pubmark_protocols as protocols;
use pubmark_runner::readiness;
use pubmark_runner::target::definition;
use pubmark_systems::install::{self, InstallError, Installed};
use pubmark_systems::{Definition, StartOptions, programs};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::signals;

/// Install systems that pubmark can start, and see whether they work.
///
/// Shows the commands of a system's definition and runs them, unless what they bring is here. What no package manager
/// places goes into a folder of pubmark's own ($PUBMARK_PROGRAMS, or ~/.local/share/pubmark/programs). Then the system
/// is started and a message sent through it, once over each protocol. Packages of the machine need root.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Install {
    /// Systems by name (`pubmark list systems`), or paths of definitions
    #[arg(required = true, value_name = "SYSTEM")]
    pub systems: Vec<String>,

    /// Print the commands, run nothing
    #[arg(long)]
    pub print: bool,

    /// Run the commands even if what they bring is here
    #[arg(long, conflicts_with = "print")]
    pub again: bool,

    /// Do not start the systems afterwards
    #[arg(long, conflicts_with = "print")]
    pub untried: bool,
}

impl Install {
    /// Installs one after the other; the first failure ends it.
    pub fn perform(self, printer: &Printer) -> Outcome {
        // All names are judged before anything is run.
        let definitions: Vec<Definition> =
            self.systems.iter().map(|name| definition(name)).collect::<Result<_, _>>()?;
        if self.print {
            printer.result(&commands(&definitions)?)?;
            return Ok(ExitCode::Ok);
        }
        let stop = signals::watch()?;
        for definition in &definitions {
            let installed = self.install(definition, &stop, printer)?;
            let tried = if self.untried { vec![] } else { try_out(definition, &stop, printer)? };
            printer.result(&line(definition, &installed, &tried))?;
        }
        Ok(ExitCode::Ok)
    }

    fn install(&self, definition: &Definition, stop: &AtomicBool, printer: &Printer) -> Result<Installed, Failure> {
        let name = &definition.name;
        let script = install::script(definition).map_err(failure)?;
        if let Some(here) = install::is_up_to_date(definition).filter(|_| !self.again) {
            printer.note(&format!("{name} is here already"));
            return Ok(here);
        }
        printer.note(&format!("installing {name} by:"));
        script.lines().for_each(|line| printer.note(&format!("  {line}")));
        install::run(definition, stop, &mut |line| printer.note(&format!("  | {line}"))).map_err(failure)
    }
}

/// The commands of all, as a shell script.
fn commands(definitions: &[Definition]) -> Result<String, Failure> {
    let folder =
        programs::folder().map_or_else(|| "/opt/pubmark/programs".to_owned(), |folder| folder.display().to_string());
    let mut text = format!("PROGRAMS='{folder}'\n");
    for definition in definitions {
        text.push_str(&format!("\n# {}\n{}\n", definition.name, install::script(definition).map_err(failure)?));
    }
    Ok(text)
}

/// Starts the system for each protocol and sends a message through it. Gives the protocols; those that neither pubmark nor
/// a probe speaks are left out with a note.
fn try_out(definition: &Definition, stop: &Arc<AtomicBool>, printer: &Printer) -> Result<Vec<String>, Failure> {
    let mut tried = Vec::new();
    for (protocol, offer) in &definition.protocols {
        if protocols::find(protocol).is_none() && offer.probe.is_none() {
            printer.note(&format!("{} over {protocol} is not tried: no probe is known", definition.name));
            continue;
        }
        let options = StartOptions { stop: Some(Arc::clone(stop)), ..StartOptions::new(protocol) };
        let mut ready = |endpoint: &pubmark_systems::Endpoint| readiness::over(definition, protocol, endpoint);
        pubmark_systems::start(definition, &options, &mut ready).map_err(|error| {
            let exit = if stop.load(Ordering::Relaxed) { ExitCode::Interrupted } else { ExitCode::SystemFailed };
            Failure::from_error(exit, &error)
                .during(format!("`{}` is installed but does not work over {protocol}", definition.name))
        })?;
        tried.push(protocol.clone());
    }
    Ok(tried)
}

/// What came of one system.
fn line(definition: &Definition, installed: &Installed, tried: &[String]) -> String {
    let version = installed.version.as_deref().unwrap_or("(version unknown)");
    let works = if tried.is_empty() { String::new() } else { format!(" works over {}", tried.join(", ")) };
    format!("{} {version}{works}: {}", definition.name, installed.program.display())
}

fn failure(error: InstallError) -> Failure {
    let exit = match error {
        InstallError::NoProgram { .. } | InstallError::NoFolder { .. } => ExitCode::Usage,
        InstallError::Interrupted { .. } => ExitCode::Interrupted,
        _ => ExitCode::SystemFailed,
    };
    let failure = Failure::from_error(exit, &error);
    match error {
        InstallError::NoFolder { .. } => {
            failure.hint("`export PUBMARK_PROGRAMS=/opt/pubmark/programs`, a folder of yours alone")
        }
        InstallError::NeedsRoot { command, .. } => failure.hint(format!("`{command}`")),
        InstallError::Failed { .. } => {
            failure.hint("what it said stands above; `pubmark install --print SYSTEM` prints the commands")
        }
        InstallError::TooSlow { .. } => failure.hint("run the commands by hand: `pubmark install --print SYSTEM`"),
        _ => failure,
    }
}
