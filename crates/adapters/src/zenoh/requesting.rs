//! Requests as queries of the library's: a requester gets, a responder is a queryable.
//!
//! The library numbers queries and calls back for each reply to one, so a reply needs no correlation. It stores a query until
//! its time limit, replied to or not.

use std::sync::Arc;
use std::time::Duration;

use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::CongestionControl;
use ::zenoh::query::{ConsolidationMode, QueryTarget};
use ::zenoh::{Session, Wait as _};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Reason, Token};

use super::keys::key_expression;
use super::mailbox::{Key, Kind, Mailbox};
use super::opening::first_line;

/// How long a late reply is still received after its request was given up, so that it is recognised as late.
const LATE_WITHIN: Duration = Duration::from_secs(10);

/// What requests of a connection have in common.
pub struct Requesting {
    patience: Duration,
    key: Key,
    mailbox: Arc<Mailbox>,
}

impl Requesting {
    /// For requests that are given up after `patience`.
    pub fn new(patience: Duration, key: Key, mailbox: &Arc<Mailbox>) -> Requesting {
        Requesting { patience, key, mailbox: Arc::clone(mailbox) }
    }

    /// Sends a request; every reply is passed on as it arrives. By default the library would hold replies back until there can be no
    /// other.
    pub fn ask(
        &self,
        session: &Session,
        topic: &KeyExpr<'static>,
        congestion: CongestionControl,
        payload: Vec<u8>,
        request: Token,
    ) -> Result<(), String> {
        let (key, mailbox) = (self.key, Arc::clone(&self.mailbox));
        let get = session
            .get(topic)
            .target(QueryTarget::BestMatching)
            .consolidation(ConsolidationMode::None)
            .congestion_control(congestion)
            .timeout(self.patience.saturating_add(LATE_WITHIN))
            .payload(payload)
            .callback(move |reply| {
                let at_ns = clock::monotonic_ns();
                // The error at the time limit is not a reply.
                if let Ok(sample) = reply.result() {
                    mailbox.deliver(key, at_ns, sample.payload(), Kind::Reply(request));
                }
            });
        get.wait().map_err(|error| error.to_string())
    }
}

/// Declares a queryable. It declares itself complete, so that a request goes only to it if there is one.
pub fn listen(session: &Session, filter: &str, key: Key, mailbox: &Arc<Mailbox>) -> Result<(), Reason> {
    let expression = key_expression(filter).map_err(Reason::words)?;
    let mailbox = Arc::clone(mailbox);
    let queryable = session.declare_queryable(expression).complete(true).callback(move |mut query| {
        // First of all: everything behind it is ours.
        let at_ns = clock::monotonic_ns();
        // It is copied into the mailbox: stored with the request, it would occupy the buffer that it was read into.
        let payload = query.payload_mut().map(std::mem::take).unwrap_or_default();
        mailbox.deliver(key, at_ns, &payload, Kind::Request(Box::new(query)));
    });
    queryable.background().wait().map_err(|error| Reason::words(first_line(&error.to_string())))
}
