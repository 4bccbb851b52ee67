//! The cases, and the table that lists them. A new case is a function and a row.

mod connecting;
mod delivery;
mod losing;
mod many;
mod requests;
mod sessions;
mod sharing;
mod stamps;
mod working;

use pubmark_model::qos::Qos;
use pubmark_protocol::any::{self, Open};
use pubmark_protocol::capabilities::{Capabilities, SentMeans};
use pubmark_protocol::clients::Clients;
use pubmark_protocol::endpoint::Endpoint;

use crate::deadline::Deadline;
use crate::peer::Peer;
use crate::server::{Limits, Listener, Missing, Server};

/// A server with the listener to be used, and what the adapter can do.
pub struct Target {
    /// The server.
    pub server: Box<dyn Server>,
    /// Plain or encrypted.
    pub listener: Listener,
    /// The adapter's.
    pub capabilities: Capabilities,
    /// Its sessions pause reading while their subscribers process a message.
    pub pauses: bool,
    /// Opens the adapter.
    open: Open,
}

impl Target {
    /// The level at which messages are acknowledged, or best effort where none are.
    pub fn acknowledged_level(&self) -> Qos {
        if self.acknowledges() { Qos::AtLeastOnce } else { Qos::BestEffort }
    }

    /// The lowest level at which the first message of a session arrives.
    pub fn first_sure_level(&self) -> Qos {
        if self.server.discovers_late() { self.acknowledged_level() } else { self.capabilities.levels[0].qos }
    }

    /// Are messages acknowledged at all?
    pub fn acknowledges(&self) -> bool {
        self.capabilities.offers(Qos::AtLeastOnce)
    }

    /// Reports that a case needs acknowledgements; true if there are none.
    pub fn has_no_acknowledgements(&self) -> bool {
        if !self.acknowledges() {
            pubmark_testing::skip(format_args!("{} acknowledges no messages", self.capabilities.name));
        }
        !self.acknowledges()
    }

    /// Waits until the server has N messages: acknowledged, or written where nothing is acknowledged.
    pub fn settle(&self, peer: &mut Peer, count: usize) {
        let acknowledges = self.acknowledges();
        peer.wait("settled", |record| if acknowledges { record.acknowledged() } else { record.written() } == count);
    }

    /// Clients for the server, pinging after 60 s of silence.
    pub fn peer(&self) -> Peer {
        self.peer_with_keep_alive(60)
    }

    /// Clients for another of the server's listeners.
    pub fn peer_at_listener(&self, listener: Listener) -> Result<Peer, Missing> {
        let endpoints = [self.server.endpoint(listener)?, self.server.subscribers_endpoint(listener)?];
        Ok(Peer::of_two(self.open, endpoints, 60))
    }

    /// Clients for an endpoint.
    pub fn peer_at(&self, endpoint: Endpoint) -> Peer {
        Peer::of(self.open, endpoint)
    }

    /// Clients for the server, pinging after so much silence.
    pub fn peer_with_keep_alive(&self, keep_alive_s: u16) -> Peer {
        let subscriber = self.server.subscribers_endpoint(self.listener).expect("it was there when the case began");
        Peer::of_two(self.open, [self.endpoint(), subscriber], keep_alive_s)
    }

    /// Waits until the server has N messages of a level.
    pub fn settle_at(&self, peer: &mut Peer, qos: Qos, count: usize) {
        let acknowledged = qos != Qos::BestEffort;
        peer.wait("settled", |record| if acknowledged { record.acknowledged() } else { record.written() } == count);
    }

    /// Does a client library read the sockets without reporting what it reads?
    pub fn reads_itself(&self) -> bool {
        self.capabilities.sent_means == SentMeans::HandedOver
    }

    /// Endpoint to which the adapter connects.
    pub fn endpoint(&self) -> Endpoint {
        self.server.endpoint(self.listener).expect("the listener was there when the case began")
    }
}

/// One expectation of every adapter.
pub struct Case {
    /// What is expected, as a sentence.
    pub name: &'static str,
    /// What the server must accept.
    pub limits: Limits,
    /// Runs the case; panics if the expectation is not met.
    pub run: fn(&mut Target),
}

