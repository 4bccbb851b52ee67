//! One client of a program, as the shard knows it.

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_protocol::client_program::Misreport;
use pubmark_protocol::clients::{Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig};
use pubmark_protocol::events::{Cause, Event, Sink, Token};

/// Messages of a connection that are acknowledged and not called written, at most: as many as a program may have.
pub const EARLY_LIMIT: usize = 1_000;
/// Bytes of a packet besides topic and payload, at most, as brokers count them.
const PACKET_ROOM: u64 = 12;

/// State of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has no connection.
    Closed,
    /// The program is connecting; it must succeed by this time of the shard's clock, ns.
    Opening(u64),
    /// It can send.
    Open,
}

/// What the program reported of a subscription of the present connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    Awaited,
    /// The system granted it.
    Granted,
    /// The system refused it, or revoked it.
    NotHeld,
}

/// A message that the program has and did not call written.
#[derive(Clone, Copy, Debug)]
pub struct UnwrittenMessage {
    /// Its name.
    pub token: Token,
    /// Bytes of its payload.
    pub bytes: usize,
    /// When it was submitted, ns of the shard's clock.
    pub submitted_ns: u64,
    /// When the program was given it, ns of the shard's clock; 0 until it is.
    pub write_start_ns: u64,
    /// [`super::running::Running::late_ns`] at that time.
    pub late_before_ns: u64,
}

impl UnwrittenMessage {
    /// The report that it was written at the time of the program's stamp, ns of the shard's clock. `late_ns` is the present
    /// [`super::running::Running::late_ns`].
    pub fn written_at(&self, stamp_ns: u64, late_ns: u64) -> Event<'static> {
        let (token, write_start_ns) = (self.token, self.write_start_ns);
        let own_ns = self.own_ns(stamp_ns, late_ns.saturating_sub(self.late_before_ns));
        Event::Written { token, write_start_ns, written_ns: stamp_ns, own_ns }
    }

    /// The same without a stamp: what the program reported was read at `now_ns`. It may have waited for that since `empty_ns`, when
    /// nothing waited, but not since before the program was given the message.
    pub fn written_by(&self, now_ns: u64, empty_ns: u64, late_ns: u64) -> Event<'static> {
        let (token, write_start_ns) = (self.token, self.write_start_ns);
        let unread_ns = now_ns.saturating_sub(empty_ns.max(write_start_ns));
        let own_ns = self.own_ns(now_ns, unread_ns.saturating_add(late_ns.saturating_sub(self.late_before_ns)));
        Event::Written { token, write_start_ns, written_ns: now_ns.max(write_start_ns), own_ns }
    }

    /// pubmark's part in the time from its submission to `written_ns`: all of it until the program was given it, and `late_ns` of the
    /// rest, at most.
    fn own_ns(&self, written_ns: u64, late_ns: u64) -> u64 {
        let given_ns = self.write_start_ns.saturating_sub(self.submitted_ns);
        given_ns.saturating_add(late_ns.min(written_ns.saturating_sub(self.write_start_ns)))
    }
}

/// A client.
pub struct Session {
    pub id: SessionId,
    pub config: SessionConfig,
    pub phase: Phase,
    /// Which of its connections; 0 before the first.
    pub connection: u32,
    /// The program has its topics.
    pub has_topics: bool,
    /// What the program has, in order.
    pub unwritten: VecDeque<UnwrittenMessage>,
    /// Above QoS 0: what was accepted and not acknowledged.
    pub unacknowledged: VecDeque<Token>,
    /// What was acknowledged before the program called it written, which it may still do: the last ones.
    pub early: VecDeque<Token>,
    /// Of each publication, the sequence numbers of the first and the last message that the program was given.
    pub submitted_range: Vec<Option<(u32, u32)>>,
    /// The token that it logged in with last, if it signs such.
    pub signed: Option<String>,
    /// Of each subscription, what was reported.
    pub answers: Vec<Answer>,
    /// Messages in flight that the system allows.
    pub receive_maximum: u16,
    /// Largest packet that the system accepts, bytes; 0 if it does not announce a limit.
    pub maximum_packet_bytes: u32,
    /// A send returned `WouldBlock`: the engine waits for `Writable`.
    pub blocked: bool,
}

