//! A command line that starts one broker, whichever back end it is of.

use std::path::PathBuf;

use crate::definition::ContainerBackEnd;
use crate::limits::ResourceLimits;

/// What is run in the foreground, and what takes back what it leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program: the system's own, or a container engine.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables besides our own.
    pub environment: Vec<(String, String)>,
    /// Commands run after its end, whatever ended it: program and arguments. Each is bounded in time, and a failure is
    /// no error, for most have nothing left to do.
    pub clean_up: Vec<Vec<String>>,
    /// A container holds the limits and cores, so the supervisor must not.
    pub limits_held_by_container: bool,
    /// Name of the container, if it is one.
    pub container: Option<String>,
}

/// What a container is asked for. Everything is filled in already.
#[derive(Clone, Debug)]
pub struct ContainerOrder<'a> {
    /// What the definition says.
    pub back_end: &'a ContainerBackEnd,
    /// The image: the definition's, or the one that was asked for instead.
    pub image: &'a str,
    /// Folders of this machine, each with its place in the container: the private directory, and the one that the
    /// brokers share. Both exist, with all files written.
    pub mounts: Vec<(PathBuf, String)>,
    /// What follows the image.
    pub arguments: Vec<String>,
    /// Environment variables in the container.
    pub environment: Vec<(String, String)>,
    /// Limits, for the engine to hold.
    pub limits: Option<&'a ResourceLimits>,
    /// Cores that it may run on; all if empty. Already as many as the limits allow.
    pub cores: Vec<u32>,
    /// Name for the container (`pubmark-<random>`), not used by any other.
    pub name: String,
}
