//! The cases, and the table that lists them. A new case is a function and a row.

mod connecting;
mod delivery;
mod losing;
mod many;
mod sessions;
mod stamps;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::Clients;
use pubmark_protocol::endpoint::Endpoint;

use crate::peer::Peer;
use crate::server::{Limits, Listener, Missing, Server};

/// A server with the listener to be used, and what the adapter can do.
pub struct Target<S> {
    /// The server.
    pub server: S,
    /// Plain or encrypted.
    pub listener: Listener,
    /// The adapter's.
    pub capabilities: Capabilities,
}

impl<S: Server> Target<S> {
    /// The level at which messages are acknowledged, or best effort where none are.
    pub fn acknowledged_level(&self) -> Qos {
        if self.acknowledges() { Qos::AtLeastOnce } else { Qos::BestEffort }
    }

    /// Are messages acknowledged at all?
    pub fn acknowledges(&self) -> bool {
        self.capabilities.offers(Qos::AtLeastOnce)
    }

    /// Says that a case needs acknowledgements; true if there are none.
    pub fn has_no_acknowledgements(&self) -> bool {
        if !self.acknowledges() {
            eprintln!("skipped: {} acknowledges no messages", self.capabilities.name);
        }
        !self.acknowledges()
    }

    /// Waits until so many messages are the server's: acknowledged, or written where nothing is.
    pub fn settle<C: Clients>(&self, peer: &mut Peer<C>, count: usize) {
        let acknowledges = self.acknowledges();
        peer.wait("settled", |record| if acknowledges { record.acknowledged() } else { record.written() } == count);
    }

    /// Where the adapter is to connect.
    pub fn endpoint(&self) -> Endpoint {
        self.server.endpoint(self.listener).expect("the listener was there when the case began")
    }
}

/// One expectation of every adapter.
pub struct Case<S> {
    /// What is expected, as a sentence.
    pub name: &'static str,
    /// What the server must take.
    pub limits: Limits,
    /// Tries it; panics if it is not so.
    pub run: fn(&mut Target<S>),
}

/// All cases for an adapter and a server.
pub fn all<C: Clients, S: Server>() -> Vec<Case<S>> {
    let large = |name, run| Case { name, limits: Limits::Large, run };
    let small = |name, run| Case { name, limits: Limits::Small, run };
    vec![
        large("every size arrives whole at every level", delivery::every_size_at_every_level::<C, S>),
        large("a flood through a full socket arrives whole and in order", delivery::a_flood_in_order::<C, S>),
        large("filters choose as the standard says", delivery::filters_choose::<C, S>),
        large("a retained message is replayed and marked", delivery::retained_is_marked::<C, S>),
        large("the in-flight window is kept", delivery::the_window_is_kept::<C, S>),
        large("many clients hear many, and leave no socket", many::many_to_many::<C, S>),
        large("stamps are in order", stamps::stamps_are_in_order::<C, S>),
        large("a reader held up shows in its stamps", stamps::a_reader_held_up::<C, S>),
        large("a persistent session gets what it missed", sessions::persistent_gets_what_it_missed::<C, S>),
        large("a final goodbye leaves no session", sessions::final_goodbye_leaves_nothing::<C, S>),
        large("a clean session forgets", sessions::clean_forgets::<C, S>),
        large("unanswered messages are sent again when the session is there", sessions::sent_again::<C, S>),
        large("unanswered messages of a lost session are told", sessions::lost_session::<C, S>),
        large("a wrong password is told from other refusals", connecting::wrong_password::<C, S>),
        large("a port without listener is unreachable", connecting::unreachable::<C, S>),
        large("another authority's certificate is refused", connecting::wrong_authority::<C, S>),
        large("a killed server is noticed", losing::killed_server::<C, S>),
        large("a server that stops answering is noticed", losing::silent_server::<C, S>),
        small("a packet too large is refused", losing::too_large::<C, S>),
    ]
}

/// Runs all cases; prints each with its outcome and fails if one failed. The same server serves cases with the same limits,
/// unless a case took it down.
pub fn run_all<C: Clients, S: Server>(capabilities: Capabilities, listener: Listener) {
    run_all_but::<C, S>(capabilities, listener, &[]);
}

/// Runs all cases but those named, each with the reason why not.
pub fn run_all_but<C: Clients, S: Server>(capabilities: Capabilities, listener: Listener, left_out: &[(&str, &str)]) {
    for (name, _) in left_out {
        assert!(all::<C, S>().iter().any(|case| case.name == *name), "there is no case `{name}`");
    }
    let mut failed = Vec::new();
    let mut target: Option<(Limits, Target<S>)> = None;
    for case in all::<C, S>() {
        let label = format!("{} {listener:?}: {}", capabilities.name, case.name);
        if let Some((_, reason)) = left_out.iter().find(|(name, _)| *name == case.name) {
            eprintln!("skipped: {label}: {reason}");
            continue;
        }
        if target.as_ref().is_none_or(|(limits, _)| *limits != case.limits) {
            target = match start(case.limits, listener, capabilities) {
                Ok(started) => Some((case.limits, started)),
                Err(Missing(reason)) => {
                    eprintln!("skipped: {label}: {reason}");
                    continue;
                }
            };
        }
        let Some((_, running)) = &mut target else { continue };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (case.run)(running)));
        eprintln!("{}: {label}", if outcome.is_ok() { "ok" } else { "FAILED" });
        if outcome.is_err() {
            failed.push(label);
            target = None;
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}

fn start<S: Server>(limits: Limits, listener: Listener, capabilities: Capabilities) -> Result<Target<S>, Missing> {
    let server = S::start(limits)?;
    server.endpoint(listener)?;
    Ok(Target { server, listener, capabilities })
}
