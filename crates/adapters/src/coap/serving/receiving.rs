//! Datagrams at a responder's socket: requests and their blocks, acknowledgements of replies, pings.

use std::fmt::Write as _;
use std::net::SocketAddr;

use pubmark_protocol::events::{Delivery, Event, Reason, Sink};
use pubmark_protocol::requests::ReplyTo;
use pubmark_wire::coap::{Block, Code, Kind, Message, Writer, decode, decode_levels, encode_empty, number, peek, uint};

use super::super::link::{Link, Shared};
use super::PIGGYBACK_SHARE;
use super::Serving;
use super::cache::RequestState;
use super::reply::{Correlation, Reply, ShortBytes};
use super::uploads::BlockOutcome;

/// Most acknowledgements that wait for a reply; further ones are sent at once.
const MOST_DELAYED: usize = 131_072;
/// Critical options that a request may have; any other one is refused (RFC 7252 §5.4.1). Every value of Accept is satisfied, as
/// a payload is bytes here.
const UNDERSTOOD: [u16; 6] =
    [number::URI_HOST, number::URI_PORT, number::URI_PATH, number::ACCEPT, number::BLOCK1, number::BLOCK2];

impl Serving {
    /// A datagram came; `delivery` has its bytes and times.
    pub(in super::super) fn on_datagram(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        from: SocketAddr,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) {
        match decode(delivery.payload) {
            Ok(message) if message.code.is_request() && is_sent(message.kind) => {
                self.on_request(link, shared, from, &message, delivery, sink);
            }
            Ok(message) => match message.kind {
                // A ping, or a response without a request.
                Kind::Confirmable => send_empty(link, shared, Kind::Reset, from, message.message_id),
                Kind::NonConfirmable => {}
                Kind::Acknowledgement => {
                    self.separate.remove(&(from, message.message_id));
                }
                Kind::Reset => {
                    if let Some(separate) = self.separate.remove(&(from, message.message_id)) {
                        let reason = Reason::words("rejected with a reset");
                        sink.event(
                            link.id,
                            Event::Acknowledged { token: separate.reply.token(), outcome: Err(reason) },
                        );
                    }
                }
            },
            // RFC 7252 §4.2 and §4.3: rejected if confirmable, otherwise ignored.
            Err(_) => {
                if let Some((Kind::Confirmable, message_id)) = peek(delivery.payload) {
                    send_empty(link, shared, Kind::Reset, from, message_id);
                }
            }
        }
    }

    fn on_request(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        from: SocketAddr,
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) {
        let token = ShortBytes::of(message.token);
        if let Some(state) = self.cache.find((from, message.message_id), token, delivery.at_ns) {
            return self.on_repetition(link, shared, from, message, state);
        }
        self.topic.clear();
        let code = match message.code {
            Code::FETCH => unacceptable(message),
            _ => Some(Code::METHOD_NOT_ALLOWED),
        };
        let is_here = decode_levels(message, &mut self.topic) && self.is_subscribed();
        if let Some(code) = code.or((!is_here).then_some(Code::NOT_FOUND)) {
            return self.say(link, shared, from, message, (code, None), delivery.at_ns);
        }
        if let Some(block) = message.options.get(number::BLOCK2).and_then(Block::read).filter(|block| block.number > 0)
        {
            return self.on_block_requested(link, shared, (from, message), block, delivery.at_ns, sink);
        }
        match message.options.get(number::BLOCK1) {
            None => self.hear(link, shared, (from, message), delivery, message.payload, sink),
            Some(value) => self.on_block(link, shared, (from, message), value, delivery, sink),
        }
    }

    /// Does a filter of the session's choose the topic?
    fn is_subscribed(&self) -> bool {
        self.filters.iter().any(|filter| filter.matches(&self.topic))
    }

