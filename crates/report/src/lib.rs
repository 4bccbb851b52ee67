//! From a record to something to read: terminal summary, Markdown, CSV, one offline HTML page. All content comes from
//! the record, so any run can be rendered again without the engine.
//!
//! Start with [`terminal::summary`] and [`exports::EXPORTS`]. Values that were not measured are shown as `—`, never as
//! 0.

pub mod charts;
pub mod check;
pub mod columns;
pub mod csv;
pub mod experiment;
pub mod exports;
pub mod html;
pub mod markdown;
pub mod numbers;
pub mod plot;
pub mod table;
pub mod terminal;
pub mod words;
pub mod wrapping;
