//! `pubmark install`: puts systems where pubmark finds them, by the commands of their definitions.

use std::sync::atomic::AtomicBool;

use clap::Args;
use pubmark_runner::RunError;
use pubmark_runner::installing::try_out;
use pubmark_runner::target::definition;
use pubmark_systems::Definition;
use pubmark_systems::install::{self, Installed};

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
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
            printer.result(&install::scripts(&definitions).map_err(RunError::from)?)?;
            return Ok(ExitCode::Ok);
        }
        let stop = signals::watch()?;
        for definition in &definitions {
            let installed = self.install(definition, &stop, printer)?;
            let tried = if self.untried { vec![] } else { try_out(definition, &stop, &|text| printer.note(text))? };
            printer.result(&line(definition, &installed, &tried))?;
        }
        Ok(ExitCode::Ok)
    }

    fn install(&self, definition: &Definition, stop: &AtomicBool, printer: &Printer) -> Result<Installed, RunError> {
        let name = &definition.name;
        let script = install::script(definition)?;
        if let Some(here) = install::is_up_to_date(definition).filter(|_| !self.again) {
            printer.note(&format!("{name} is here already"));
            return Ok(here);
        }
        printer.note(&format!("installing {name} by:"));
        script.lines().for_each(|line| printer.note(&format!("  {line}")));
        Ok(install::run(definition, stop, &mut |line| printer.note(&format!("  | {line}")))?)
    }
}

/// What came of one system.
fn line(definition: &Definition, installed: &Installed, tried: &[String]) -> String {
    let version = installed.version.as_deref().unwrap_or("(version unknown)");
    let works = if tried.is_empty() { String::new() } else { format!(" works over {}", tried.join(", ")) };
    format!("{} {version}{works}: {}", definition.name, installed.program.display())
}
