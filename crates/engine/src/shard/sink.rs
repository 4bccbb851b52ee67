//! What becomes of sessions and messages, as the adapter tells it.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Delivery, Event, Said, Sink, Token};
use pubmark_protocol::header::Header;
use pubmark_protocol::requests::{ANSWER, ReplyTo};

use super::Shard;
use super::breaking::CopyCounts;
use super::publisher::{Pending, Publisher};
use super::receiver::{Figures, type_row};
use super::session::State;
use crate::faults::What;

impl Shard {
    pub(super) fn series_start_ns(&self) -> i64 {
        self.series.bin_start_ns(0)
    }

    fn index_of(&self, session: SessionId, token: Token) -> u32 {
        self.sessions[session.0 as usize].publishers.start + u32::from(token.publication)
    }

    fn publisher_of(&mut self, session: SessionId, token: Token) -> Option<&mut Publisher> {
        let index = self.index_of(session, token);
        self.publishers.get_mut(index as usize)
    }

    /// Enters a message that a session heard, and reacts to it; its header if it was a first copy.
    pub(super) fn hear(&mut self, session: SessionId, delivery: &Delivery<'_>) -> Option<Header> {
        self.last_event_ns = delivery.at_ns;
        let Some(subscriber) = self.sessions[session.0 as usize].subscriber else {
            self.counters.foreign += 1;
            return None;
        };
        self.take_up(session, delivery.at_ns);
        let mut figures = Figures {
            times: &mut self.times,
            types: &mut self.types,
            counters: &mut self.counters,
            series: &mut self.series,
            from_nodes: &mut self.from_nodes,
        };
        let before = CopyCounts::of(figures.counters);
        let header = self.receiver.enter(subscriber, delivery, &self.window, &mut figures);
        self.tally_delivery(session, delivery, header.as_ref(), before);
        let header = header?;
        self.delivered_ever += 1;
        self.tally.received(session, delivery.payload.len() as u64);
        if let Some(following) = self.following.as_mut().filter(|_| self.window.measures(header.chain_due_ns())) {
            following.note(session, &header, delivery);
        }
        self.react_to(session, &header, delivery.at_ns);
        Some(header)
    }

    /// Can the system refuse this message of a session? A peer may name what it likes: only what is written wholly, and was not
    /// refused before, can be.
    fn may_be_refused(&self, session: SessionId, index: u32, sequence: u32) -> bool {
        let session = &self.sessions[session.0 as usize];
        let Some(publisher) = self.publishers.get(index as usize).filter(|_| session.publishers.contains(&index))
        else {
            return false;
        };
        let waits = |pending: &Pending| pending.publisher == index && pending.sequence <= sequence;
        let book = &publisher.book;
        (1..publisher.next_sequence).contains(&sequence)
            && !book.refused.contains(&sequence)
            && book.broken.binary_search(&sequence).is_err()
            && !session.pending.iter().any(waits)
    }

    /// The oldest message of a session that was handed over and not written, if the token names it.
    fn take_pending(&mut self, session: SessionId, token: Token) -> Option<Pending> {
        let pending = &mut self.sessions[session.0 as usize].pending;
        let front = pending.front().filter(|front| front.sequence == token.sequence)?;
        let front = *front;
        pending.pop_front();
        Some(front)
    }

    /// All filters of a session were answered, or the system still has them: those that were granted are held from now on.
    fn subscriber_present(&mut self, now_ns: u64, session: SessionId) {
        let entry = &mut self.sessions[session.0 as usize];
        if entry.subscriber.is_none() || entry.subscribed {
            return;
        }
        entry.subscribed = true;
        self.subscribed += 1;
        self.settle_presence(now_ns, session);
        self.note_fault(now_ns, session.0, What::Up);
    }

