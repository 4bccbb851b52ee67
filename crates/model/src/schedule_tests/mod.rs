//! Tests of the schedule, by part.
#![allow(clippy::unwrap_used)]

mod arrivals;
mod churn;
pub(crate) mod fixtures;
mod identity;
mod policies;
mod sizes;
