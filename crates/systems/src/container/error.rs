//! What can go wrong with a container, apart from what can go wrong with any program.

use crate::error::said;

/// A container could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// No engine runs containers here.
    #[error("no container engine found: {found}; `apt-get install podman runc` brings one")]
    NoEngine {
        /// What was looked for, and what each of them said.
        found: String,
    },
    /// The engine is there, its runtime cannot run here.
    #[error("{engine} cannot run containers here: {reason}; `{fix}`")]
    NoRuntime {
        /// The engine with its version.
        engine: String,
        /// Why not.
        reason: String,
        /// What to type.
        fix: String,
    },
    /// The image is not on this machine and could not be fetched.
    #[error("image `{image}` is not here and {outcome}: `{program} pull {image}` fetches it{}", said(.output))]
    Image {
        /// The image.
        image: String,
        /// How the attempt to fetch it ended.
        outcome: String,
        /// The engine's program.
        program: String,
        /// The end of what the engine said.
        output: String,
    },
    /// The engine answered with something that is not understood.
    #[error("failed to read what `{command}` says{}", said(.output))]
    Answer {
        /// The command.
        command: String,
        /// What it said.
        output: String,
    },
    /// A limit that this engine would leave out.
    #[error("{engine} cannot hold a limit on {limit} here: {reason}")]
    Limit {
        /// The engine with its version.
        engine: String,
        /// What should have been limited.
        limit: &'static str,
        /// Why it cannot, and what can.
        reason: String,
    },
}
