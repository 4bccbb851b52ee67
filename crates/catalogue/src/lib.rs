//! What is built in (workloads, systems, protocols, experiments, links) and what the words that pubmark prints mean: each as lines for a
//! terminal, the built-in things as pages of `docs/reference`, too.
//!
//! One file per table; each has `text` (a line or two for each row), `names`, `details` (everything about one row) and
//! `markdown` (the page), and a row in [`table::TABLES`]. [`explain`] finds the explanation of a word.

pub mod experiments;
pub mod explain;
pub mod glossary;
pub mod links;
pub mod protocols;
pub mod systems;
pub mod table;
pub mod workloads;
