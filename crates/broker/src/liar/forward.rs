//! Sending copies to subscribers.

use std::rc::Rc;
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clock::monotonic_ns;
use pubmark_wire::mqtt::{Ack, AckKind, Properties, Publish, PublishHead, encode_ack, encode_publish, reason};

use super::journal::Event;
use super::script::Decision;
use super::server::Liar;
use super::state::{Copy, Message, Timed, Waiting, Why};
use crate::net::Key;

/// Longest time that a message is held back if none follows it.
const HOLD: Duration = Duration::from_secs(1);
/// Bytes waiting for one client above which the broker waits for it.
const WAIT_ABOVE_BYTES: usize = 32 * 1024 * 1024;
/// Offset of the run's number in a payload's header, after the version.
const RUN_AT: usize = 1;
/// Offset of the sequence number in the full header.
const SEQUENCE_AT: usize = 8;

impl Liar {
    /// Sends a message to all its subscribers, as the script has decided; `drop_reason` is the reason if it is sent to none.
    pub(super) fn spread(
        &mut self,
        publisher: &Rc<str>,
        message: &Rc<Message>,
        decision: &Decision,
        drop_reason: Option<&str>,
    ) {
        let held_key = (Rc::clone(publisher), message.topic.clone());
        let earlier = if self.held.is_empty() { None } else { self.held.remove(&held_key) };
        for (to, level, filters) in self.subscribers(&message.topic) {
            let Some(client) = self.sessions.get(to).map(|session| Rc::clone(&session.client)) else { continue };
            let qos = level.min(message.qos);
            let message = Rc::clone(message);
            let first = Copy { message, to, client, qos, why: Why::First, cut: decision.cut_subscriber };
            if let Some(why) = drop_reason.or(decision.is_dropped.then_some("lie")) {
                self.note_drop(&first, why);
                continue;
            }
            let copies = self.copies(first, filters, decision);
            for copy in copies {
                self.dispatch(copy, decision, earlier.is_none(), &held_key);
            }
        }
        if decision.is_swapped && self.held.contains_key(&held_key) {
            let due = monotonic_ns() + HOLD.as_nanos() as u64;
            self.wait(due, Timed::Release(held_key, message.line));
        }
        for copy in earlier.into_iter().flatten() {
            self.send(copy);
        }
    }

    /// Sessions that get a message, each with the highest level and the number of its matching filters.
    fn subscribers(&self, topic: &str) -> Vec<(Key, Qos, u32)> {
        let mut list: Vec<(Key, Qos, u32)> = Vec::new();
        self.tree.matching(topic, |session, level| match list.iter_mut().find(|(other, _, _)| *other == session) {
            Some((_, highest, filters)) => {
                *highest = (*highest).max(*level);
                *filters += 1;
            }
            None => list.push((session, *level, 1)),
        });
        list
    }

    /// All copies that one client gets, the regular one first.
    fn copies(&mut self, first: Copy, filters: u32, decision: &Decision) -> Vec<Copy> {
        let another = |why| Copy { why, cut: None, ..first.clone() };
        let mut list = Vec::new();
        if decision.has_overlap {
            list.extend((1..filters).map(|_| another(Why::Overlap)));
        }
        list.extend((0..decision.duplicates).map(|_| another(Why::Duplicate)));
        list.extend((0..decision.retained).map(|_| another(Why::Retained)));
        for _ in 0..decision.foreign {
            list.push(Copy { message: Rc::new(of_another_run(&first.message)), ..another(Why::Foreign) });
        }
        for number in 0..decision.forged {
            list.push(Copy { message: Rc::new(never_sent(&first.message, number)), ..another(Why::Forged) });
        }
        for after in &decision.later {
            let due = self.received + after;
            let order = self.journal.last();
            self.later.push(Waiting { due, order, what: another(Why::Duplicate) });
        }
        list.insert(0, first);
        list
    }

    fn dispatch(&mut self, copy: Copy, decision: &Decision, may_hold: bool, held_key: &super::state::HeldKey) {
        if decision.is_swapped && may_hold {
            self.held.entry(held_key.clone()).or_default().push(copy);
        } else if decision.delay.is_zero() {
            self.send(copy);
        } else {
            let due = monotonic_ns() + decision.delay.as_nanos() as u64;
            self.wait(due, Timed::Copy(copy));
        }
    }

    fn wait(&mut self, due: u64, what: Timed) {
        let order = self.timers.len() as u64 + self.journal.last();
        self.timers.push(Waiting { due, order, what });
    }

    /// Sends copies whose waiting time is over.
    pub(super) fn fire_timers(&mut self) {
        let now_ns = monotonic_ns();
        while self.timers.peek().is_some_and(|timer| timer.due <= now_ns) {
            match self.timers.pop().map(|timer| timer.what) {
                Some(Timed::Copy(copy)) => self.send(copy),
                Some(Timed::Release(held_key, line)) => {
                    let is_that_one = self.held.get(&held_key).is_some_and(|held| held[0].message.line == line);
                    let copies = if is_that_one { self.held.remove(&held_key) } else { None };
                    copies.into_iter().flatten().for_each(|copy| self.send(copy));
                }
                None => return,
            }
        }
    }

