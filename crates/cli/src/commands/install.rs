//! `pubmark install`: installs systems with the commands in their definitions, and client programs.

use std::sync::atomic::AtomicBool;

use clap::Args;
use pubmark_runner::RunError;
use pubmark_runner::installing::{try_out, try_out_client};
use pubmark_runner::target::definition;
use pubmark_systems::Definition;
use pubmark_systems::client_programs::{self, BundledClient};
use pubmark_systems::install::{self, Installed};

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;
use crate::signals;

/// Install systems and client programs that pubmark can start, and see whether they work.
///
/// Shows the commands of a system's definition and executes them, unless the system is installed. Programs that no package
/// manager installs go into pubmark's own folder ($PUBMARK_PROGRAMS, or ~/.local/share/pubmark/programs). Then the system is
/// started and a message is sent through it over each protocol. Packages of the machine need root. Client programs are paho
/// and mqttjs (`--client`): their files are part of pubmark, their libraries come from PyPI and npm.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Install {
    /// Systems by name (`pubmark list systems`), paths of definitions, or client programs by name
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,

    /// Print the commands, execute nothing
    #[arg(long)]
    pub print: bool,

    /// Execute the commands even if the system is installed
    #[arg(long, conflicts_with = "print")]
    pub again: bool,

    /// Do not start the systems afterwards
    #[arg(long, conflicts_with = "print")]
    pub untried: bool,
}

impl Install {
    /// Installs one item after the other; the first failure ends the installation.
    pub fn perform(self, printer: &Printer) -> Outcome {
        // All names are validated before any command is executed.
        let clients: Vec<&BundledClient> = self.names.iter().filter_map(|name| client_programs::find(name)).collect();
        let systems = self.names.iter().filter(|name| client_programs::find(name).is_none());
        let definitions: Vec<Definition> = systems.map(|name| definition(name)).collect::<Result<_, _>>()?;
        if self.print {
            let scripts = install::scripts(&definitions).map_err(RunError::from)?;
            let clients = clients.iter().map(|client| format!("\n{}", client.printed_script()));
            printer.result(&clients.fold(scripts, |text, client| text + &client))?;
            return Ok(ExitCode::Ok);
        }
        let stop = signals::watch()?;
        for definition in &definitions {
            let installed = self.install(definition, &stop, printer)?;
            let tried = if self.untried { vec![] } else { try_out(definition, &stop, &|text| printer.note(text))? };
            printer.result(&line(definition, &installed, &tried))?;
        }
        for client in clients {
            printer.result(&self.install_client(client, &stop, printer)?)?;
        }
        Ok(ExitCode::Ok)
    }

    /// Installs a client program and starts it once as a test. Returns the result as text.
    fn install_client(&self, client: &BundledClient, stop: &AtomicBool, printer: &Printer) -> Result<String, RunError> {
        let name = client.name;
        if client.is_here() && !self.again {
            printer.note(&format!("{name} is here already"));
        } else {
            printer.note(&format!("installing {name} by:"));
            client.printed_script().lines().for_each(|line| printer.note(&format!("  {line}")));
            client.install(stop, &mut |line| printer.note(&format!("  | {line}")))?;
        }
        if self.untried {
            return Ok(format!("{name}: {}", client.library));
        }
        let (library, protocols) = try_out_client(name)?;
        Ok(format!("{name}: {library} starts and speaks {}", protocols.join(", ")))
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

/// The result of the installation of one system.
fn line(definition: &Definition, installed: &Installed, tried: &[String]) -> String {
    let version = installed.version.as_deref().unwrap_or("(version unknown)");
    let works = if tried.is_empty() { String::new() } else { format!(" works over {}", tried.join(", ")) };
    format!("{} {version}{works}: {}", definition.name, installed.program.display())
}
