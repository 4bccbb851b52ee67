//! Eclipse Cyclone DDS 0.10 through its C library, as far as publishing and subscribing to one type needs it.
//!
//! The library is loaded when it is first used ([`library::library`]): nothing of it is needed to build, and a program that was built
//! without it uses it where it is installed (docs/explanation/dds.md). Start with [`domain::Domain`]. All unsafe code of the DDS
//! adapter is in this crate; a test compares what it says of the C types with the headers, where those are.

pub mod domain;
pub mod entities;
mod inbox;
#[cfg(test)]
mod layout;
pub mod library;
pub mod qos;
mod raw;
pub mod sample;
pub mod signal;