    /// A block of a request.
    fn on_block(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (from, message): (SocketAddr, &Message<'_>),
        value: &[u8],
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) {
        let (most_bytes, at_ns) = (shared.config.connections.maximum_packet_bytes, delivery.at_ns);
        let announced = message.options.get(number::SIZE1).and_then(uint).unwrap_or(0);
        let correlation = Correlation::of(message);
        let taken = match Block::read(value) {
            None => BlockOutcome::Refused(Code::BAD_REQUEST),
            Some(_) if announced as usize > most_bytes => BlockOutcome::Refused(Code::REQUEST_ENTITY_TOO_LARGE),
            Some(block) => {
                let until_ns = at_ns + shared.times.exchange_lifetime_ns();
                link.wake_by(shared, until_ns);
                let key = (from, correlation.tag, self.topic.as_str().into());
                self.uploads.take(key, block, message.payload, most_bytes, until_ns)
            }
        };
        match taken {
            BlockOutcome::More => self.say(link, shared, from, message, (Code::CONTINUE, correlation.block), at_ns),
            BlockOutcome::Refused(code) => self.say(link, shared, from, message, (code, correlation.block), at_ns),
            BlockOutcome::Whole(bytes) => self.hear(link, shared, (from, message), delivery, &bytes, sink),
        }
    }

    /// A complete request: it is reported to the engine, and its acknowledgement waits a moment for the reply.
    fn hear(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (from, message): (SocketAddr, &Message<'_>),
        delivery: Delivery<'_>,
        payload: &[u8],
        sink: &mut impl Sink,
    ) {
        let correlation = Correlation::of(message);
        let key = (from, message.message_id);
        let mut acknowledged = false;
        if correlation.confirmable {
            let due_ns = delivery.at_ns + shared.times.acknowledge_ns / PIGGYBACK_SHARE;
            if self.acknowledgements.len() < MOST_DELAYED {
                self.acknowledgements.push_back((due_ns, key, correlation.token));
                link.wake_by(shared, due_ns);
            } else {
                send_empty(link, shared, Kind::Acknowledgement, from, message.message_id);
                acknowledged = true;
            }
        }
        self.note(shared, from, message, RequestState::Waits { acknowledged }, delivery.at_ns);
        self.address.clear();
        // A string takes all.
        let _ = write!(self.address, "{from}");
        let (bytes, length) = correlation.to_bytes();
        let reply_to = ReplyTo { address: &self.address, correlation: &bytes[..length] };
        sink.event(link.id, Event::Requested { reply_to, delivery: Delivery { payload, ..delivery } });
    }

    fn note(&mut self, shared: &Shared, from: SocketAddr, message: &Message<'_>, state: RequestState, now_ns: u64) {
        let times = &shared.times;
        let lifetime_ns = match message.kind {
            Kind::Confirmable => times.exchange_lifetime_ns(),
            _ => times.once_lifetime_ns(),
        };
        let key = (from, message.message_id);
        self.cache.note(key, ShortBytes::of(message.token), state, (now_ns, now_ns + lifetime_ns));
    }

    /// A request whose message arrived before: the requester waits for its result.
    fn on_repetition(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        from: SocketAddr,
        message: &Message<'_>,
        state: RequestState,
    ) {
        let key = (from, message.message_id);
        if message.kind != Kind::Confirmable {
            return;
        }
        match state {
            RequestState::Waits { .. } | RequestState::RepliedSeparately => {
                if matches!(state, RequestState::Waits { acknowledged: false }) {
                    self.cache.change(key, ShortBytes::of(message.token), RequestState::Waits { acknowledged: true });
                }
                send_empty(link, shared, Kind::Acknowledgement, from, message.message_id);
            }
            RequestState::Reason(code, block) => self.respond(link, shared, from, message, (code, block)),
            RequestState::Replied(reply) => {
                let head = (Kind::Acknowledgement, message.message_id);
                // If the socket would block, the requester sends its request again.
                let _ = send(link, shared, &reply, head, message.token, (0, reply.correlation.exponent));
            }
        }
    }

    /// Responds without the engine, and stores the result.
    pub(super) fn say(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        from: SocketAddr,
        message: &Message<'_>,
        (code, block): (Code, Option<u32>),
        now_ns: u64,
    ) {
        self.note(shared, from, message, RequestState::Reason(code, block), now_ns);
        self.respond(link, shared, from, message, (code, block));
    }

    fn respond(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        from: SocketAddr,
        message: &Message<'_>,
        (code, block): (Code, Option<u32>),
    ) {
        let (kind, message_id) = self.head_of(shared, from, message);
        shared.scratch.clear();
        let mut writer = Writer::new(kind, code, message_id, message.token, &mut shared.scratch);
        if let Some(block) = block {
            writer.uint(number::BLOCK1, block);
        }
        writer.end(&[]);
        link.transmit_to(&shared.scratch, from);
    }

    /// Kind and identifier of a response that needs no acknowledgement of its own.
    pub(super) fn head_of(&mut self, shared: &mut Shared, from: SocketAddr, message: &Message<'_>) -> (Kind, u16) {
        match message.kind {
            Kind::Confirmable => (Kind::Acknowledgement, message.message_id),
            _ => (Kind::NonConfirmable, self.identifier(shared, from)),
        }
    }
}

/// Requests are messages of these kinds.
fn is_sent(kind: Kind) -> bool {
    matches!(kind, Kind::Confirmable | Kind::NonConfirmable)
}

/// Sends an empty acknowledgement, or a reset; if the socket would block, the peer sends its message again.
pub(super) fn send_empty(link: &mut Link, shared: &mut Shared, kind: Kind, to: SocketAddr, message_id: u16) {
    shared.scratch.clear();
    encode_empty(kind, message_id, &mut shared.scratch);
    link.transmit_to(&shared.scratch, to);
}

/// Sends a reply, or a block of it.
pub(super) fn send(
    link: &mut Link,
    shared: &mut Shared,
    reply: &Reply,
    (kind, message_id): (Kind, u16),
    token: &[u8],
    block: (usize, u8),
) -> super::super::link::Sent {
    let mut out = std::mem::take(&mut shared.scratch);
    out.clear();
    reply.encode(&shared.config, (kind, message_id, token), block, &mut out);
    let sent = link.transmit_to(&out, reply.to);
    shared.scratch = out;
    sent
}

/// Why a request cannot be served, by its options.
fn unacceptable(message: &Message<'_>) -> Option<Code> {
    let mut options = message.options;
    let proxied = |number: u16| matches!(number, number::PROXY_URI | number::PROXY_SCHEME);
    if message.options.into_iter().any(|(number, _)| proxied(number)) {
        return Some(Code::PROXYING_NOT_SUPPORTED);
    }
    let is_strange = |number: u16| number::is_critical(number) && !UNDERSTOOD.contains(&number);
    options.any(|(number, _)| is_strange(number)).then_some(Code::BAD_OPTION)
}
