//! Subscribing by GET with Observe (RFC 7641), and the server's notifications.
//!
//! A subscription at least once is requested with a confirmable message and expects confirmable notifications; one at best
//! effort with a non-confirmable one that is repeated until there is a response. That is how our own broker learns the level; a
//! server that then notifies without requesting acknowledgements is reported as granting less.
//!
//! The response to a subscription has the topic's state, not a publication of this moment: it is not delivered.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink};
use pubmark_wire::coap::{Block, Code, Exchange, Kind, Message, Step, encode_path, is_fresh, number, uint};

use super::fetch::Fetch;
use super::link::{Link, Shared};
use super::request::Request;
use super::response::reason;

/// Values of Observe that register and deregister (RFC 7641 §2).
const REGISTER: u32 = 0;
const DEREGISTER: u32 = 1;

/// State of a subscription.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Not requested, or refused.
    None,
    /// The response is awaited.
    Requested { message_id: u16, exchange: Exchange },
    /// The last notification, and when it came.
    Observed { number: u32, at_ns: u64 },
}

/// A subscription.
#[derive(Debug)]
pub(super) struct Observation {
    state: State,
    /// Its level proved to be lower than requested.
    is_lower: bool,
    /// A large notification whose rest is being fetched.
    pub(super) fetch: Option<Box<Fetch>>,
}

/// All subscriptions of a session, in its order.
pub(super) struct Observing {
    pub(super) observations: Box<[Observation]>,
    /// Part of the tokens of this session's subscriptions.
    salt: u16,
    pub(super) fetch_count: u16,
}

impl Observing {
    pub(super) fn new(config: &SessionConfig) -> Observing {
        let options = &config.options;
        // Requesters and responders do not observe: their subscriptions only name their addresses.
        let observes = options.reply_topic.is_none() && options.replies_at.is_none();
        let new = |_: &_| Observation { state: State::None, is_lower: false, fetch: None };
        let observed = config.subscriptions.iter().filter(|_| observes);
        Observing { observations: observed.map(new).collect(), salt: 0, fetch_count: 0 }
    }

    /// Is this subscription there?
    pub(super) fn has(&self, index: u16, salt: u16) -> bool {
        let known = self.observations.get(usize::from(index)).filter(|_| salt == self.salt);
        known.is_some_and(|observation| !matches!(observation.state, State::None))
    }

    /// Requests all subscriptions.
    pub(super) fn register_all(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        // No session that had the port within EXCHANGE_LIFETIME has the same one, as with identifiers.
        self.salt = link.message_id();
        for index in 0..self.observations.len() {
            let message_id = link.message_id();
            let exchange = shared.exchange(pubmark_protocol::clock::monotonic_ns());
            let state = State::Requested { message_id, exchange };
            self.observations[index] = Observation { state, is_lower: false, fetch: None };
            register(link, shared, (index, self.salt), message_id, REGISTER, kind_of(link, index))?;
            link.wake_by(shared, exchange.due_ns());
        }
        Ok(())
    }

    /// Deregisters once, without retransmission: a server that misses it later finds no socket at our address.
    pub(super) fn leave(&self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        for (index, observation) in self.observations.iter().enumerate() {
            if matches!(observation.state, State::Observed { .. }) {
                let message_id = link.message_id();
                register(link, shared, (index, self.salt), message_id, DEREGISTER, Kind::NonConfirmable)?;
            }
        }
        Ok(())
    }

    /// A response to a subscription, or one of the notifications that follow; false for one that is not there.
    pub(super) fn on_notification(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (index, salt): (u16, u16),
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        if salt != self.salt {
            return Ok(false);
        }
        let Some(observation) = self.observations.get_mut(usize::from(index)) else { return Ok(false) };
        let sequence = message.options.get(number::OBSERVE).and_then(uint).filter(|_| message.code == Code::CONTENT);
        match (observation.state, sequence) {
            (State::None, _) => Ok(false),
            (State::Requested { .. }, sequence) => {
                let granted = observation.on_response(link, index, message, sequence, delivery.at_ns);
                sink.event(link.id, Event::Subscribed { index: index.into(), granted });
                Ok(true)
            }
            (State::Observed { .. }, None) => Err(ended(link, index, message)),
            (State::Observed { number, at_ns }, Some(sequence)) => {
                if !is_fresh(number, at_ns, sequence, delivery.at_ns) {
                    // Overtaken by a newer one (RFC 7641 §3.4).
                    return Ok(true);
                }
                observation.state = State::Observed { number: sequence, at_ns: delivery.at_ns };
                observation.check_level(link, index, message, sink);
                self.on_representation(link, shared, index, message, delivery, sink)?;
                Ok(true)
            }
        }
    }

    /// The payload of a notification: all of it, or its first block.
    fn on_representation(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: u16,
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        // What was being fetched is no longer the server's state.
        self.drop_fetch(shared, index);
        match message.options.get(number::BLOCK2) {
            None => sink.event(link.id, Event::Delivered(delivery)),
            Some(value) => match Block::read(value) {
                Some(block) if !block.more && block.number == 0 => sink.event(link.id, Event::Delivered(delivery)),
                Some(block) if block.more && block.number == 0 && message.payload.len() == block.bytes() => {
                    self.begin_fetch(link, shared, index, block, message)?;
                }
                // A block that cannot be the first one: nothing to put together.
                _ => {}
            },
        }
        Ok(())
    }

