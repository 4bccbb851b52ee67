//! Many runs: experiments over a grid of settings, and the search for capacity.
//!
//! Both ([`experiment`], [`capacity`]) are built on `pubmark-runner`: each of their runs is a specification that can be run alone.
//! They report what happens to an [`Observer`] as an [`Event`], which has words for people and programs, and print nothing.

pub mod capacity;
pub mod end;
pub mod experiment;
mod machines;
mod observer;
mod telling;

pub use end::End;
pub use machines::Machines;
pub use observer::{Event, Observer, RunPlace, TrialPlace};
