//! The lying broker of the truth tests: it does to messages what a [`Script`] says, and writes every raw event to a journal.
//! An independent program compares the journal with what a run's record claims.
//!
//! It is a broker of its own beside the built-in one: they share sockets, the tree of topics and the account of packet
//! identifiers, nothing that decides about a message. It keeps no wills, forwards no properties, and drops nothing by itself:
//! where a subscriber is too slow it waits.

mod close;
mod connect;
mod forward;
mod journal;
mod parse;
mod process;
mod receive;
mod script;
mod server;
mod state;

pub use parse::ScriptError;
pub use process::{LiarError, OPTIONS, serve_liar};
pub use script::{Ending, Lie, Rule, Script, Selector};
pub use server::{Liar, LiarSettings};
