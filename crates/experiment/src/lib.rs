//! Many runs: [experiments](experiment) over a grid of settings, and the search for [capacity].
//!
//! Both are built on `pubmark-runner`: every run of theirs is a specification that can be run alone. They tell an [`Observer`] what
//! happens, and print nothing.

pub mod capacity;
mod end;
pub mod experiment;
mod observer;

pub use end::End;
pub use observer::{Event, Observer, RunPlace};
