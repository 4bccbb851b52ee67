//! Subscribers that select messages by their content. Publishers and clients each evaluate the predicate for the
//! message that they have, and the results are compared message by message when the accounting is completed.

pub mod broker;
pub mod closing;
pub mod counts;
pub mod matches;
pub mod unmatched;
