//! Faults on purpose in a container, and their end. A container's processes belong to the engine, so the engine
//! executes the faults.

use std::path::PathBuf;

use super::engine::{Engine, QUERY_LIMIT, output_of};
use crate::error::SystemError;

impl Engine {
    /// Kills a container's processes (SIGKILL). The command that runs the container ends a moment later.
    ///
    /// # Errors
    /// The engine fails, or takes too long.
    pub fn kill(&self, name: &str) -> Result<(), SystemError> {
        self.control(&["kill", "--signal", "KILL", name])
    }

    /// Pauses a container's processes, or lets them continue.
    ///
    /// # Errors
    /// The engine fails: without root privileges it needs control groups of version 2.
    pub fn pause(&self, name: &str, pause: bool) -> Result<(), SystemError> {
        self.control(&[if pause { "pause" } else { "unpause" }, name])
    }

    /// The command that starts an ended container again, in the foreground as before and with the files that it had.
    pub fn starting_again(&self, name: &str) -> (PathBuf, Vec<String>) {
        let mut arguments = self.global_arguments();
        arguments.extend(["start", "--attach", name].map(str::to_owned));
        (self.program.clone(), arguments)
    }

    fn control(&self, words: &[&str]) -> Result<(), SystemError> {
        output_of(self.command(words), QUERY_LIMIT).map(drop)
    }
}
