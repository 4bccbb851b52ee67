//! ZeroMQ: against libzmq's proxy, against programs over libzmq, and against scripted peers.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod flowing;
mod libzmq;
mod opening;
mod peers;
mod script;

use pubmark_adapters::zeromq::ZeroMqClients;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::server::Listener;
use pubmark_conformance::zeromq::ZeroMq;

#[test]
fn through_a_proxy() {
    run_all::<ZeroMqClients, ZeroMq>(ZeroMqClients::capabilities(), Listener::Plain);
}
