//! Systems in containers.

mod error;

pub use error::ContainerError;
