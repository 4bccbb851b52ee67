//! Bindings for the C library of Eclipse Cyclone DDS 0.10, limited to publishing and subscribing to one type.
//!
//! The library is loaded when it is first used ([`library::library`]): the build does not need it, and a program that was built
//! without it uses it where it is installed (docs/explanation/dds.md). Start with [`domain::Domain`]. All unsafe code of the
//! DDS adapter is in this crate; a test compares its declarations of the C types with the headers, where they are installed.

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