    /// An acknowledgement without the response; false if it is for nothing of ours.
    pub(super) fn on_acknowledgement(&mut self, shared: &Shared, message_id: u16, now_ns: u64) -> bool {
        for observation in &mut self.observations {
            let asked = match &mut observation.state {
                State::Requested { message_id, exchange } => Some((*message_id, exchange)),
                _ => None,
            };
            let fetched = observation.fetch.as_mut().map(|fetch| (fetch.message_id, &mut fetch.exchange));
            for (id, exchange) in asked.into_iter().chain(fetched) {
                if id == message_id {
                    exchange.acknowledge(&shared.times, now_ns);
                    return true;
                }
            }
        }
        false
    }

    /// The server could not process a request that pubmark sent; false if there is none with this identifier.
    pub(super) fn on_reset(&mut self, link: &Link, shared: &mut Shared, message_id: u16, sink: &mut impl Sink) -> bool {
        for (index, observation) in self.observations.iter_mut().enumerate() {
            if matches!(observation.state, State::Requested { message_id: asked, .. } if asked == message_id) {
                observation.state = State::None;
                sink.event(link.id, Event::Subscribed { index, granted: Err(Reason::words("rejected with a reset")) });
                return true;
            }
            if observation.fetch.as_ref().is_some_and(|fetch| fetch.message_id == message_id) {
                self.drop_fetch(shared, index as u16);
                return true;
            }
        }
        false
    }

    /// When [`Observing::repeat`] has something to do.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let asked = self.observations.iter().filter_map(|observation| match observation.state {
            State::Requested { exchange, .. } => Some(exchange.due_ns()),
            _ => None,
        });
        let fetches = self.observations.iter().filter_map(|observation| observation.fetch.as_ref());
        asked.chain(fetches.map(|fetch| fetch.exchange.due_ns())).min()
    }

    /// Sends requests without a response again.
    pub(super) fn repeat(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        for index in 0..self.observations.len() {
            let observation = &mut self.observations[index];
            if let State::Requested { message_id, exchange } = &mut observation.state {
                match exchange.step(&shared.times, now_ns) {
                    Step::Wait => {}
                    Step::Repeat => {
                        // To the message layer a request that is not confirmable is another one each time.
                        if kind_of(link, index) == Kind::NonConfirmable {
                            *message_id = link.message_id();
                        }
                        register(link, shared, (index, self.salt), *message_id, REGISTER, kind_of(link, index))?;
                    }
                    Step::GiveUp => {
                        observation.state = State::None;
                        sink.event(link.id, Event::Subscribed { index, granted: Err(Reason::words("no answer")) });
                    }
                }
            }
            self.repeat_fetch(link, shared, index as u16, now_ns)?;
        }
        Ok(())
    }

    /// The session is over.
    pub(super) fn end(&mut self, shared: &mut Shared) {
        for index in 0..self.observations.len() {
            self.drop_fetch(shared, index as u16);
            self.observations[index].state = State::None;
        }
    }
}

impl Observation {
    fn on_response(
        &mut self,
        link: &Link,
        index: u16,
        message: &Message<'_>,
        sequence: Option<u32>,
        at_ns: u64,
    ) -> Result<Qos, Reason> {
        match sequence {
            Some(number) => {
                self.state = State::Observed { number, at_ns };
                Ok(level_of(link, index.into()))
            }
            None => {
                self.state = State::None;
                Err(match message.code.is_success() {
                    true => Reason::words(format!("{} without observing", message.code)),
                    false => reason(message.code, message.payload),
                })
            }
        }
    }

    /// Does the server request acknowledgements if we requested them? Reported once if not.
    fn check_level(&mut self, link: &Link, index: u16, message: &Message<'_>, sink: &mut impl Sink) {
        let lower = message.kind == Kind::NonConfirmable && level_of(link, index.into()) != Qos::BestEffort;
        if lower && !self.is_lower {
            self.is_lower = true;
            sink.event(link.id, Event::Subscribed { index: index.into(), granted: Ok(Qos::BestEffort) });
        }
    }
}

fn level_of(link: &Link, index: usize) -> Qos {
    link.config.subscriptions[index].qos
}

fn kind_of(link: &Link, index: usize) -> Kind {
    if level_of(link, index) == Qos::BestEffort { Kind::NonConfirmable } else { Kind::Confirmable }
}

fn register(
    link: &mut Link,
    shared: &mut Shared,
    (index, salt): (usize, u16),
    message_id: u16,
    observe: u32,
    kind: Kind,
) -> Result<(), Cause> {
    let token = Request::Observe { index: index as u16, salt }.token();
    link.ask(shared, (kind, Code::GET), message_id, token.as_bytes(), |writer, config| {
        writer.uint(number::OBSERVE, observe);
        encode_path(writer, &config.subscriptions[index].filter);
    })
}

/// The server has ended a subscription: nothing more will come, so the session is of no use.
fn ended(link: &Link, index: u16, message: &Message<'_>) -> Cause {
    let filter = &link.config.subscriptions[usize::from(index)].filter;
    let reason = reason(message.code, if message.code.is_success() { &[] } else { message.payload });
    Cause::Server { reason: Reason::words(format!("subscription `{filter}` ended: {reason}")), too_large: false }
}