impl Session {
    pub fn new(id: SessionId, config: SessionConfig) -> Session {
        Session {
            id,
            phase: Phase::Closed,
            connection: 0,
            has_topics: false,
            unwritten: VecDeque::new(),
            unacknowledged: VecDeque::new(),
            early: VecDeque::new(),
            submitted_range: vec![None; config.publications.len()],
            signed: None,
            answers: vec![],
            receive_maximum: 0,
            maximum_packet_bytes: 0,
            blocked: false,
            config,
        }
    }

    /// The program reported something of a subscription of which it had reported `before`.
    pub fn note_answer(&mut self, subscription: u16, before: Answer, after: Answer) -> Result<(), Misreport> {
        let answer = self.answers.get_mut(usize::from(subscription)).ok_or(Misreport::UnknownSubscription)?;
        if *answer != before {
            return Err(Misreport::OutOfTurn);
        }
        *answer = after;
        Ok(())
    }

    /// Can it take this message, as far as it is the client's matter? Why not, otherwise.
    pub fn can_send(&self, message: &Outgoing) -> Result<(), SendOutcome> {
        let publication = &self.config.publications[usize::from(message.publication)];
        let packet = u64::from(message.payload_bytes) + publication.topic.len() as u64 + PACKET_ROOM;
        if self.maximum_packet_bytes > 0 && packet > u64::from(self.maximum_packet_bytes) {
            return Err(SendOutcome::TooLarge(self.maximum_packet_bytes));
        }
        let window = match self.receive_maximum {
            0 => self.config.in_flight_window,
            allowed => allowed.min(self.config.in_flight_window),
        };
        let is_full = publication.qos > Qos::BestEffort && self.unacknowledged.len() >= usize::from(window);
        if self.phase != Phase::Open || is_full { Err(SendOutcome::WouldBlock) } else { Ok(()) }
    }

    /// Enters a message that was accepted.
    pub fn enter(&mut self, message: &Outgoing) {
        let token = message.token();
        let (bytes, submitted_ns) = (message.payload_bytes as usize, message.timing.submitted_ns);
        let unwritten = UnwrittenMessage { token, bytes, submitted_ns, write_start_ns: 0, late_before_ns: 0 };
        self.unwritten.push_back(unwritten);
        if self.config.publications[usize::from(token.publication)].qos > Qos::BestEffort {
            self.unacknowledged.push_back(token);
        }
    }

    /// Sets the time at which the messages that were accepted last were written to the program, with the present
    /// [`super::running::Running::late_ns`].
    pub fn stamp(&mut self, write_start_ns: u64, late_ns: u64) {
        for unwritten in self.unwritten.iter_mut().rev().take_while(|unwritten| unwritten.write_start_ns == 0) {
            (unwritten.write_start_ns, unwritten.late_before_ns) = (write_start_ns, late_ns);
            let Token { publication, sequence } = unwritten.token;
            let (first, last) = self.submitted_range[usize::from(publication)].get_or_insert((sequence, sequence));
            (*first, *last) = (sequence.min(*first), sequence.max(*last));
        }
    }

    /// Removes a message from those that the program has.
    pub fn take_unwritten(&mut self, token: Token) -> Option<UnwrittenMessage> {
        let place = self.unwritten.iter().position(|unwritten| unwritten.token == token)?;
        self.unwritten.remove(place)
    }

    /// Removes a message from those that are not acknowledged.
    pub fn take_unacknowledged(&mut self, token: Token) -> bool {
        let place = self.unacknowledged.iter().position(|other| *other == token);
        place.is_some_and(|place| self.unacknowledged.remove(place).is_some())
    }

