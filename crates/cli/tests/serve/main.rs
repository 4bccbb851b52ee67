//! `pubmark serve`, end to end: a real server on a free port, real runs, hostile clients.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(clippy::print_stdout, reason = "figures of a test are shown where they are asked for")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod browser;
mod call;
mod credentials;
mod disturbance;
mod files;
mod hostile;
mod killed;
mod kinds;
mod library;
mod life;
mod live;
mod many;
mod messages;
mod metrics;
mod prometheus;
mod queue;
mod refusals;
mod results;
mod resume;
mod server;
mod tls;
