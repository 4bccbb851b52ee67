//! Bars: does pubmark's judgement hold over many repetitions? `make test` looks at a few of each, `make bars` at as many as
//! the bar says, one after another, on a machine that should be quiet.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod capacity;
mod choose;
mod leftovers;
mod order;
mod place;
mod same;
