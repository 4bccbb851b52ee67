//! The command line that starts one broker, the same for all back ends.

use std::path::PathBuf;

use crate::definition::ContainerBackEnd;
use crate::limits::ResourceLimits;

/// The command that runs in the foreground, and the commands that clean up after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program: the system's own, or a container engine.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables in addition to our own.
    pub environment: Vec<(String, String)>,
    /// Commands that are run after the program has ended, for whatever reason: program and arguments. Each has a time
    /// limit. A failure is not an error, because most have nothing left to do.
    pub clean_up: Vec<Vec<String>>,
    /// The container engine sets the limits and cores, so the supervisor must not.
    pub limits_held_by_container: bool,
    /// Name of the container, if it is one.
    pub container: Option<String>,
}

/// What a container is to run. All placeholders are filled in.
#[derive(Clone, Debug)]
pub struct ContainerOrder<'a> {
    /// The container back end of the definition.
    pub back_end: &'a ContainerBackEnd,
    /// The image: the definition's, or the one requested instead.
    pub image: &'a str,
    /// Folders of this machine, each with its path in the container: the private directory, and the one that the
    /// brokers share. Both exist, with all files written.
    pub mounts: Vec<(PathBuf, String)>,
    /// Arguments that follow the image.
    pub arguments: Vec<String>,
    /// Environment variables in the container.
    pub environment: Vec<(String, String)>,
    /// Limits that the engine is to set.
    pub limits: Option<&'a ResourceLimits>,
    /// Cores that the container may run on; all if empty. Their number already respects the limits.
    pub cores: Vec<u32>,
    /// Name of the container (`pubmark-<random>`), unique.
    pub name: String,
}
