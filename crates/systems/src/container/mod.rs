//! Systems in containers: podman or docker, by their command line.
//!
//! A container runs in the foreground, so to its supervisor it is a program like any other: its output is the log, a
//! SIGTERM is passed on, and it ends when `ENGINE run` ends. A clean-up command removes what remains. Start with
//! [`Engine::find`], then [`Engine::prepare`] once, then [`Engine::command_line`] for each broker, and
//! [`Engine::cost_source`] when the container runs.
//!
//! **Network**: always the host's (`--network host`). With a bridge, the measurement would include network address
//! translation and a pair of virtual interfaces, but not for systems that run as programs. Ports are free loopback
//! ports in both cases, and the machine's packet filter is not changed.

mod breaking;
mod command_line;
mod engine;
mod error;
mod files;
mod host;
mod image;
mod monitor;
mod owner;
mod place;

pub use engine::{ENGINE_VARIABLE, Engine, EngineKind};
pub(crate) use engine::{FAILED, QUERY_LIMIT};
pub use error::ContainerError;
pub use place::ContainerEnd;
pub(crate) use place::POLL_INTERVAL;
