//! A controller for runs: a REST interface over HTTP, a queue that survives a restart, a page that shows a run as it happens.
//!
//! [`Server::open`] takes the folder of results, [`Server::serve`] answers until it is stopped. Runs are made by child processes, one
//! at a time ([`queue`]); what is known of them is files ([`store`]). Who may is in `guard` and [`allow`], what can be asked in
//! `routes`.
//!
//! Threads that answer have the lowest priority: they must not disturb the run whose progress they show.

pub mod allow;
pub mod beside;
mod entry;
mod following;
mod guard;
mod library;
pub mod listener;
mod live;
pub mod metrics;
mod openapi;
mod pages;
mod problem;
pub mod queue;
mod routes;
mod server;
mod shared;
pub mod store;
mod submission;
mod tail;
pub mod tls;
mod token;

pub use openapi::document;
pub use server::{Options, Ready, ServeError, Server};
