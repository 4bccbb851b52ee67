//! Sessions over stream sockets, for any protocol: connecting, TLS, reading in turns, writing, keep-alive,
//! ends. What a protocol adds is its [`Dialect`]; one more of them is one more module beside this one.

#[cfg(feature = "zeromq")]
mod accepting;
mod breaking;
mod clients;
mod deadline;
mod dialect;
mod in_flight;
mod keep_alive;
mod link;
mod receiving;
mod session;
mod working;

pub use clients::StreamClients;
pub use dialect::{Dialect, Refusal, up_to_line_end};
pub use in_flight::{InFlight, Progress};
pub use link::{Blocked, Link, Phase, Sending, Shared};
pub use receiving::Times;
