//! Errors that occur with containers only.

use crate::error::quoted;

/// Why a container could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// No engine runs containers on this machine.
    #[error("no container engine found: {found}; `apt-get install podman runc` brings one")]
    NoEngine {
        /// The engines that were tried, and what each printed.
        found: String,
    },
    /// The engine is present, but its runtime cannot run here.
    #[error("{engine} cannot run containers here: {reason}; `{fix}`")]
    NoRuntime {
        /// The engine with its version.
        engine: String,
        /// The reason.
        reason: String,
        /// The command to type.
        fix: String,
    },
    /// The image is not on this machine and could not be fetched.
    #[error("image `{image}` is not here and {outcome}: `{program} pull {image}` fetches it{}", quoted(.output))]
    Image {
        /// The image.
        image: String,
        /// How the attempt to fetch it ended.
        outcome: String,
        /// The engine's program.
        program: String,
        /// The end of the engine's output.
        output: String,
    },
    /// The engine's output could not be parsed.
    #[error("failed to read what `{command}` says{}", quoted(.output))]
    Answer {
        /// The command.
        command: String,
        /// The output.
        output: String,
    },
    /// A limit that this engine would ignore.
    #[error("{engine} cannot hold a limit on {limit} here: {reason}")]
    Limit {
        /// The engine with its version.
        engine: String,
        /// The resource that should have been limited.
        limit: &'static str,
        /// The reason, and what to do instead.
        reason: String,
    },
}
