//! The lying broker of the truth tests: it treats messages as a [`Script`] says, and writes every raw event to a journal. An
//! independent program compares the journal with a run's record.
//!
//! It is separate from the built-in broker: they share sockets, the tree of topics and the management of packet identifiers,
//! but no code that decides about a message. It has no wills, forwards no properties, and drops nothing by itself: it waits for
//! a slow subscriber.

mod arrival;
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
