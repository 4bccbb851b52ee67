//! A session's queue: declared, bound once for each subscription, consumed.
//!
//! A session has a queue of its own, so that every subscriber gets every message: one that the server names and that is deleted
//! with the connection, or for a persistent session a durable one with the client's name, which is deleted before the session's
//! first opening in a run. Only the members of a shared group share one, with the group's name, which is deleted with the last of
//! them unless their sessions are persistent. Commands are pipelined. The server responds in order, and a refusal closes the channel
//! and discards all later commands: it belongs to the first command without a response, and the rest is sent again on a new channel.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::events::{Cause, Event, Reason, Sink};
use pubmark_wire::amqp091::{
    CloseReason, Declare, Method, code, encode_bind, encode_channel_close_ok, encode_channel_open, encode_consume,
    encode_declare, encode_qos,
};

use super::cause::{of, unexpected, words};
use super::receiving::Incoming;
use super::session::{Amqp091, EXCHANGE, PLAIN, level};
use crate::connection::{Link, Shared};

/// How long a server stores the queue of a session that is gone, ms: longer than any run, but not for ever.
const QUEUE_LIFETIME_MS: u64 = 24 * 3_600 * 1_000;
/// Most unacknowledged messages of a consumer.
pub(super) const PREFETCH: u16 = 1_000;
/// Class and number of `queue.bind`.
const BIND: (u16, u16) = (50, 20);
/// Class `queue`.
const QUEUE: u16 = 50;
/// Name of the consumer of a group's member, on its own channel.
pub(super) const MEMBER: &str = "member";
/// How often the queue of a group is made once more because it went between that and its use.
const MOST_REMAKES: u8 = 3;
/// Class and numbers of `basic.qos` and `basic.consume`.
const CONSUME: [(u16, u16); 2] = [(60, 10), (60, 20)];

/// What is awaited of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing: there is no consumer.
    Idle,
    /// The queue.
    Declaring,
    /// The response to the binding with this index, and after the last one to the consumer.
    Binding(usize),
    /// The consumer of a queue that was bound before.
    Returning,
    /// Nothing: the consumer is there.
    Consumes,
}

/// A session's consumer.
#[derive(Debug)]
pub(super) struct Consumer {
    step: Step,
    queue: Box<str>,
    /// Level of all subscriptions: the highest one requested.
    level: Qos,
    /// Bindings that the server refused.
    refused: Vec<(usize, Reason)>,
    /// All subscriptions were acknowledged since the server last had no session.
    reported: bool,
    /// How often the group's queue was made once more on this connection.
    remakes: u8,
}

/// The queue that remains when the session's connection ends, or that its group shares. Its name has the run's number, so that
/// groups of another run have another queue.
pub(super) fn kept_queue(link: &Link, shared: &Shared) -> Box<str> {
    match &link.config.options.shared {
        Some(group) => format!("pubmark.{group}.{:06x}", shared.config.run & 0x00ff_ffff).into(),
        None => link.config.client_id.clone(),
    }
}

impl Consumer {
    pub(super) fn new(config: &SessionConfig) -> Consumer {
        let asked = config.subscriptions.iter().map(|subscription| level(subscription.qos)).max();
        Consumer {
            step: Step::Idle,
            queue: "".into(),
            level: asked.unwrap_or(Qos::BestEffort),
            refused: vec![],
            reported: false,
            remakes: 0,
        }
    }

    /// For a new connection.
    pub(super) fn restart(&mut self) {
        self.step = Step::Idle;
        self.remakes = 0;
    }

    /// The server has no session of ours.
    pub(super) fn forget(&mut self) {
        self.reported = false;
        self.refused.clear();
    }

    /// Name of its queue; empty while the server has not named it.
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    /// Is every message to be acknowledged?
    pub(super) fn acknowledges(&self) -> bool {
        self.level != Qos::BestEffort
    }

    /// Was a consumer requested?
    pub(super) fn is_wanted(&self) -> bool {
        !matches!(self.step, Step::Idle | Step::Declaring)
    }
}

impl Amqp091 {
    /// Requests all subscriptions of the session.
    pub(super) fn subscribe(&mut self, link: &mut Link, shared: &mut Shared, session_present: bool) {
        if self.binding_keys.is_empty() {
            return;
        }
        if session_present {
            self.consumer.queue = kept_queue(link, shared);
            if self.consumer.reported {
                self.consumer.step = Step::Returning;
                self.consume(link, shared);
            } else {
                self.bind_from(link, shared, 0);
            }
            return;
        }
        self.declare(link, shared);
    }

    /// Declares the session's queue.
    fn declare(&mut self, link: &mut Link, shared: &mut Shared) {
        self.consumer.step = Step::Declaring;
        let queue = kept_queue(link, shared);
        let is_shared = link.config.options.shared.is_some();
        let declare = match link.config.persistent {
            true => Declare { queue: &queue, durable: true, expires_ms: Some(QUEUE_LIFETIME_MS), ..Declare::default() },
            false if is_shared => Declare { queue: &queue, auto_delete: true, ..Declare::default() },
            false => Declare { exclusive: true, auto_delete: true, ..Declare::default() },
        };
        link.outbox.append(&mut shared.pool, |out| encode_declare(PLAIN, &declare, out));
    }