    fn subscriber_gone(&mut self, now_ns: u64, session: SessionId) {
        let entry = &mut self.sessions[session.0 as usize];
        entry.filters.iter_mut().for_each(|filter| filter.answered = false);
        if entry.subscriber.is_none() || !entry.subscribed {
            return;
        }
        entry.subscribed = false;
        self.subscribed -= 1;
        if !entry.persistent && !self.finishing {
            entry.filters.iter_mut().for_each(|filter| filter.granted = false);
            self.settle_presence(now_ns, session);
        }
    }

    /// Enters what changed of the filters that the system holds for a session.
    fn settle_presence(&mut self, now_ns: u64, session: SessionId) {
        let entry = &mut self.sessions[session.0 as usize];
        let Some(audience) = entry.subscriber else { return };
        let since_ns = self.window.since_schedule(now_ns);
        let (mut begins, mut ends) = (None, None);
        for (number, filter) in (0u16..).zip(&mut entry.filters) {
            match (filter.held, filter.granted) {
                (false, true) => {
                    let epoch = *ends.get_or_insert_with(|| self.progress.absence_ends(since_ns));
                    self.receiver.presence.held_from(audience, number, epoch);
                }
                (true, false) => {
                    let epoch = *begins.get_or_insert_with(|| self.progress.absence_begins(since_ns));
                    self.receiver.presence.absent_from(audience, number, epoch);
                }
                _ => continue,
            }
            filter.held = filter.granted;
        }
    }

    /// A message is settled: a session that waited for it can leave.
    fn note_settled(&mut self, session: SessionId) {
        if self.sessions[session.0 as usize].leaving.is_some() && !self.is_busy(session.0) {
            self.writable.push(session.0);
        }
    }

    fn unblock(&mut self, session: SessionId) {
        for index in self.sessions[session.0 as usize].publishers.clone() {
            self.publishers[index as usize].blocked = false;
        }
        self.writable.push(session.0);
    }
}

/// A shard that takes events at a time: that of the call in which they are noticed, or the newest that one of them had itself.
pub(super) struct EventsAt<'a> {
    pub(super) shard: &'a mut Shard,
    pub(super) now_ns: u64,
}

impl Sink for EventsAt<'_> {
    #[inline]
    fn event(&mut self, session: SessionId, event: Event<'_>) {
        let stamp_ns = match &event {
            Event::Delivered(delivery) | Event::Requested { delivery, .. } | Event::Answered { delivery, .. } => {
                delivery.at_ns
            }
            Event::Written { written_ns, .. } => *written_ns,
            Event::Secured(secured) => secured.done_ns,
            _ => 0,
        };
        self.now_ns = self.now_ns.max(stamp_ns);
        self.shard.event(self.now_ns, session, event);
    }

    #[inline]
    fn is_at_work(&self, session: SessionId) -> bool {
        self.shard.at_work > 0 && self.shard.sessions[session.0 as usize].work.is_under_way()
    }
}

impl Shard {
    fn event(&mut self, now_ns: u64, session: SessionId, event: Event<'_>) {
        match event {
            Event::Delivered(delivery) => self.delivered(session, &delivery),
            Event::Written { token, write_start_ns, written_ns } => {
                self.written(session, token, write_start_ns, written_ns);
            }
            Event::Acknowledged { token, outcome } => self.acknowledged(now_ns, session, token, outcome),
            Event::Requested { reply_to, delivery } => self.requested(session, reply_to, &delivery),
            Event::Answered { request, delivery } => self.answered(session, request, &delivery),
            Event::Writable => self.unblock(session),
            Event::Secured(secured) => self.note_secured(session.0, &secured),
            Event::Connected(connected) => self.connected(now_ns, session, connected),
            Event::Subscribed { index, granted } => self.subscribed(now_ns, session, index, granted),
            Event::Closed(cause) => self.closed(now_ns, session, cause),
            Event::Withheld(token) => self.withheld(session, token),
            Event::Abandoned(token) => self.abandoned(session, token),
            Event::Unanswered(token) => self.unanswered(session, token),
            Event::Resent(_) => self.counters.resent += 1,
            Event::PassedOver => self.counters.passed_over += 1,
            Event::Missed(messages) => self.counters.missed += messages,
        }
    }

