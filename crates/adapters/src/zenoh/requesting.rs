//! Requests as queries of the library's: a requester gets, a responder is a queryable.
//!
//! The library numbers queries and calls back for each reply to one, so a reply needs no mark. What it keeps of a query it keeps until the
//! time limit of it, answered or not.

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

/// How long a request's answer is still heard behind the time at which it was given up, so that it is known to be late.
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

    /// Asks; whatever answers is handed on as it comes. By default the library would keep replies back until nobody can give another.
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
                // Word of the time limit is no answer.
                if let Ok(sample) = reply.result() {
                    mailbox.deliver(key, at_ns, sample.payload(), Kind::Reply(request));
                }
            });
        get.wait().map_err(|error| error.to_string())
    }
}

/// Listens for requests. It says that it has all there is to say, so a request goes to it alone where there is one.
pub fn listen(session: &Session, filter: &str, key: Key, mailbox: &Arc<Mailbox>) -> Result<(), Reason> {
    let expression = key_expression(filter).map_err(Reason::words)?;
    let mailbox = Arc::clone(mailbox);
    let queryable = session.declare_queryable(expression).complete(true).callback(move |mut query| {
        // First of all: everything behind it is ours.
        let at_ns = clock::monotonic_ns();
        // It is copied into the mailbox: kept with the request, it would hold the buffer that it was read into.
        let payload = query.payload_mut().map(std::mem::take).unwrap_or_default();
        mailbox.deliver(key, at_ns, &payload, Kind::Request(Box::new(query)));
    });
    queryable.background().wait().map_err(|error| Reason::words(first_line(&error.to_string())))
}
