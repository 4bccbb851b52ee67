//! Sending replies: in acknowledgements, in messages of their own, in blocks on request (RFC 7959, Block2).

use std::net::SocketAddr;

use pubmark_protocol::clock;
use pubmark_protocol::events::{Event, Sink};
use pubmark_wire::coap::{Block, Code, Kind, Message, Step};

use super::super::link::{Link, Sent, Shared};
use super::cache::{Key, RequestState};
use super::receiving::{send, send_empty};
use super::reply::{Correlation, Reply, ShortBytes};
use super::{SentReply, SeparateResponse, Serving};

/// Most replies in blocks that are stored at the same time: some 12 MB.
const MOST_HELD: usize = 65_536;
/// Peers whose last identifiers are known, at most. Beyond, all begin anew at a random one, which a peer that
/// remembers 256 takes for a repetition in one case of 256.
const MOST_PEERS: usize = 131_072;

impl Serving {
    /// Writes queued replies, as far as the socket accepts them.
    pub(in super::super) fn write(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        while let Some(front) = self.queue.front().copied() {
            let written = match front {
                Ok(reply) => self.write_one(link, shared, reply, sink),
                Err(token) => {
                    sink.event(link.id, Event::Abandoned(token));
                    true
                }
            };
            if !written {
                return;
            }
            self.queue.pop_front();
        }
    }

    /// Writes one reply, or its first block; false if the socket would block.
    fn write_one(&mut self, link: &mut Link, shared: &mut Shared, mut reply: Reply, sink: &mut impl Sink) -> bool {
        reply.write_start_ns = clock::monotonic_ns();
        let (to, correlation) = (reply.to, reply.correlation);
        let key = (to, correlation.message_id);
        let state = self.cache.find(key, correlation.token, reply.write_start_ns);
        let in_time = correlation.confirmable && matches!(state, Some(RequestState::Waits { acknowledged: false }));
        let head = match (in_time, correlation.confirmable) {
            (true, _) => (Kind::Acknowledgement, correlation.message_id),
            (false, true) => (Kind::Confirmable, self.identifier(shared, to)),
            (false, false) => (Kind::NonConfirmable, self.identifier(shared, to)),
        };
        match send(link, shared, &reply, head, correlation.token.as_bytes(), (0, correlation.exponent)) {
            Sent::Full => return false,
            Sent::Refused => {
                sink.event(link.id, Event::Abandoned(reply.token()));
                return true;
            }
            Sent::SendOutcome => {}
        }
        let written_ns = clock::monotonic_ns();
        self.cache.change(
            key,
            correlation.token,
            if in_time { RequestState::Replied(reply) } else { RequestState::RepliedSeparately },
        );
        if head.0 == Kind::Confirmable {
            let exchange = shared.exchange(written_ns);
            link.wake_by(shared, exchange.due_ns());
            self.separate.insert((to, head.1), SeparateResponse { reply, exchange });
        }
        if reply.is_in_blocks() {
            let separate = (head.0 == Kind::Confirmable).then_some(head.1);
            let until_ns = written_ns + shared.times.transmit_span_ns();
            link.wake_by(shared, until_ns);
            self.hold(link, SentReply { reply, separate, written: false, until_ns }, sink);
        } else {
            sink.event(link.id, reply.written(written_ns));
        }
        true
    }

    /// An identifier towards a peer: each has its own row of them, as it looks for repetitions among the last.
    pub(super) fn identifier(&mut self, shared: &mut Shared, to: SocketAddr) -> u16 {
        if self.identifiers.len() >= MOST_PEERS && !self.identifiers.contains_key(&to) {
            self.identifiers.clear();
        }
        // RFC 7252 §4.4: the first one is best random.
        let last = self.identifiers.entry(to).or_insert_with(|| shared.random() as u16);
        *last = last.wrapping_add(1);
        *last
    }

    /// Stores a reply whose first block is written until it is fetched.
    fn hold(&mut self, link: &Link, held: SentReply, sink: &mut impl Sink) {
        let key = (held.reply.to, held.reply.correlation.tag);
        // A requester that uses the same tag for another request does not need the earlier reply.
        if self.held.contains_key(&key) {
            self.release(key, link, sink);
            self.held_order.retain(|held| *held != key);
        }
        while self.held.len() >= MOST_HELD
            && let Some(oldest) = self.held_order.pop_front()
        {
            self.release(oldest, link, sink);
        }
        self.held.insert(key, held);
        self.held_order.push_back(key);
    }

    fn release(&mut self, key: (SocketAddr, ShortBytes), link: &Link, sink: &mut impl Sink) {
        if let Some(held) = self.held.remove(&key).filter(|held| !held.written) {
            sink.event(link.id, Event::Abandoned(held.reply.token()));
        }
    }

