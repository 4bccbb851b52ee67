//! A program of the user's as the client, over the [client program protocol](pubmark_protocol::client_program).
//!
//! `running` is the process with its socket, `clients` the shard's side, `session` what is known of each client. What is known
//! of times behind a program: docs/reference/client-protocol.md.

mod claims;
mod clients;
mod reading;
mod running;
mod session;
mod starting;

pub use claims::capabilities;
pub use clients::ProgramClients;
pub use starting::hello_of;