    /// Was the program ever given this message? A probe has the sequence number 0, which no other message has.
    pub fn was_submitted(&self, token: Token) -> bool {
        let submitted_range = self.submitted_range.get(usize::from(token.publication)).copied().flatten();
        submitted_range.is_some_and(|(first, last)| (first..=last).contains(&token.sequence))
    }

    /// Remembers that a message was acknowledged before the program called it written. Did that push another one out?
    pub fn record_early(&mut self, token: Token) -> bool {
        self.early.push_back(token);
        self.early.len() > EARLY_LIMIT && self.early.pop_front().is_some()
    }

    /// Forgets such a message, which was called written now. Was it one?
    pub fn take_early(&mut self, token: Token) -> bool {
        let place = self.early.iter().position(|early| *early == token);
        place.is_some_and(|place| self.early.remove(place).is_some())
    }

    /// What the program was given to log in with, which no record may show.
    pub fn secret<'a>(&'a self, shard: &'a ShardConfig) -> Option<&'a str> {
        let of_endpoint = shard.endpoints.get(usize::from(self.config.endpoint));
        let credentials =
            self.config.credentials.as_ref().or(of_endpoint.and_then(|endpoint| endpoint.credentials.as_ref()));
        self.signed.as_deref().or(credentials.map(|credentials| credentials.password.expose()))
    }

    /// Ends its connection. What the program has counts as handed over: it may still arrive. Messages and bytes of it. At
    /// `empty_ns`, nothing of the program's waited to be read; writes to it waited for pubmark for `late_ns` so far.
    pub fn end(
        &mut self,
        cause: Cause,
        now_ns: u64,
        (empty_ns, late_ns): (u64, u64),
        sink: &mut impl Sink,
    ) -> (usize, usize) {
        self.phase = Phase::Closed;
        let (mut messages, mut bytes) = (0, 0);
        for mut unwritten in self.unwritten.drain(..) {
            messages += 1;
            bytes += unwritten.bytes;
            if unwritten.write_start_ns == 0 {
                unwritten.write_start_ns = now_ns;
            }
            sink.event(self.id, unwritten.written_by(now_ns, empty_ns, late_ns));
        }
        for token in self.unacknowledged.drain(..) {
            sink.event(self.id, Event::Unacknowledged(token));
        }
        self.early.clear();
        self.answers.clear();
        sink.event(self.id, Event::Closed(cause));
        (messages, bytes)
    }

    /// Reports `Writable` if the engine waits for it.
    pub fn unblock(&mut self, sink: &mut impl Sink) {
        if self.phase == Phase::Open && std::mem::take(&mut self.blocked) {
            sink.event(self.id, Event::Writable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_ns(event: &Event<'_>) -> Option<u64> {
        if let Event::Written { own_ns, .. } = event { Some(*own_ns) } else { None }
    }

    #[test]
    fn pubmarks_part_is_the_time_before_the_program_had_it_and_the_time_in_which_its_report_may_have_waited() {
        let token = Token { publication: 0, sequence: 1 };
        let (submitted_ns, write_start_ns) = (1_000, 1_300);
        let unwritten = UnwrittenMessage { token, bytes: 16, submitted_ns, write_start_ns, late_before_ns: 600 };
        assert_eq!(own_ns(&unwritten.written_at(9_000, 600)), Some(300));
        assert_eq!(own_ns(&unwritten.written_by(9_000, 8_500, 600)), Some(300 + 500), "read soon");
        let unread = unwritten.written_by(9_000, 1_100, 600);
        assert_eq!(own_ns(&unread), Some(300 + 7_700), "not read since it has the message");
        assert_eq!(own_ns(&unwritten.written_at(9_000, 1_000)), Some(300 + 400), "in front of a socket that had room");
        assert_eq!(own_ns(&unwritten.written_by(9_000, 8_500, 1_000)), Some(300 + 500 + 400), "one after the other");
        assert_eq!(own_ns(&unwritten.written_at(1_500, 9_000)), Some(300 + 200), "after it was written");
    }
}