    /// A requester requests a block of a reply.
    pub(super) fn on_block_requested(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (from, message): (SocketAddr, &Message<'_>),
        block: Block,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let tag = Correlation::of(message).tag;
        let found = self.held.get(&(from, tag)).map(|held| (held.reply, held.separate));
        let Some((reply, separate)) = found.filter(|(reply, _)| block.offset() < reply.payload_bytes()) else {
            let code = if found.is_some() { Code::BAD_REQUEST } else { Code::REQUEST_ENTITY_INCOMPLETE };
            return self.say(link, shared, from, message, (code, None), now_ns);
        };
        // A requester of the next block has the first, even if its acknowledgement was lost.
        if let Some(message_id) = separate {
            self.separate.remove(&(from, message_id));
        }
        let head = self.head_of(shared, from, message);
        let taken =
            send(link, shared, &reply, head, message.token, (block.offset(), block.exponent)) == Sent::SendOutcome;
        let is_last = block.offset() + block.bytes() >= reply.payload_bytes();
        if let Some(held) = self.held.get_mut(&(from, tag)) {
            held.until_ns = now_ns + shared.times.transmit_span_ns();
            if taken && is_last && !std::mem::replace(&mut held.written, true) {
                sink.event(link.id, reply.written(clock::monotonic_ns()));
            }
        }
    }

    /// Sends what is due: acknowledgements before replies, replies that were not acknowledged. Drops blocks that were not
    /// requested in time.
    pub(in super::super) fn repeat(&mut self, link: &mut Link, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        self.acknowledge(link, shared, now_ns);
        let due: Vec<Key> = self
            .separate
            .iter()
            .filter(|(_, separate)| separate.exchange.due_ns() <= now_ns)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some(separate) = self.separate.get_mut(&key) else { continue };
            match separate.exchange.step(&shared.times, now_ns) {
                Step::Wait => {}
                Step::Repeat => {
                    let reply = separate.reply;
                    // One that the socket does not take is lost like any other datagram.
                    let block = (0, reply.correlation.exponent);
                    send(link, shared, &reply, (Kind::Confirmable, key.1), reply.correlation.token.as_bytes(), block);
                }
                Step::GiveUp => {
                    if let Some(separate) = self.separate.remove(&key).filter(|separate| !separate.reply.is_in_blocks())
                    {
                        sink.event(link.id, Event::Unacknowledged(separate.reply.token()));
                    }
                }
            }
        }
        let over: Vec<(SocketAddr, ShortBytes)> =
            self.held.iter().filter(|(_, held)| held.until_ns <= now_ns).map(|(key, _)| *key).collect();
        if !over.is_empty() {
            over.into_iter().for_each(|key| self.release(key, link, sink));
            self.held_order.retain(|key| self.held.contains_key(key));
        }
        self.uploads.forget(now_ns);
    }

    fn acknowledge(&mut self, link: &mut Link, shared: &mut Shared, now_ns: u64) {
        while let Some((_, key, token)) = self.acknowledgements.front().copied().filter(|entry| entry.0 <= now_ns) {
            self.acknowledgements.pop_front();
            if matches!(self.cache.find(key, token, now_ns), Some(RequestState::Waits { acknowledged: false })) {
                send_empty(link, shared, Kind::Acknowledgement, key.0, key.1);
                self.cache.change(key, token, RequestState::Waits { acknowledged: true });
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::qos::Qos;
    use pubmark_protocol::clients::{SessionConfig, SessionId, SessionOptions};
    use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
    use pubmark_protocol::timing::Timing;

    use super::*;

    /// How many replies were abandoned.
    struct Abandoned(usize);

    impl Sink for Abandoned {
        fn event(&mut self, _: SessionId, event: Event<'_>) {
            self.0 += usize::from(matches!(event, Event::Abandoned(_)));
        }
    }

    fn responder() -> SessionConfig {
        SessionConfig {
            endpoint: 0,
            network: None,
            client_id: "replies".into(),
            credentials: None,
            token: None,
            nkey: None,
            certificate: None,
            persistent: false,
            in_flight_window: 20,
            publications: vec![],
            subscriptions: vec![],
            options: SessionOptions { replies_at: Some(Qos::AtLeastOnce), ..SessionOptions::default() },
        }
    }

    /// A reply in blocks to a request with this tag, of which the first block is written.
    fn begun(tag: &[u8], number: u32) -> SentReply {
        let (token, tag) = (ShortBytes::of(b"token"), ShortBytes::of(tag));
        let correlation = Correlation { confirmable: true, exponent: 6, message_id: 1, block: None, token, tag };
        let (bytes, length) = correlation.to_bytes();
        let answer = OutgoingReply {
            to: ReplyTo { address: "127.0.0.1:5683", correlation: &bytes[..length] },
            qos: Qos::AtLeastOnce,
            number,
            publisher: 1,
            sequence: number,
            due_ns: 0,
            timing: Timing::on_time(0),
            payload_bytes: 5_000,
        };
        SentReply { reply: Reply::read(&answer).unwrap(), separate: None, written: false, until_ns: u64::MAX }
    }

    #[test]
    fn a_tag_that_is_used_again_has_one_place_among_the_stored_replies() {
        let config = responder();
        let mut serving = Serving::new(&config).unwrap();
        let (link, mut abandoned) = (Link::new(SessionId(0), config), Abandoned(0));
        for (number, tag) in (1..).zip([b"a", b"b", b"a", b"a", b"c", b"a"]) {
            serving.hold(&link, begun(tag, number), &mut abandoned);
        }
        let order: Vec<ShortBytes> = serving.held_order.iter().map(|(_, tag)| *tag).collect();
        assert_eq!(order, [&b"b"[..], b"c", b"a"].map(ShortBytes::of), "the one that was used last is the newest");
        assert_eq!((serving.held.len(), abandoned.0), (3, 3));
    }
}
