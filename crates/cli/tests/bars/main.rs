//! Bars: whether pubmark's judgement is right over many repetitions. `make test` makes a few of each, `make bars` as
//! many as the bar requires, one after another, on a machine that should be quiet.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod capacity;
mod choose;
mod leftovers;
mod order;
mod place;
mod same;