    fn note_drop(&mut self, copy: &Copy, why: &str) {
        self.journal.line(Event::Dropped).text(&copy.client).number(copy.message.line).word(why).end();
    }

    /// A copy that is never sent; only the first copy of a message is expected at a subscriber.
    pub(super) fn drop_copy(&mut self, copy: &Copy, why: &str) {
        if copy.why == Why::First {
            self.note_drop(copy, why);
        }
    }

    /// Sends a copy now, or queues it if its level allows that.
    pub(super) fn send(&mut self, copy: Copy) {
        let Some(session) = self.sessions.get_mut(copy.to) else { return self.drop_copy(&copy, "gone") };
        match (copy.qos, session.peer) {
            (Qos::BestEffort, None) => self.drop_copy(&copy, "offline"),
            (Qos::BestEffort, Some(peer)) => self.write(peer, &copy, None, false),
            _ => {
                let (to, qos, bytes) = (copy.to, copy.qos, copy.message.payload.len());
                session.outgoing.push(copy, qos, bytes);
                self.advance(to);
            }
        }
    }

    /// Sends copies in flight that are owed to a new connection, then queued ones, until the in-flight window is full.
    pub(super) fn advance(&mut self, session_key: Key) {
        loop {
            let Some(session) = self.sessions.get_mut(session_key) else { return };
            let Some(peer) = session.peer else { return };
            let Some(next) = session.outgoing.next_to_send() else { return };
            let (packet_id, is_repeated, mut copy) = (next.packet_id, next.is_repeated, next.message.clone());
            if is_repeated {
                (copy.why, copy.cut) = (Why::Resend, None);
            }
            self.write(peer, &copy, Some(packet_id), is_repeated);
        }
    }

    /// A client has reconnected: resends what it has not acknowledged, in order, then continues with the queue, all of it
    /// within the window of the new connection.
    pub(super) fn resume(&mut self, session_key: Key, window: u16) {
        let Some(session) = self.sessions.get_mut(session_key) else { return };
        let Some(key) = session.peer else { return };
        for packet_id in session.outgoing.reconnect(window) {
            let Some(peer) = self.peers.get_mut(key) else { return };
            let (version, out) = (peer.version, peer.connection.outgoing());
            let start = out.len();
            let release = Ack::new(AckKind::Pubrel, packet_id, reason::SUCCESS);
            encode_ack(version, &release, out).expect("identifiers in flight are not 0");
            peer.appended_bytes += (out.len() - start) as u64;
            self.mark_dirty(key);
        }
        self.advance(session_key);
    }

    fn write(&mut self, key: Key, copy: &Copy, packet_id: Option<u16>, dup: bool) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let message = &copy.message;
        let retain = copy.why == Why::Retained;
        let head =
            PublishHead { dup, qos: copy.qos, retain, topic: &message.topic, packet_id, properties: Properties::NONE };
        let (version, out) = (peer.version, peer.connection.outgoing());
        let start = out.len();
        encode_publish(version, &Publish { head, payload: &message.payload }, out)
            .expect("what came in one packet without properties fits into one");
        peer.appended_bytes += (out.len() - start) as u64;
        let line = self
            .journal
            .line(Event::Forwarded)
            .text(&copy.client)
            .number(message.line)
            .text(&message.topic)
            .optional(packet_id)
            .number(copy.qos.level().into())
            .flag(retain)
            .flag(dup)
            .word(copy.why.word())
            .head(&message.payload)
            .end();
        peer.marks.push_back((peer.appended_bytes, line));
        let pending = peer.connection.pending_bytes();
        self.mark_dirty(key);
        if pending > WAIT_ABOVE_BYTES {
            self.wait_for_room(key);
        }
        if let Some(ending) = copy.cut {
            self.cut(key, ending, "cut");
        }
    }
}

/// The same message with a sequence number far beyond those of its publisher.
fn never_sent(message: &Message, number: u32) -> Message {
    let mut payload = message.payload.clone();
    if let Some(bytes) = payload.get_mut(SEQUENCE_AT..SEQUENCE_AT + 4) {
        bytes.copy_from_slice(&(1_000_000 + message.line as u32 + number).to_le_bytes());
    }
    Message { topic: message.topic.clone(), payload, qos: message.qos, line: message.line }
}

/// The same message with another run's number in its header.
fn of_another_run(message: &Message) -> Message {
    let mut payload = message.payload.clone();
    if let Some(byte) = payload.get_mut(RUN_AT) {
        *byte ^= 0xff;
    }
    Message { topic: message.topic.clone(), payload, qos: message.qos, line: message.line }
}