    /// Binds the queue for the subscriptions from this one on, and consumes it.
    fn bind_from(&mut self, link: &mut Link, shared: &mut Shared, first: usize) {
        self.consumer.step = Step::Binding(first);
        let queue = &self.consumer.queue;
        let keys = &self.binding_keys[first..];
        link.outbox.append(&mut shared.pool, |out| {
            keys.iter().for_each(|key| encode_bind(PLAIN, queue, EXCHANGE, key, out));
        });
        self.consume(link, shared);
    }

    fn consume(&mut self, link: &mut Link, shared: &mut Shared) {
        let consumer = &self.consumer;
        let name = if link.config.options.shared.is_some() { MEMBER } else { "" };
        link.outbox.append(&mut shared.pool, |out| {
            if consumer.acknowledges() {
                encode_qos(PLAIN, PREFETCH, out);
            }
            encode_consume(PLAIN, &consumer.queue, name, !consumer.acknowledges(), out);
        });
    }

    /// A method of the server's about queue and consumer.
    pub(super) fn on_consumer_method(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        method: &Method<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let last = self.binding_keys.len();
        match (self.consumer.step, method) {
            (_, Method::QueueDeclareOk(_) | Method::QueueDeleteOk) if self.opening.awaits_queue_check() => {
                let is_deleted = matches!(method, Method::QueueDeleteOk);
                if is_deleted != self.opening.deletes_queue(&link.config) {
                    return Err(unexpected(link.phase, PLAIN, method));
                }
                self.opening.answered(!is_deleted);
                self.open_if_settled(link, shared, sink);
            }
            (Step::Declaring, Method::QueueDeclareOk(name)) => {
                self.consumer.queue = (*name).into();
                self.bind_from(link, shared, 0);
            }
            (Step::Binding(next), Method::QueueBindOk) if next < last => {
                self.consumer.step = Step::Binding(next + 1);
            }
            (Step::Binding(next), Method::BasicQosOk) if next == last => {}
            (Step::Returning, Method::BasicQosOk) => {}
            (Step::Binding(next), Method::BasicConsumeOk) if next == last => {
                self.consumer.step = Step::Consumes;
                self.report_granted(link, sink);
            }
            (Step::Returning, Method::BasicConsumeOk) => self.consumer.step = Step::Consumes,
            (_, Method::BasicCancel) => {
                let reason = Reason::words("it cancelled our consumer: the queue is gone");
                return Err(Cause::Server { reason, too_large: false });
            }
            _ => return Err(unexpected(link.phase, PLAIN, method)),
        }
        Ok(())
    }

    /// The server closed the consumer's channel, because of the oldest command without a response.
    pub(super) fn on_channel_close(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        closing: &CloseReason<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.opening.awaits_queue_check() && closing.code == code::NOT_FOUND {
            self.opening.answered(false);
            self.reopen(link, shared);
            return Ok(());
        }
        let last = self.binding_keys.len();
        let is_shared = link.config.options.shared.is_some();
        match self.consumer.step {
            // The last member that consumed it left at that moment.
            Step::Binding(_)
                if is_shared && closing.code == code::NOT_FOUND && self.consumer.remakes < MOST_REMAKES =>
            {
                self.consumer.remakes += 1;
                self.consumer.refused.clear();
                self.reopen(link, shared);
                self.declare(link, shared);
            }
            Step::Declaring if closing.method.0 == QUEUE => self.refuse_all(link, shared, closing, sink),
            Step::Binding(next) if next < last && closing.method == BIND => {
                self.consumer.refused.push((next, words(closing)));
                self.reopen(link, shared);
                self.bind_from(link, shared, next + 1);
            }
            Step::Binding(next) if next == last && CONSUME.contains(&closing.method) => {
                self.refuse_all(link, shared, closing, sink);
            }
            _ => return Err(of(link.phase, closing)),
        }
        Ok(())
    }

    /// There will be no consumer: no subscription is granted.
    fn refuse_all(&mut self, link: &mut Link, shared: &mut Shared, closing: &CloseReason<'_>, sink: &mut impl Sink) {
        for index in 0..self.binding_keys.len() {
            if !self.consumer.refused.iter().any(|(refused, _)| *refused == index) {
                self.consumer.refused.push((index, words(closing)));
            }
        }
        self.consumer.step = Step::Idle;
        self.reopen(link, shared);
        self.report_granted(link, sink);
    }

    /// Agrees to the end of the consumer's channel and opens it once more.
    fn reopen(&mut self, link: &mut Link, shared: &mut Shared) {
        self.opening.reopen_plain();
        self.incoming = Incoming::default();
        link.outbox.append(&mut shared.pool, |out| {
            encode_channel_close_ok(PLAIN, out);
            encode_channel_open(PLAIN, out);
        });
    }

    /// Reports the result of every subscription.
    fn report_granted(&mut self, link: &Link, sink: &mut impl Sink) {
        self.consumer.reported = true;
        for index in 0..self.binding_keys.len() {
            let refused = self.consumer.refused.iter().find(|(refused, _)| *refused == index);
            let granted = refused.map_or(Ok(self.consumer.level), |(_, reason)| Err(reason.clone()));
            sink.event(link.id, Event::Subscribed { index, granted });
        }
    }
}