    fn connected(&mut self, now_ns: u64, session: SessionId, connected: Connected) {
        self.note_accepted(session.0, now_ns);
        let entry = &mut self.sessions[session.0 as usize];
        entry.state = State::Online;
        let kept = entry.persistent && entry.was_up && entry.lost;
        entry.lost = false;
        entry.was_up = true;
        if entry.failures > 0 {
            entry.failures = 0;
            self.failing -= 1;
        }
        let subscribes = entry.subscriber.is_some();
        self.online += 1;
        self.counters.established += 1;
        self.last_event_ns = now_ns;
        self.counters.publish_level_lower += u64::from(connected.maximum_qos.is_some());
        self.counters.topic_alias_refused += u64::from(connected.topic_alias_refused);
        if connected.maximum_qos == Some(Qos::BestEffort) {
            // Messages go out at the level the server takes: nothing will be acknowledged.
            for index in self.sessions[session.0 as usize].publishers.clone() {
                self.publishers[index as usize].acknowledged = false;
            }
        }
        if kept {
            self.note_fault(now_ns, session.0, if connected.session_present { What::Found } else { What::Forgotten });
        }
        if !subscribes {
            self.note_fault(now_ns, session.0, What::Up);
        }
        if subscribes && connected.session_present {
            // The server kept the subscriptions: nothing is answered, nothing was missed.
            self.subscriber_present(now_ns, session);
        }
        self.unblock(session);
    }

    fn subscribed(&mut self, now_ns: u64, session: SessionId, index: usize, granted: Result<Qos, Said>) {
        let entry = &mut self.sessions[session.0 as usize];
        let (Some(asked), Some(filter)) = (entry.asked, entry.filters.get_mut(index)) else { return };
        (filter.answered, filter.granted) = (true, granted.is_ok());
        match granted {
            Ok(level) if level < asked => self.counters.granted_lower += 1,
            Ok(_) => {}
            Err(reason) => {
                self.counters.subscriptions_refused += 1;
                self.counters.count_cause(format!("subscription refused: {reason}"));
            }
        }
        let filters = &self.sessions[session.0 as usize].filters;
        if !filters.iter().all(|filter| filter.answered) {
            return;
        }
        let are_granted = filters.iter().all(|filter| filter.granted);
        if self.sessions[session.0 as usize].subscribed {
            // The system took back, or granted after all, what it had answered before.
            self.settle_presence(now_ns, session);
        } else {
            self.subscriber_present(now_ns, session);
            self.note_answers_granted(session, are_granted);
        }
    }

    fn closed(&mut self, now_ns: u64, session: SessionId, cause: Cause) {
        self.subscriber_gone(now_ns, session);
        self.orphan_requests(session);
        self.sessions[session.0 as usize].leaving = None;
        let was_online = self.sessions[session.0 as usize].state == State::Online;
        if cause == Cause::Ours {
            self.online -= u64::from(was_online);
            self.sessions[session.0 as usize].state = State::Offline;
        } else {
            self.note_failure(now_ns, session.0, &cause);
            // A device that lost its connection drops what waited for it: see `step`.
            self.writable.push(session.0);
        }
    }

