//! Zenoh against a router of the library's own and between peers.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod peers;
mod router;
mod trouble;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pubmark_adapters::zenoh::{Routed, RoutedBlocking, ZenohClients};
use pubmark_conformance::cases::run_all_but;
use pubmark_conformance::deadline::Deadline;
use pubmark_conformance::server::Listener;
use router::{Blocking, Dropping, Installed, Router};

type Drops = ZenohClients<Routed>;
type Blocks = ZenohClients<RoutedBlocking>;

const LEFT_OUT: [(&str, &str); 2] = [
    ("a reader held up shows in its stamps", "the library reads on threads of its own, whatever the shard does"),
    ("a packet too large is refused", "a Zenoh router drops in silence what is larger than it takes"),
];

static TURN: Mutex<()> = Mutex::new(());

/// One test at a time: all sessions of a process share the few threads of the library, and a flood in one test delays
/// the heartbeats of another beyond a lease of a second.
fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for a test that runs none of the suite's cases, which have a deadline each.
fn turn_with_deadline() -> (Deadline, MutexGuard<'static, ()>) {
    let turn = turn();
    (Deadline::start("Zenoh"), turn)
}

#[test]
fn through_a_router_that_makes_senders_wait() {
    let _turn = turn();
    run_all_but::<Blocks, Router<Blocking>>(Blocks::capabilities(), Listener::Plain, &LEFT_OUT);
}

#[test]
fn through_a_router_that_drops() {
    let _turn = turn();
    const WHY: &str = "on a busy machine a large message may find no room for 50 ms";
    let sizes = ["every size arrives whole at every level", "answers name their requests"].map(|name| (name, WHY));
    let left_out = [&LEFT_OUT[..], &sizes].concat();
    run_all_but::<Drops, Router<Dropping>>(Drops::capabilities(), Listener::Plain, &left_out);
}

#[test]
#[ignore = "slow: make test-all"]
fn through_the_router_that_users_install() {
    let _turn = turn();
    run_all_but::<Blocks, Router<Installed>>(Blocks::capabilities(), Listener::Plain, &LEFT_OUT);
}