/// All cases.
pub fn all() -> Vec<Case> {
    let large = |name, run| Case { name, limits: Limits::Large, run };
    let small = |name, run| Case { name, limits: Limits::Small, run };
    vec![
        large("every size arrives whole at every level", delivery::every_size_at_every_level),
        large("payloads without room for a header arrive whole", delivery::bare_payloads),
        large("a header beside the payload is stamped and read", delivery::a_header_beside_the_payload),
        large("a flood through a full socket arrives whole and in order", delivery::a_flood_in_order),
        large("filters choose as the standard says", delivery::filters_choose),
        large("a retained message is replayed and marked", delivery::retained_is_marked),
        large("the in-flight window is kept", delivery::the_window_is_respected),
        large("a silent subscription holds up nothing that its session sends", delivery::a_silent_subscription),
        large("many clients hear many, and leave no socket", many::many_to_many),
        large("stamps are in order", stamps::stamps_are_in_order),
        large("a reader held up shows in its stamps", stamps::a_reader_held_up),
        large("a persistent session gets what it missed", sessions::persistent_gets_what_it_missed),
        large("a final goodbye leaves no session", sessions::final_goodbye_leaves_nothing),
        large("a persistent session of an earlier run is not continued", sessions::earlier_run_is_not_continued),
        large("a clean session forgets", sessions::clean_forgets),
        large("unanswered messages are sent again when the session is there", sessions::sent_again),
        large("unanswered messages of a lost session are reported", sessions::lost_session),
        large("each message goes to one member of a shared group", sharing::each_message_goes_to_one_member),
        large("a subscriber at work is given nothing more", working::one_at_a_time),
        large("a subscriber long at work is not cut off", working::a_long_time),
        large("answers name their requests", requests::replies_name_their_requests),
        large(
            "who only listens hears a request as a message",
            requests::a_plain_subscriber_receives_a_request_as_a_message,
        ),
        large("a request that nobody hears has no answer", requests::a_request_without_a_responder_has_no_reply),
        large("a wrong password is reported as one", connecting::wrong_password),
        large("a port without listener is unreachable", connecting::unreachable),
        large("another authority's certificate is refused", connecting::wrong_authority),
        large("a killed server is noticed", losing::killed_server),
        large("a server that stops answering is noticed", losing::silent_server),
        small("a packet too large is refused", losing::too_large),
    ]
}

/// Runs all cases; prints each with its outcome and fails if one failed. Cases with the same limits share a server, unless a
/// case stopped it. A case that does not end within [`LIMIT`](crate::deadline::LIMIT) ends the process.
pub fn run_all<C: Clients + 'static, S: Server + 'static>(capabilities: Capabilities, listener: Listener) {
    run_all_but::<C, S>(capabilities, listener, &[]);
}

/// Runs all cases except those named, each with the reason.
pub fn run_all_but<C: Clients + 'static, S: Server + 'static>(
    capabilities: Capabilities,
    listener: Listener,
    left_out: &[(&str, &str)],
) {
    run_opened::<S>(any::open::<C>, C::PAUSES, capabilities, listener, left_out);
}

/// The same for clients that need more than their type to be opened.
pub fn run_opened<S: Server + 'static>(
    open: Open,
    pauses: bool,
    capabilities: Capabilities,
    listener: Listener,
    left_out: &[(&str, &str)],
) {
    let start = |limits| {
        let server = S::start(limits)?;
        server.endpoint(listener)?;
        Ok(Target { server: Box::new(server), listener, capabilities, pauses, open })
    };
    run_over(&start, &format!("{} {listener:?}", capabilities.name), left_out);
}

/// Runs only these cases, for an adapter that cannot run the others because of `reason`.
pub fn run_only<C: Clients + 'static, S: Server + 'static>(
    capabilities: Capabilities,
    listener: Listener,
    names: &[&str],
    reason: &str,
) {
    assert!(names.iter().all(|name| all().iter().any(|case| case.name == *name)), "not all of {names:?} are cases");
    let left_out: Vec<&str> = all().iter().map(|case| case.name).filter(|name| !names.contains(name)).collect();
    let left_out: Vec<(&str, &str)> = left_out.into_iter().map(|name| (name, reason)).collect();
    run_all_but::<C, S>(capabilities, listener, &left_out);
}

/// Runs all cases over targets that `start` makes.
fn run_over(start: &dyn Fn(Limits) -> Result<Target, Missing>, over: &str, left_out: &[(&str, &str)]) {
    for (name, _) in left_out {
        assert!(all().iter().any(|case| case.name == *name), "there is no case `{name}`");
    }
    let mut failed = Vec::new();
    let mut target: Option<(Limits, Target)> = None;
    for case in all() {
        let label = format!("{over}: {}", case.name);
        if let Some((_, reason)) = left_out.iter().find(|(name, _)| *name == case.name) {
            pubmark_testing::skip(format_args!("{label}: {reason}"));
            continue;
        }
        if target.as_ref().is_none_or(|(limits, _)| *limits != case.limits) {
            target = match start(case.limits) {
                Ok(started) => Some((case.limits, started)),
                Err(Missing(reason)) => {
                    pubmark_testing::skip(format_args!("{label}: {reason}"));
                    continue;
                }
            };
        }
        let Some((_, running)) = &mut target else { continue };
        let deadline = Deadline::start(&format!("`{label}` over {}", running.capabilities.title));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (case.run)(running)));
        drop(deadline);
        eprintln!("{}: {label}", if outcome.is_ok() { "ok" } else { "FAILED" });
        if outcome.is_err() {
            failed.push(label);
            target = None;
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}
