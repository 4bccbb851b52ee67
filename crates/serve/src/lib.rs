//! A controller for runs: a REST interface over HTTP, a queue that survives a restart, a page that shows a run as it happens.
//!
//! [`Server::open`] opens the results folder, [`Server::serve`] serves requests until it is stopped. Child processes
//! execute the runs, one at a time ([`queue`]); the state of submissions is stored in files ([`store`]). Authorisation is
//! in `guard` and [`allow`], the HTTP routes are in `routes`.
//!
//! Threads that serve requests have the lowest priority: they must not disturb the run whose progress they show.

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
