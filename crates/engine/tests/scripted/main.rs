//! Runs over clients that exist only in memory and pause when a test requires it.

#![allow(clippy::unwrap_used)]

mod clients;
mod declined;
mod late_begin;
mod unprepared;
