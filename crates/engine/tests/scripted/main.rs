//! Runs over clients that exist in memory alone and stand still when a test says so.

#![allow(clippy::unwrap_used)]

mod clients;
mod late_begin;
