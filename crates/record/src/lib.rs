//! The run record: everything a run found out, in one serialisable structure. Whatever a report shows comes from here.
//!
//! Start with [`record::Record`]. A value that was not measured is absent (`null`), never 0.
//! [`verdict`] judges whether it may be believed, [`warnings`] says what a reader should know besides, [`store`] keeps it
//! in a run folder, [`comparison`] puts several side by side.

pub mod capacity;
pub mod codes;
pub mod comparison;
pub mod cost;
pub mod experiment;
pub mod record;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod schema;
pub mod store;
pub mod tables;
pub mod time;
pub mod verdict;
pub mod warnings;

mod quantity;
