//! Many runs: experiments over a grid of settings, and the search for capacity.
//!
//! Both ([`experiment`], [`capacity`]) are built on `pubmark-runner`: each of their runs is a specification that can be run alone.
//! They report to an [`Observer`] by an [`Event`], which has a text for people and a form for programs, and print
//! nothing.

pub mod capacity;
pub mod end;
pub mod experiment;
mod machines;
mod messages;
mod observer;

pub use end::End;
pub use machines::{Machines, gather};
pub use observer::{Event, Observer, RunPlace, TrialPlace};
