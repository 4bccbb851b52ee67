//! The run record: everything a run found out, in one serialisable structure. Whatever a report shows comes from here.
//!
//! Start with [`record::Record`]. A value that was not measured is absent (`null`), never 0.

pub mod record;
pub mod tables;