    fn written(&mut self, session: SessionId, token: Token, write_start_ns: u64, written_ns: u64) {
        if token.publication == ANSWER {
            if let Some(responder) = &self.sessions[session.0 as usize].responder {
                self.tally.sent(session, u64::from(responder.answer_bytes()));
            }
            return self.note_answer_written(token, written_ns);
        }
        let Some(pending) = self.take_pending(session, token) else { return };
        self.tally.sent(session, u64::from(pending.payload_bytes));
        self.last_event_ns = written_ns;
        let at_ns = self.window.relative(written_ns);
        self.series.bin(at_ns).sent += 1;
        self.sent_ever += 1;
        let publisher = &mut self.publishers[pending.publisher as usize];
        self.expected_ever += u64::from(publisher.fan_out);
        if publisher.acknowledged {
            publisher.unacknowledged += 1;
        } else {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        if pending.measured {
            publisher.book.written += 1;
            let wait_ns = written_ns as i64 - pending.ready_ns as i64;
            self.times.backpressure.record(wait_ns);
            type_row(&mut self.types, publisher.book.group).backpressure.record(wait_ns);
        }
        self.note_request_written(pending.publisher, token.sequence, write_start_ns);
        self.note_settled(session);
    }

    fn withheld(&mut self, session: SessionId, token: Token) {
        let front = self.sessions[session.0 as usize].pending.front();
        let measured = front.is_some_and(|front| front.sequence == token.sequence && front.measured);
        self.counters.withheld += u64::from(measured);
    }

    fn acknowledged(&mut self, now_ns: u64, session: SessionId, token: Token, outcome: Result<(), Said>) {
        self.last_event_ns = now_ns;
        if token.publication == ANSWER {
            if let Err(said) = outcome {
                self.note_answer_refused(token);
                self.counters.count_cause(format!("answer refused: {said}"));
            }
            return;
        }
        let index = self.index_of(session, token);
        if outcome.is_err() && !self.may_be_refused(session, index, token.sequence) {
            return self
                .counters
                .count_cause("refusal of a message that was not sent, or was refused before".to_owned());
        }
        let is_refused = outcome.is_err() && self.note_request_refused(index, token.sequence);
        let Some(publisher) = self.publisher_of(session, token) else { return };
        if publisher.unacknowledged > 0 {
            publisher.unacknowledged -= 1;
        }
        let fan_out = u64::from(publisher.fan_out);
        let (measured, awaited) = (publisher.is_measured(token.sequence), publisher.acknowledged);
        if let Err(said) = outcome {
            if measured && is_refused {
                publisher.book.refused.insert(token.sequence);
            }
            self.expected_ever = self.expected_ever.saturating_sub(fan_out);
            self.counters.count_cause(format!("message refused: {said}"));
        }
        // One that no acknowledgement is waited for left when it was written, and can be refused all the same.
        self.in_flight = self.in_flight.saturating_sub(u64::from(awaited));
        self.note_settled(session);
    }

    fn abandoned(&mut self, session: SessionId, token: Token) {
        if token.publication == ANSWER {
            return self.note_answer_abandoned(token);
        }
        let Some(pending) = self.take_pending(session, token) else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        let finishing = self.finishing;
        let book = &mut self.publishers[pending.publisher as usize].book;
        if pending.measured {
            if finishing { &mut book.stuck } else { &mut book.broken }.push(pending.sequence);
        }
        self.note_request_abandoned(pending.publisher, token.sequence);
    }

    fn unanswered(&mut self, session: SessionId, token: Token) {
        // An answer without acknowledgement is told by its requester's books.
        if token.publication == ANSWER {
            return;
        }
        let Some(publisher) = self.publisher_of(session, token) else { return };
        publisher.unacknowledged = publisher.unacknowledged.saturating_sub(1);
        if publisher.is_measured(token.sequence) {
            publisher.book.unanswered.push(token.sequence);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn delivered(&mut self, session: SessionId, delivery: &Delivery<'_>) {
        if self.sessions[session.0 as usize].responder.is_some() {
            self.enter_mute_request(session, delivery);
        } else {
            self.hear(session, delivery);
        }
    }

    fn requested(&mut self, session: SessionId, reply_to: ReplyTo<'_>, delivery: &Delivery<'_>) {
        if self.sessions[session.0 as usize].responder.is_some() {
            self.enter_request(session, reply_to, delivery);
        } else {
            self.hear(session, delivery);
        }
    }

    fn answered(&mut self, session: SessionId, request: Option<Token>, delivery: &Delivery<'_>) {
        self.last_event_ns = delivery.at_ns;
        self.enter_answer(session, request, delivery);
    }
}
