//! Systems in containers: podman or docker, by their command line.
//!
//! A container is run in the foreground, so for whoever holds it, it is a program like any other: its output is the log,
//! a SIGTERM is passed on, its end is the end of `ENGINE run`. What differs is taken back by a clean-up command. Start
//! with [`Engine::find`], then [`Engine::prepare`] once, then [`Engine::command_line`] for each broker, and
//! [`Engine::cost_place`] when it runs.
//!
//! **Network**: always the host's (`--network host`). Behind a bridge, network address translation and a virtual pair of
//! interfaces would be measured with the system, and not for systems that run as programs. Ports are free loopback ports
//! here as there, and nothing of the machine's packet filter is touched.

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
pub(crate) use engine::{FAILED, QUESTION};
pub use error::ContainerError;
pub use place::ContainerEnd;
pub(crate) use place::LOOK;
