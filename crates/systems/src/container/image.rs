//! Images: checks for presence, fetches, and the command that prints the version of the program in an image.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ContainerError;
use super::engine::{Engine, QUERY_LIMIT};
use super::owner::{OURS, OWNER, Owner};
use crate::definition::{ContainerBackEnd, VersionCommand};
use crate::error::SystemError;
use crate::process::{Process, run_to_end};
use crate::running::log_tail;

/// Longest time to fetch an image: some hundred MB over a slow line.
const FETCH: Duration = Duration::from_secs(900);
/// Time between two checks of whether an image has been fetched.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Engine {
    /// Prepares a start: removes containers whose owners have ended, and fetches the image if it is not on this
    /// machine, which can take minutes. `system` names the system in errors, the engine's output goes to the file
    /// `log`, and setting `stop` cancels.
    pub fn prepare(&self, system: &str, image: &str, log: &Path, stop: Option<&AtomicBool>) -> Result<(), SystemError> {
        self.remove_abandoned()?;
        if self.has_image(image)? { Ok(()) } else { self.fetch(system, image, log, stop) }
    }

    /// Is the image on this machine?
    pub fn has_image(&self, image: &str) -> Result<bool, SystemError> {
        Ok(run_to_end(self.command(&["image", "inspect", "--format", "{{.Id}}", image]), QUERY_LIMIT)?.0.success())
    }

    /// Arguments of the engine's command that prints the version of the program in an image: it runs the definition's
    /// version command in a container of that name without a network, and removes the container.
    ///
    /// A supervisor runs it: if an owner without one is killed while the engine creates the container, the engine's
    /// monitor of the container remains.
    pub fn version_arguments(
        &self,
        version: &VersionCommand,
        back_end: &ContainerBackEnd,
        image: &str,
        name: &str,
    ) -> Vec<String> {
        let mut arguments = self.global_arguments();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["run", "--rm", "--name", name, "--label", OURS]);
        if let Some(owner) = Owner::this() {
            add(&["--label", &format!("{OWNER}={owner}")]);
        }
        add(&["--pull", "never", "--network", "none"]);
        add(&self.ulimits.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some(entry_point) = version.program.as_ref().or(back_end.entrypoint.as_ref()) {
            add(&["--entrypoint", entry_point]);
        }
        add(&[image]);
        add(&version.arguments.iter().map(String::as_str).collect::<Vec<_>>());
        arguments
    }

    fn fetch(&self, system: &str, image: &str, log: &Path, stop: Option<&AtomicBool>) -> Result<(), SystemError> {
        let failed = |source| SystemError::File { action: "write", path: log.to_owned(), source };
        let output = File::create(log).map_err(failed)?;
        let mut command: Command = self.command(&["pull", image]);
        command.stdin(Stdio::null()).stderr(output.try_clone().map_err(failed)?).stdout(output);
        let mut process = Process::start(command)
            .map_err(|source| SystemError::Run { program: self.program.display().to_string(), source })?;
        let deadline = Instant::now() + FETCH;
        let outcome = loop {
            match process.ended() {
                Some(status) if status.success() => return Ok(()),
                Some(_) => break "could not be fetched".to_owned(),
                None if Instant::now() >= deadline => break format!("was not fetched within {} s", FETCH.as_secs()),
                None if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) => {
                    return Err(SystemError::Interrupted { system: system.to_owned() });
                }
                None => thread::sleep(POLL_INTERVAL),
            }
        };
        Err(ContainerError::Image {
            image: image.to_owned(),
            outcome,
            program: self.program.display().to_string(),
            output: log_tail(log),
        }
        .into())
    }
}
