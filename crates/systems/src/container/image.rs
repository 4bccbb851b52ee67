//! Images: checks for presence, fetches, and reads the version of the program in an image.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ContainerError;
use super::engine::{Engine, QUERY_LIMIT, output_of};
use super::owner::{OURS, OWNER, Owner};
use crate::definition::ContainerBackEnd;
use crate::error::SystemError;
use crate::process::{Process, run_to_end};
use crate::running::log_tail;

/// Longest time to fetch an image: some hundred MB over a slow line.
const FETCH: Duration = Duration::from_secs(900);
/// Longest run of a container that prints a version.
const VERSION: Duration = Duration::from_secs(30);
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

    /// The version that the program in an image prints: runs the definition's version command in a container without a
    /// network. `None` if the definition has no such command, or the output has another format than expected.
    pub fn read_version(
        &self,
        back_end: &ContainerBackEnd,
        image: &str,
        name: &str,
    ) -> Result<Option<String>, SystemError> {
        let Some(version) = &back_end.version else { return Ok(None) };
        let mut command = self.command(&["run", "--rm", "--name", name, "--label", OURS]);
        if let Some(owner) = Owner::this() {
            command.arg("--label").arg(format!("{OWNER}={owner}"));
        }
        command.args(["--pull", "never", "--network", "none"]).args(&self.ulimits);
        if let Some(entry_point) = version.program.as_ref().or(back_end.entrypoint.as_ref()) {
            command.args(["--entrypoint", entry_point]);
        }
        command.arg(image).args(&version.arguments);
        let said = run_to_end(command, VERSION);
        if said.is_err() {
            // The command was ended at its deadline, and the container may still run. That failure is the one to
            // report.
            let _ = output_of(self.removal(name), QUERY_LIMIT);
        }
        self.wait_for_monitor(name);
        // Some programs exit with a failure after they print their help, so the status is ignored.
        let (_, output) = said?;
        let word = output.split_once(&version.after).and_then(|(_, rest)| rest.split_whitespace().next());
        Ok(word.map(str::to_owned))
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
