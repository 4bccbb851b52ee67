//! A container broken on purpose and put right again. Its processes are the engine's, so it is the engine that is asked.

use std::path::PathBuf;

use super::engine::{Engine, QUESTION, said_by};
use crate::error::SystemError;

impl Engine {
    /// Ends a container's processes at once (SIGKILL). The command that runs it ends a moment later.
    ///
    /// # Errors
    /// The engine does not, or not in time.
    pub fn kill(&self, name: &str) -> Result<(), SystemError> {
        self.tell(&["kill", "--signal", "KILL", name])
    }

    /// Stops a container's processes where they stand, or lets them go on.
    ///
    /// # Errors
    /// The engine does not: without root's rights it needs control groups of version 2.
    pub fn pause(&self, name: &str, pause: bool) -> Result<(), SystemError> {
        self.tell(&[if pause { "pause" } else { "unpause" }, name])
    }

    /// What starts a container again that has ended, in the foreground as before and with the files that it had.
    pub fn starting_again(&self, name: &str) -> (PathBuf, Vec<String>) {
        let mut arguments = self.global_arguments();
        arguments.extend(["start", "--attach", name].map(str::to_owned));
        (self.program.clone(), arguments)
    }

    fn tell(&self, words: &[&str]) -> Result<(), SystemError> {
        said_by(self.command(words), QUESTION).map(drop)
    }
}
