//! Subscribers that are interested in messages by their content: publishers and clients both ask the predicate, each of the message
//! that it has in its hands, and closing the books compares them message by message.

pub mod broker;
pub mod closing;
pub mod counts;
pub mod matches;
pub mod unmatched;
